/** Whose data the page shows: a cluster as it is, or an archive as it was. */
import type { ArchiveIdentity, Identity } from '../page-data.ts'
import { durationText } from '../../output/durations.ts'
import { byId, element, setChildren, setText } from './dom.ts'
import { dateText } from './texts.ts'

let shown: Identity | undefined

/** Undefined for a cluster. */
export const shownArchive = (): ArchiveIdentity | undefined => (shown?.isLive === false ? shown : undefined)

export function drawIdentity(identity: Identity): void {
  shown = identity
  const rows = rowsOf(identity).map(([term, id, text]) =>
    element('div', {}, element('dt', {}, term), element('dd', { id }, text)),
  )
  setChildren(byId('identity'), [...rows, byId('data')])
  if (identity.isLive) return
  const taken = dateText(identity.takenAtMs)
  setText(byId('archive'), `An archive of ${taken}: nothing changes. All times and ages are those of then.`)
  setText(byId('plan-hint'), archivedPlanHint)
  setText(byId('plan-load'), 'Take the spec of the archive')
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

const archivedPlanHint =
  'Nothing is applied, and no API server is asked: the tool checks its rules, and the decisions of the agents are ' +
  'made on the nodes as they were. What the text lacks of the spec would be removed. [left-out] stands for values ' +
  'that the archive does not have: keep it where a value stays.'

/** How old an archive is by now, whatever time the page shows. */
export const archiveAgeText = ({ takenAtMs }: ArchiveIdentity): string =>
  `does not change, ${durationText(Date.now() - takenAtMs)} old`
