/** The page of `kubectl skyhook dashboard`: it draws what the tool sends, and asks for what is clicked. */
import { h, Fragment, render, type ComponentChild } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useState } from 'preact/hooks'
import type { PageState } from '../page-data.ts'
import { Head } from './head.ts'
import { Nodes } from './nodes.ts'
import { type Opened, Panel } from './panel.ts'
import { Plan } from './plan.ts'
import { follow } from './requests.ts'
import { Progress, Reasons, Skyhooks, summaryOf } from './rollout.ts'
import { Slots } from './slots.ts'
import { setClock } from './texts.ts'

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
      setAsked(skyhookInAddress())
      setOpened(undefined)
    })
  }, [])

  function open({ target }: Event): void {
    const from = (target as HTMLElement).closest<HTMLElement>('[data-node]')
    const node = from?.dataset['node']
    if (chosen !== undefined && node !== undefined && from !== null) setOpened({ skyhook: chosen, node, from })
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
        opened && h(Panel, { key: opened.node, opened, square, isLive, onClose: () => close(opened) }),
      ]),
    ]),
  ])
}

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

const root = document.querySelector('#page')
if (root !== null) render(h(Page, null), root)
