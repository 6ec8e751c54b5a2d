/** Whose data the page shows, a cluster as it is or an archive as it was; and what may be wrong with it. */
import { h, Fragment, type ComponentChild } from 'preact'
import type { Identity, PageState } from '../page-data.ts'
import { durationText } from '../../output/durations.ts'
import { agoText, dateText, timeText } from './texts.ts'

/** A connection that comes back within this is not worth a word. */
const silentRetryMs = 2_500

type Properties = {
  readonly state: PageState | undefined
  /** Since when the tool does not answer, in ms since 1970 by the browser's clock; undefined while it does. */
  readonly brokenAtMs: number | undefined
}

export function Head({ state, brokenAtMs }: Properties): ComponentChild {
  const rows = state === undefined ? [] : rowsOf(state.identity)
  return h(Fragment, null, [
    h('header', null, [
      h('h1', null, 'Skyhook dashboard'),
      h('dl', { id: 'identity', class: 'identity' }, [
        rows.map(([term, id, text]) => h('div', { key: id }, h('dt', null, term), h('dd', { id }, text))),
        h('div', { key: 'age' }, h('dt', null, 'Data'), h('dd', { id: 'age' }, ageText(state, brokenAtMs))),
      ]),
    ]),
    h('div', { id: 'banner', role: 'alert' }, bannerText(state, brokenAtMs)),
    h('p', { id: 'archive', role: 'status' }, archiveText(state)),
  ])
}

const rowsOf = (identity: Identity): readonly (readonly [term: string, id: string, text: string])[] =>
  identity.isLive
    ? [
        ['Context', 'context', identity.context ?? 'none'],
        ['User', 'user', identity.user.known ? identity.user.value : `unknown: ${identity.user.why}`],
        ['Server', 'server', `${identity.server} (namespace ${identity.namespace})`],
      ]
    : [
        ['Archive', 'file', identity.file],
        ['Made by', 'made-by', `kubectl skyhook ${identity.madeBy}`],
        ['Namespace', 'namespace', identity.namespace],
      ]

function ageText(state: PageState | undefined, brokenAtMs: number | undefined): string {
  if (state === undefined) return 'not there yet'
  const { identity, freshness, contactAtMs } = state
  // by now, whatever time the page shows
  if (!identity.isLive) return `does not change, ${durationText(Date.now() - identity.takenAtMs)} old`
  const isLive = freshness.state === 'live' && brokenAtMs === undefined
  return `${isLive ? 'live' : 'old'}, last answer ${agoText(contactAtMs)} ago`
}

function bannerText(state: PageState | undefined, brokenAtMs: number | undefined): string {
  if (brokenAtMs !== undefined && Date.now() - brokenAtMs >= silentRetryMs) {
    const shown = state?.identity.isLive === false ? '' : ': what is shown is of then'
    const text = `kubectl skyhook dashboard does not answer since ${timeText(brokenAtMs)}${shown}`
    return `${text}. Start it again and open its new link.`
  }
  if (state?.freshness.state !== 'lost') return ''
  const { sinceMs, why } = state.freshness
  return `The API server does not answer since ${timeText(sinceMs)}: what is shown is of then. (${why})`
}

function archiveText(state: PageState | undefined): string {
  if (state === undefined || state.identity.isLive) return ''
  const taken = dateText(state.identity.takenAtMs)
  return `An archive of ${taken}: nothing changes. All times and ages are those of then.`
}
