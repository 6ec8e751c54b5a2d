/** The nodes as squares, and as a table that says the same. */
import type { NodeChanges, NodeSquare } from '../page-data.ts'
import { shownStatuses, statusName } from '../../output/node-states.ts'
import { byId, element, setChildren, setText } from './dom.ts'
import { agoText, describe } from './texts.ts'
import { counted } from '../../../schemas/wording.ts'

type Entry = { square: NodeSquare; readonly item: HTMLLIElement; readonly button: HTMLButtonElement }
type Row = { readonly text: string; readonly row: HTMLTableRowElement }

const entries = new Map<string, Entry>()
const rows = new Map<string, Row>()
const columns = ['node', 'state', 'reason', 'message', 'since', 'slot'] as const
type Column = (typeof columns)[number]

let sort: { readonly column: Column; readonly isDescending: boolean } = { column: 'node', isDescending: false }
let filter = ''
let opened: string | undefined
let isTable = false

const grid = byId('grid')
const body = byId('table-body')

/** Prepares the grid. `onOpen` is called with the node of a click. */
export function startGrid(onOpen: (node: string, from: HTMLElement) => void): void {
  const open = (event: Event): void => {
    const button = (event.target as HTMLElement).closest<HTMLElement>('[data-node]')
    if (button?.dataset['node'] !== undefined) onOpen(button.dataset['node'], button)
  }
  grid.addEventListener('click', open)
  body.addEventListener('click', open)
  grid.addEventListener('keydown', moveFocus)
  grid.addEventListener('focusin', ({ target }) => makeTabStop(target as HTMLElement))
  const input = byId('filter') as HTMLInputElement
  input.addEventListener('input', () => setFilter(input.value))
  byId('show-grid').addEventListener('click', () => showTable(false))
  byId('show-table').addEventListener('click', () => showTable(true))
  drawHead()
}

/** Shows only nodes whose name, state or reason has the text. */
export function setFilter(text: string): void {
  filter = text.trim().toLowerCase()
  const input = byId('filter') as HTMLInputElement
  if (input.value !== text) input.value = text
  for (const entry of entries.values()) hideUnlessShown(entry)
  keepTabStop()
  drawShown()
  if (isTable) drawTable()
}

/** Takes what has changed. */
export function changeNodes({ isFull, changed, removed }: NodeChanges): void {
  const gone = isFull ? [...entries.keys()] : removed
  for (const node of gone) {
    entries.get(node)?.item.remove()
    entries.delete(node)
  }
  for (const square of changed) put(square)
  keepTabStop()
  drawLegend()
  drawShown()
  if (isTable) drawTable()
}

/** Marks the node whose panel is open. */
export function markOpened(node: string | undefined): void {
  if (opened !== undefined) entries.get(opened)?.button.setAttribute('aria-expanded', 'false')
  opened = node
  if (node !== undefined) entries.get(node)?.button.setAttribute('aria-expanded', 'true')
}

function put(square: NodeSquare): void {
  const { node, status } = square
  const label = describe(square)
  const found = entries.get(node)
  const button =
    found?.button ??
    element('button', {
      type: 'button',
      class: 'square paint',
      tabindex: -1,
      'data-node': node,
      'aria-controls': 'panel',
      'aria-expanded': String(node === opened),
    })
  button.dataset['status'] = status
  button.setAttribute('aria-label', label)
  button.title = label
  if (found !== undefined) {
    found.square = square
    return hideUnlessShown(found)
  }
  const entry = { square, button, item: element('li', {}, button) }
  entries.set(node, entry)
  insertInOrder(entry)
  hideUnlessShown(entry)
}

const byName = (a: string, b: string): number => a.localeCompare(b, 'en', { numeric: true })

/** Nodes come in order at first, and single ones later. */
function insertInOrder({ square, item }: Entry): void {
  const last = grid.lastElementChild?.firstElementChild as HTMLElement | null | undefined
  if (last?.dataset['node'] === undefined || byName(last.dataset['node'], square.node) < 0) return grid.append(item)
  const next = [...grid.children].find(
    (child) => byName((child.firstElementChild as HTMLElement).dataset['node'] ?? '', square.node) > 0,
  )
  grid.insertBefore(item, next ?? null)
}

const isShown = (square: NodeSquare): boolean => filter === '' || describe(square).toLowerCase().includes(filter)

function hideUnlessShown({ item, square }: Entry): void {
  item.hidden = !isShown(square)
}

/** One square is in the order of tab; arrows go to the others. */
function makeTabStop(button: HTMLElement): void {
  for (const old of grid.querySelectorAll('[tabindex="0"]')) old.setAttribute('tabindex', '-1')
  button.setAttribute('tabindex', '0')
}

function keepTabStop(): void {
  const stop = grid.querySelector<HTMLElement>('li:not([hidden]) > [tabindex="0"]')
  const first = grid.querySelector<HTMLElement>('li:not([hidden]) > button')
  if (stop === null && first !== null) makeTabStop(first)
}

const rowsOfPage = 5

function moveFocus(event: KeyboardEvent): void {
  const buttons = [...grid.querySelectorAll<HTMLButtonElement>('li:not([hidden]) > button')]
  const at = buttons.indexOf(document.activeElement as HTMLButtonElement)
  const [first] = buttons
  if (at < 0 || first === undefined) return
  const inRow = buttons.filter(({ offsetTop }) => offsetTop === first.offsetTop).length
  const steps: Readonly<Record<string, number>> = {
    ArrowRight: 1,
    ArrowLeft: -1,
    ArrowDown: inRow,
    ArrowUp: -inRow,
    PageDown: rowsOfPage * inRow,
    PageUp: -rowsOfPage * inRow,
    Home: -at,
    End: buttons.length - 1 - at,
  }
  const step = steps[event.key]
  if (step === undefined) return
  event.preventDefault()
  buttons[Math.min(buttons.length - 1, Math.max(0, at + step))]?.focus()
}

function drawLegend(): void {
  const counts = new Map<string, number>()
  for (const { square } of entries.values()) counts.set(square.status, (counts.get(square.status) ?? 0) + 1)
  const items = shownStatuses.flatMap((status) => {
    const count = counts.get(status) ?? 0
    return count === 0 ? [] : [element('li', {}, swatch(status), `${count} ${statusName(status)}`)]
  })
  setChildren(byId('legend'), items)
}

const swatch = (status: string): HTMLElement =>
  element('span', { class: 'square paint', 'data-status': status, 'aria-hidden': 'true' })

function drawShown(): void {
  const shown = [...entries.values()].filter(({ square }) => isShown(square)).length
  setText(byId('shown'), filter === '' ? counted(entries.size, 'node') : `${shown} of ${counted(entries.size, 'node')}`)
}

function showTable(value: boolean): void {
  isTable = value
  byId('grid-view').hidden = value
  byId('table-view').hidden = !value
  byId('show-grid').setAttribute('aria-pressed', String(!value))
  byId('show-table').setAttribute('aria-pressed', String(value))
  if (value) drawTable()
}

function drawHead(): void {
  const cells = columns.map((column) => {
    const isSorted = column === sort.column
    const arrow = isSorted ? (sort.isDescending ? ' \u25be' : ' \u25b4') : ''
    const button = element('button', { type: 'button' }, `${column}${arrow}`)
    button.addEventListener('click', () => {
      sort = { column, isDescending: isSorted && !sort.isDescending }
      drawHead()
      drawTable()
      byId('table-head').querySelectorAll('button')[columns.indexOf(column)]?.focus()
    })
    const order = isSorted ? (sort.isDescending ? 'descending' : 'ascending') : undefined
    return element('th', { scope: 'col', 'aria-sort': order }, button)
  })
  byId('table-head').replaceChildren(...cells)
}

function valueIn({ node, status, reason, message, sinceMs, phase }: NodeSquare, column: Column): string {
  switch (column) {
    case 'node':
      return node
    case 'state':
      return String(shownStatuses.indexOf(status))
    case 'reason':
      return reason ?? ''
    case 'message':
      return message ?? ''
    case 'since':
      return String(sinceMs ?? '')
    case 'slot':
      return phase ?? ''
  }
}

/** Rows that say the same stay, together with the focus in them. */
function drawTable(): void {
  const shown = [...entries.values()].map(({ square }) => square).filter(isShown)
  const order = sort.isDescending ? -1 : 1
  shown.sort((a, b) => order * byName(valueIn(a, sort.column), valueIn(b, sort.column)) || byName(a.node, b.node))
  const desired = shown.map((square) => {
    const text = JSON.stringify(square)
    const found = rows.get(square.node)
    const row = found?.text === text ? found.row : rowOf(square)
    rows.set(square.node, { text, row })
    return row
  })
  if (desired.length === body.children.length && desired.every((row, index) => body.children[index] === row)) return
  const focused = (document.activeElement as HTMLElement | null)?.dataset['node']
  const isInside = body.contains(document.activeElement)
  body.replaceChildren(...desired)
  if (isInside && focused !== undefined) rows.get(focused)?.row.querySelector('button')?.focus()
}

function rowOf(square: NodeSquare): HTMLTableRowElement {
  const { node, status, reason = '', message = '', sinceMs, phase = '' } = square
  const link = element('button', { type: 'button', class: 'link', 'data-node': node }, node)
  return element(
    'tr',
    {},
    element('th', { scope: 'row' }, link),
    element('td', {}, element('span', { class: 'state' }, swatch(status), statusName(status))),
    element('td', {}, reason),
    element('td', {}, message),
    element('td', {}, sinceMs === undefined ? '' : agoText(sinceMs)),
    element('td', {}, phase),
  )
}
