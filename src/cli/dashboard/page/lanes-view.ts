/** One lane per slot over time, and the table that says the same. */
import type { PageEvents } from '../page-data.ts'
import { durationText } from '../../output/durations.ts'
import { byId, element, setText } from './dom.ts'
import { shownArchive } from './identity-view.ts'
import { nowMs, timeText } from './texts.ts'

type Lanes = PageEvents['lanes']
type Span = Lanes[number]['spans'][number]

let lanes: Lanes = []
let unknownWhy: string | undefined
const select = byId('span') as HTMLSelectElement
const details = byId('lanes-details') as HTMLDetailsElement
const ticks = 5
const earlierNote = 'What was before the dashboard started is not known.'
const archivedNote = 'Who held a slot when the archive was made, and since when. What was before is not known.'

/** `onOpen` is called with the node of a click. */
export function startLanes(onOpen: (node: string, from: HTMLElement) => void): void {
  const open = (event: Event): void => {
    const target = (event.target as HTMLElement).closest<HTMLElement>('[data-node]')
    if (target?.dataset['node'] !== undefined) onOpen(target.dataset['node'], target)
  }
  byId('lanes').addEventListener('click', open)
  byId('lanes-body').addEventListener('click', open)
  select.addEventListener('change', drawLanes)
  details.addEventListener('toggle', drawTable)
}

export function setLanes(value: Lanes): void {
  lanes = value
  drawLanes()
  drawTable()
}

/** `why`: why slots are not known; undefined where they are. */
export function setSlotsUnknown(why: string | undefined): void {
  unknownWhy = why
  const note = shownArchive() === undefined ? earlierNote : archivedNote
  setText(byId('slots-note'), why === undefined ? note : `Slots are unknown: ${why}`)
}

/** Also when nothing has changed: time passes. */
export function drawLanes(): void {
  const endMs = nowMs()
  const widthMs = Number(select.value)
  const startMs = endMs - widthMs
  const rows = lanes.map(({ label, spans }) => {
    const holder = spans.at(-1)
    const now = holder !== undefined && holder.toMs === undefined ? `: ${holder.node}` : ': free'
    const shown = spans.filter(({ toMs }) => (toMs ?? endMs) > startMs)
    const track = element('div', { class: 'track' }, ...shown.map((span) => spanElement(span, startMs, endMs)))
    return element('div', { class: 'lane' }, element('span', { title: `${label}${now}` }, `${label}${now}`), track)
  })
  const none = unknownWhy === undefined ? 'No slot is held.' : ''
  byId('lanes').replaceChildren(...rows, ...(rows.length === 0 ? [none] : [axis(startMs, widthMs)]))
}

/** Undefined: it is still held. */
function untilText(toMs: number | undefined): string {
  if (toMs !== undefined) return timeText(toMs)
  return shownArchive() === undefined ? 'now' : 'the time of the archive'
}

const phaseOf = ({ phases }: Span): string => phases.at(-1)?.phase ?? ''

function spanElement(span: Span, startMs: number, endMs: number): HTMLElement {
  const { node, fromMs, toMs } = span
  const phase = phaseOf(span)
  const state = toMs !== undefined ? 'over' : phase === 'failed' ? 'failed' : 'open'
  const text = toMs === undefined ? `${node} ${phase}` : node
  const title = `${node}: ${timeText(fromMs)} to ${untilText(toMs)}, ${phase}`
  const bar = element('div', { class: 'span', 'data-node': node, 'data-state': state, title }, text)
  const from = Math.max(fromMs, startMs)
  bar.style.left = `${(100 * (from - startMs)) / (endMs - startMs)}%`
  bar.style.width = `${(100 * ((toMs ?? endMs) - from)) / (endMs - startMs)}%`
  return bar
}

function axis(startMs: number, widthMs: number): HTMLElement {
  const marks = Array.from({ length: ticks }, (_, index) => {
    const mark = element('span', {}, timeText(startMs + (widthMs * index) / (ticks - 1)).slice(0, 5))
    mark.style.left = `${(100 * index) / (ticks - 1)}%`
    return mark
  })
  return element('div', { class: 'lane' }, element('span', {}), element('div', { class: 'axis' }, ...marks))
}

function drawTable(): void {
  if (!details.open) return
  const body = byId('lanes-body')
  const focused = body.contains(document.activeElement)
    ? (document.activeElement as HTMLElement).dataset['span']
    : undefined
  const rows = lanes.flatMap(({ label, spans }) => spans.toReversed().map((span) => rowOf(label, span)))
  body.replaceChildren(...rows)
  if (focused !== undefined) body.querySelector<HTMLElement>(`[data-span="${CSS.escape(focused)}"]`)?.focus()
}

function rowOf(label: string, { id, node, fromMs, toMs, phases }: Span): HTMLTableRowElement {
  const link = element('button', { type: 'button', class: 'link', 'data-node': node, 'data-span': id }, node)
  return element(
    'tr',
    {},
    element('th', { scope: 'row' }, label),
    element('td', {}, link),
    element('td', {}, timeText(fromMs)),
    element('td', {}, untilText(toMs)),
    element('td', {}, durationText((toMs ?? nowMs()) - fromMs)),
    element('td', {}, phases.map(({ phase }) => phase).join(', ')),
  )
}
