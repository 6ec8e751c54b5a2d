/** What a click on a node shows: why it is not complete, packages, Events, commands, and the output of its steps. */
import { h, Fragment, type TargetedEvent, type ComponentChildren, type ComponentChild } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { NodeAnswer, NodeSquare, OutputLine, OutputPart } from '../page-data.ts'
import { attemptsText, runningStepText } from '../../base/output/rollout-texts.ts'
import { stateOf } from './nodes.ts'
import { ask, follow } from './requests.ts'
import { messageOf } from '../../../schemas/json.ts'
import { agoText, nowMs, timeText } from './texts.ts'

/** A click shows what has changed since, though nothing has changed on the node itself. */
const refreshMs = 10_000
const maxOutputLines = 2_000

export type Opened = {
  readonly skyhook: string
  readonly node: string
  /** It gets the focus back. */
  readonly from: HTMLElement
}

type Properties = {
  readonly opened: Opened
  /** The node as the page shows it. */
  readonly square: NodeSquare | undefined
  readonly isLive: boolean
  /** Somebody wants to see the node in another Skyhook. */
  readonly onSkyhook: (name: string) => void
  readonly onClose: () => void
}

export function Panel({ opened, square, isLive, onSkyhook, onClose }: Properties): ComponentChild {
  const answer = useAnswer(opened, JSON.stringify(square))
  const title = useRef<HTMLHeadingElement>(null)
  useLayoutEffect(() => title.current?.focus(), [opened])
  useEffect(() => {
    const onKey = ({ key }: KeyboardEvent): void => void (key === 'Escape' && onClose())
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  })
  return h(Fragment, null, [
    h('div', { class: 'tools' }, [
      h('h2', { ref: title, id: 'panel-title', tabIndex: -1 }, `Node ${opened.node}`),
      h('button', { type: 'button', onClick: onClose }, 'Close'),
    ]),
    square?.zone && h('p', { class: 'hint' }, `Zone ${square.zone}`),
    h('div', { id: 'panel-body' }, answer === undefined ? h('p', null, 'Reading …') : contentOf(answer, onSkyhook)),
    h(Output, { opened, isLive }),
    h('div', { id: 'panel-actions' }, [
      answer !== undefined && !(answer instanceof Error) && actionsOf(answer, isLive),
    ]),
  ])
}

/** Why the node is not complete, asked again when it changes and once in a while; or what went wrong. */
function useAnswer({ skyhook, node }: Opened, square: string | undefined): NodeAnswer | Error | undefined {
  const [answer, setAnswer] = useState<NodeAnswer | Error>()
  useEffect(() => {
    let isOver = false
    async function refresh(): Promise<void> {
      const found = await ask<NodeAnswer>('api/node', { skyhook, node }).catch((error: unknown) => error as Error)
      // what somebody is about to copy stays as it is
      const isInUse = document.querySelector('#panel-body:focus-within,#panel-actions:focus-within') !== null
      if (!isOver && !isInUse) setAnswer(found)
    }
    void refresh()
    const timer = setInterval(() => void refresh(), refreshMs)
    return () => {
      isOver = true
      clearInterval(timer)
    }
  }, [skyhook, node, square])
  return answer
}

const stateTexts: Readonly<Record<NodeAnswer['explanation']['state'], string>> = {
  complete: 'Complete.',
  working: 'At work, nothing holds it up.',
  'held-up': 'Held up.',
  'not-selected': 'Not selected.',
}

function contentOf(answer: NodeAnswer | Error, onSkyhook: Properties['onSkyhook']): ComponentChild {
  if (answer instanceof Error) return h('p', null, messageOf(answer))
  const { explanation, packages, others, events } = answer
  const { state, verdict, gates, step } = explanation
  return h(Fragment, null, [
    h('p', null, h('strong', null, stateTexts[state]), verdict && ` ${verdict.message}.`),
    step && h('p', null, `${runningStepText(step, nowMs())}.`),
    verdict?.sinceMs !== undefined && h('p', null, `For ${agoText(verdict.sinceMs)}${attemptsText(verdict, nowMs())}.`),
    verdict && h('p', null, `What opens it: ${verdict.unblock}`),
    verdict && h(Command, { command: verdict.command }),
    notesOn(explanation).map((note) => h('p', null, `Note: ${note}.`)),
    h('h3', null, 'Gates'),
    gateList(gates),
    h('h3', null, 'Packages'),
    packages.length === 0 ? h('p', null, 'None yet.') : packageTable(packages),
    others.length > 0 && [h('h3', null, 'Other Skyhooks on this node'), otherTable(others, onSkyhook)],
    h('h3', null, 'Events'),
    eventList(events),
  ])
}

function notesOn({ disagreement, doubt, left = [], isClosed }: NodeAnswer['explanation']): readonly string[] {
  return [
    isClosed && 'The node takes no new pods until it is complete: it has the runtime-required taint',
    left.length > 0 && `The interrupt ends pods that tolerate the cordon: ${left.join(', ')}`,
    disagreement,
    doubt && `What is done on the host is not known for sure: ${doubt}`,
  ].filter((note): note is string => typeof note === 'string' && note !== '')
}

/** Those that hold the node up one by one, the others in a line each. */
function gateList(gates: NodeAnswer['explanation']['gates']): ComponentChildren {
  const closed = gates.filter(({ verdict }) => verdict === 'closed' || verdict === 'unknown')
  const rows = closed.flatMap(({ gate, verdict, findings, why = '' }) => [
    h('dt', null, `${gate}: ${verdict}`),
    h('dd', null, findings.length === 0 ? why : findings.map(({ message }) => message).join('\n')),
  ])
  const others = (['open', 'ahead'] as const).flatMap((verdict) => {
    const names = gates.filter((one) => one.verdict === verdict).map(({ gate }) => gate)
    return names.length === 0 ? [] : [h('p', null, h('strong', null, verdict), `: ${names.join(', ')}`)]
  })
  return [...(rows.length === 0 ? [] : [h('dl', { class: 'gates' }, rows)]), ...others]
}

function packageTable(packages: NodeAnswer['packages']): ComponentChild {
  const rows = packages.map(({ name, version, stage, state, restarts }) =>
    h('tr', null, [
      h('th', { scope: 'row' }, name),
      [version, stage, state, restarts].map((text) => h('td', null, text)),
    ]),
  )
  return h('table', null, headOf(['Package', 'Version', 'Stage', 'State', 'Restarts']), h('tbody', null, rows))
}

const headOf = (columns: readonly string[]): ComponentChild =>
  h('thead', null, [h('tr', null, [columns.map((text) => h('th', { scope: 'col' }, text))])])

function otherTable(others: NodeAnswer['others'], onSkyhook: Properties['onSkyhook']): ComponentChild {
  const rows = others.map(({ skyhook, status, reason, complete, total }) => {
    const button = h('button', { type: 'button', class: 'link', onClick: () => onSkyhook(skyhook) }, skyhook)
    return h('tr', { key: skyhook }, [
      h('th', { scope: 'row' }, status === undefined ? skyhook : button),
      h('td', null, status === undefined ? 'not selected' : stateOf(status)),
      h('td', null, reason),
      h('td', null, total === 0 ? 'none yet' : `${complete} of ${total} complete`),
    ])
  })
  const head = headOf(['Skyhook', 'State', 'Reason', 'Packages'])
  return h('table', { id: 'panel-others' }, head, h('tbody', null, rows))
}

function eventList({ newest, unread }: NodeAnswer['events']): ComponentChildren {
  const rows = newest.flatMap(({ about, reason, message, atMs }) => [
    h('dt', null, `${agoText(atMs)} ago`),
    h('dd', null, `${about} ${reason}: ${message}`),
  ])
  const isEmpty = newest.length === 0 && unread.length === 0
  return [
    rows.length > 0 && h('dl', { class: 'events' }, rows),
    isEmpty && h('p', null, 'None within the last hour.'),
    unread.map((why) => h('p', null, `Unknown: ${why}.`)),
  ]
}

const actionsOf = ({ actions }: NodeAnswer, isLive: boolean): ComponentChildren => [
  h('h3', null, 'Commands to copy'),
  h('p', { class: 'hint' }, [
    isLive
      ? 'The page changes nothing: run them where you have a terminal.'
      : 'The page changes nothing. Commands without --from are for the cluster as it is now: name its context.',
  ]),
  ...actions.flatMap(({ what, command }) => [h('small', null, what), h(Command, { command })]),
]

const copiedMs = 1_500

/** A command, and a button that copies it. */
function Command({ command }: { readonly command: string }): ComponentChild {
  const [isCopied, setIsCopied] = useState(false)
  const code = useRef<HTMLElement>(null)
  function copied(): void {
    setIsCopied(true)
    setTimeout(() => setIsCopied(false), copiedMs)
  }
  // a person copies by hand what the browser does not
  const select = (): void => void (code.current && window.getSelection()?.selectAllChildren(code.current))
  const onClick = (): void => void navigator.clipboard.writeText(command).then(copied, select)
  return h('div', { class: 'command' }, [
    h('code', { ref: code }, command),
    h('button', { type: 'button', 'aria-label': `Copy ${command}`, onClick }, isCopied ? 'Copied' : 'Copy'),
  ])
}

function Output({ opened: { skyhook, node }, isLive }: Pick<Properties, 'opened' | 'isLive'>): ComponentChild {
  const [lines, setLines] = useState<readonly OutputLine[]>([])
  const [note, setNote] = useState(isLive ? 'As the agent has logged it.' : '')
  const output = useRef<HTMLPreElement>(null)
  const isAtEnd = useRef(true)
  useEffect(() => {
    const onOpen = (): void => setLines([]) // it starts over, also after a break
    function onMessage({ lines = [], note }: OutputPart): void {
      setLines((before) => [...before, ...lines].slice(-maxOutputLines))
      if (note !== undefined) setNote(note)
    }
    return follow('api/output', { skyhook, node }, { onOpen, onMessage })
  }, [skyhook, node])
  useLayoutEffect(() => {
    if (isAtEnd.current) output.current?.scrollTo(0, output.current.scrollHeight)
  }, [lines])
  function onScroll({ currentTarget }: TargetedEvent<HTMLPreElement>): void {
    const { scrollTop, clientHeight, scrollHeight } = currentTarget
    isAtEnd.current = scrollTop + clientHeight >= scrollHeight - 4
  }
  return h(Fragment, null, [
    h('h3', { id: 'output-title' }, 'Output of steps'),
    h('p', { id: 'output-note', class: 'hint' }, note),
    h('pre', { ...outputRegion, ref: output, onScroll }, [lines.map((line) => `${outputText(line)}\n`)]),
  ])
}

const outputRegion = { id: 'output', class: 'output', role: 'region', 'aria-labelledby': 'output-title', tabIndex: 0 }

const outputText = ({ atMs, package: name, stage, text }: OutputLine): string =>
  `${atMs === undefined ? '' : `${timeText(atMs)} `}${name} ${stage}: ${text}`
