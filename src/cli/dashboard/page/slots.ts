/** One lane per slot over time, and the table that says the same. */
import { h, type TargetedEvent, type ComponentChildren, type ComponentChild } from 'preact'
import { useState } from 'preact/hooks'
import type { Rollout } from '../page-data.ts'
import { durationText } from '../../base/output/durations.ts'
import { nowMs, timeText } from './texts.ts'

type Lanes = Rollout['lanes']
type Span = Lanes[number]['spans'][number]

const widths = [
  [600_000, '10 minutes'],
  [1_800_000, '30 minutes'],
  [3_600_000, '1 hour'],
] as const
const ticks = 5
const columns = ['Slot', 'Node', 'From', 'Until', 'Held', 'Phases']

type Properties = { readonly rollout: Rollout | undefined; readonly isLive: boolean }

export function Slots({ rollout, isLive }: Properties): ComponentChild {
  const [widthMs, setWidthMs] = useState<number>(widths[0][0])
  const [isOpen, setIsOpen] = useState(false)
  const onChange = ({ currentTarget }: TargetedEvent<HTMLSelectElement>): void =>
    setWidthMs(Number(currentTarget.value))
  const onToggle = ({ currentTarget }: TargetedEvent<HTMLDetailsElement>): void => setIsOpen(currentTarget.open)
  const lanes = rollout?.lanes ?? []
  const budget = rollout?.status?.budget
  const unknownWhy = budget?.known === false ? budget.why : undefined
  return h('section', { 'aria-labelledby': 'slots-title' }, [
    h('div', { class: 'tools' }, [
      h('h2', { id: 'slots-title' }, 'Slots over time'),
      h('label', null, [
        'Span ',
        h('select', { id: 'span', value: widthMs, onChange }, [
          widths.map(([value, text]) => h('option', { value }, text)),
        ]),
      ]),
    ]),
    h('p', { id: 'slots-note', class: 'hint' }, unknownWhy === undefined ? pastNote(isLive) : unknownNote(unknownWhy)),
    h('div', { id: 'lanes', class: 'lanes', 'aria-hidden': true }, [
      lanes.length === 0 && unknownWhy === undefined ? 'No slot is held.' : laneRows(lanes, widthMs, isLive),
    ]),
    h('details', { id: 'lanes-details', onToggle }, [
      h('summary', null, 'Slots as a table'),
      h('div', { class: 'scroll', role: 'region', 'aria-label': 'Slots as a table', tabIndex: 0 }, [
        h('table', null, [
          h('thead', null, [h('tr', null, [columns.map((column) => h('th', { scope: 'col' }, column))])]),
          h('tbody', { id: 'lanes-body' }, isOpen && tableRows(lanes, isLive)),
        ]),
      ]),
    ]),
  ])
}

const unknownNote = (why: string): string => `Slots are unknown: ${why}`

const pastNote = (isLive: boolean): string =>
  isLive
    ? 'What was before the dashboard started is not known.'
    : 'Who held a slot when the archive was made, and since when. What was before is not known.'

function laneRows(lanes: Lanes, widthMs: number, isLive: boolean): ComponentChildren {
  const endMs = nowMs()
  const startMs = endMs - widthMs
  const place = (fromMs: number, toMs: number) => ({
    left: `${(100 * (fromMs - startMs)) / widthMs}%`,
    width: `${(100 * (toMs - fromMs)) / widthMs}%`,
  })
  const rows = lanes.map(({ label, spans }) => {
    const holder = spans.at(-1)
    const now = holder !== undefined && holder.toMs === undefined ? `: ${holder.node}` : ': free'
    const shown = spans.filter(({ toMs }) => (toMs ?? endMs) > startMs)
    const bars = shown.map((span) => {
      const { id, node, fromMs, toMs } = span
      const phase = phaseOf(span)
      const state = toMs !== undefined ? 'over' : phase === 'failed' ? 'failed' : 'open'
      const title = `${node}: ${timeText(fromMs)} to ${untilText(span, isLive)}, ${phase}`
      const style = place(Math.max(fromMs, startMs), toMs ?? endMs)
      const attributes = { key: id, class: 'span', 'data-node': node, 'data-state': state, title, style }
      return h('div', attributes, toMs === undefined ? `${node} ${phase}` : node)
    })
    const name = h('span', { title: `${label}${now}` }, `${label}${now}`)
    return h('div', { key: label, class: 'lane' }, name, h('div', { class: 'track' }, bars))
  })
  const marks = Array.from({ length: ticks }, (_, index) => {
    const atMs = startMs + (widthMs * index) / (ticks - 1)
    return h('span', { style: { left: place(atMs, atMs).left } }, timeText(atMs).slice(0, 5))
  })
  const axis = h('div', { key: 'axis', class: 'lane' }, h('span', null), h('div', { class: 'axis' }, marks))
  return rows.length === 0 ? [] : [...rows, axis]
}

const tableRows = (lanes: Lanes, isLive: boolean): ComponentChildren =>
  lanes.flatMap(({ label, spans }) =>
    spans.toReversed().map((span) => {
      const { id, node, fromMs, toMs, phases } = span
      return h('tr', { key: id }, [
        h('th', { scope: 'row' }, label),
        h('td', null, h('button', { type: 'button', class: 'link', 'data-node': node }, node)),
        h('td', null, timeText(fromMs)),
        h('td', null, untilText(span, isLive)),
        h('td', null, durationText((toMs ?? nowMs()) - fromMs)),
        h('td', null, phases.map(({ phase }) => phase).join(', ')),
      ])
    }),
  )

const phaseOf = ({ phases }: Span): string => phases.at(-1)?.phase ?? ''

function untilText({ toMs }: Span, isLive: boolean): string {
  if (toMs !== undefined) return timeText(toMs)
  return isLive ? 'now' : 'the time of the archive'
}
