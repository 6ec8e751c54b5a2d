/** The page of `kubectl skyhook dashboard`: it draws what the tool sends, and asks for what is clicked. */
import { h, Fragment, render, type ComponentChild } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useState } from 'preact/hooks'
import type { PageState, Identity } from '../page-data.ts'
import { Nodes } from './nodes.ts'
import { type Opened, Panel } from './panel.ts'
import { Plan } from './plan.ts'
import { follow } from './requests.ts'
import { Progress, Reasons, Skyhooks, summaryOf } from './rollout.ts'
import { Slots } from './slots.ts'
import { setClock, agoText, dateText, timeText } from './texts.ts'
import { durationText } from '../../base/output/durations.ts'

/** Screen readers announce progress this often. */
const summaryIntervalSeconds = 15

// the token has been used; without it the address can be reloaded
history.replaceState(null, '', `${location.pathname}${location.hash}`)

const skyhookInAddress = (): string | undefined =>
  new URLSearchParams(location.hash.slice(1)).get('skyhook') ?? undefined

const choose = (skyhook: string): void => void (location.hash = new URLSearchParams({ skyhook }).toString())

function Page(): ComponentChild {
  const [asked, setAsked] = useState(skyhookInAddress)
  const [opened, setOpened] = useState<Opened>()
  const [filter, setFilter] = useState('')
  const { state, brokenAtMs } = useTool(asked)
  useKeptFocus()
  const seconds = useSeconds()
  const rollout = state?.rollout
  const isLive = state?.identity.isLive ?? true
  const chosen = asked ?? rollout?.name
  const summary = useMemo(
    () => rollout && summaryOf(rollout),
    [rollout?.name, Math.floor(seconds / summaryIntervalSeconds)],
  )
  useEffect(() => {
    if (rollout !== undefined) document.title = `${rollout.name} – Skyhook ${isLive ? 'dashboard' : 'archive'}`
  })
  useEffect(() => {
    addEventListener('hashchange', () => {
      const skyhook = skyhookInAddress()
      setAsked(skyhook)
      setOpened((one) => (one?.skyhook === skyhook ? one : undefined))
    })
  }, [])

  function open({ target }: Event): void {
    const from = (target as HTMLElement).closest<HTMLElement>('[data-node]')
    const node = from?.dataset['node']
    if (chosen !== undefined && node !== undefined && from !== null) setOpened({ skyhook: chosen, node, from })
  }

  function openIn(skyhook: string): void {
    setOpened((one) => one && { ...one, skyhook })
    choose(skyhook)
  }

  function close({ from, node }: Opened): void {
    setOpened(undefined)
    const back = from.isConnected ? from : document.querySelector<HTMLElement>(`[data-node="${CSS.escape(node)}"]`)
    back?.focus()
  }

  const nodes = rollout?.nodes.known === true ? rollout.nodes.value : undefined
  const square = nodes?.find(({ node }) => node === opened?.node)
  return h(Fragment, null, [
    h('a', { class: 'skip', href: '#rollout' }, 'Skip to the rollout'),
    h(Head, { state, brokenAtMs }),
    h('p', { class: 'for-readers', role: 'status' }, summary),
    h('div', { class: 'columns' }, [
      h(Skyhooks, { skyhooks: state?.skyhooks, chosen, onChoose: choose }),
      h('main', { id: 'rollout', tabIndex: -1, 'aria-labelledby': 'rollout-title', onClick: open }, [
        h(Progress, { rollout }),
        h(Reasons, { groups: rollout?.status?.groups ?? [], onFilter: setFilter }),
        h(Nodes, { nodes, filter, onFilter: setFilter, opened: opened?.node }),
        h(Slots, { rollout, isLive }),
        h(Plan, { skyhook: chosen, isLive }),
      ]),
      h('aside', { id: 'panel', 'aria-labelledby': 'panel-title', hidden: opened === undefined }, [
        opened &&
          h(Panel, { key: keyOf(opened), opened, square, isLive, onSkyhook: openIn, onClose: () => close(opened) }),
      ]),
    ]),
  ])
}

const keyOf = ({ skyhook, node }: Opened): string => `${skyhook} ${node}`

/** What the tool sends of a Skyhook; undefined: of the one that needs a look most. */
function useTool(skyhook: string | undefined) {
  const [state, setState] = useState<PageState>()
  const [brokenAtMs, setBrokenAtMs] = useState<number>()
  useEffect(() => {
    function onMessage(sent: PageState): void {
      setClock(sent)
      setState(sent)
    }
    const onOpen = (): void => setBrokenAtMs(undefined)
    const onBreak = (): void => setBrokenAtMs((atMs) => atMs ?? Date.now())
    return follow('api/events', skyhook === undefined ? {} : { skyhook }, { onMessage, onOpen, onBreak })
  }, [skyhook])
  return { state, brokenAtMs }
}

/** An element that moves among others loses the focus where the browser does not have `moveBefore`. */
function useKeptFocus(): void {
  const focused = document.activeElement as HTMLElement | null
  useLayoutEffect(() => {
    if (document.activeElement === document.body && focused?.isConnected === true) focused.focus()
  })
}

/** Draws again when time alone has passed: ages and lanes change. */
function useSeconds(): number {
  const [seconds, setSeconds] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => setSeconds((count) => count + 1), 1_000)
    return () => clearInterval(timer)
  }, [])
  return seconds
}

/** A connection that comes back within this is not worth a word. */
const silentRetryMs = 2_500

type Properties = {
  readonly state: PageState | undefined
  /** Since when the tool does not answer, in ms since 1970 by the browser's clock; undefined while it does. */
  readonly brokenAtMs: number | undefined
}

function Head({ state, brokenAtMs }: Properties): ComponentChild {
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

const root = document.querySelector('#page')
if (root !== null) render(h(Page, null), root)
