/** The nodes as squares, or as a table that says the same. */
import { h, type ComponentChildren, type ComponentChild } from 'preact'
import { useState } from 'preact/hooks'
import type { NodeSquare } from '../page-data.ts'
import { shownStatuses, statusName } from '../../base/output/rollout-texts.ts'
import { agoText, describe } from './texts.ts'
import { counted } from '../../../schemas/wording.ts'

type Properties = {
  /** Undefined where they are not known. */
  readonly nodes: readonly NodeSquare[] | undefined
  /** Only nodes whose name, zone, state or reason has it are shown. */
  readonly filter: string
  readonly onFilter: (text: string) => void
  /** The node whose panel is open. */
  readonly opened: string | undefined
}

type Form = 'grid' | 'zones' | 'table'

export function Nodes({ nodes, filter, onFilter, opened }: Properties): ComponentChild {
  const [chosen, setChosen] = useState<Form>('grid')
  const requested = filter.trim().toLowerCase()
  const shown = (nodes ?? []).filter((square) => describe(square).toLowerCase().includes(requested))
  const zones = new Set((nodes ?? []).map(({ zone }) => zone))
  const form = chosen === 'zones' && zones.size < 2 ? 'grid' : chosen
  const choice = (value: Form, text: string): ComponentChild =>
    h('button', { ...choiceOf(value), 'aria-pressed': form === value, onClick: () => setChosen(value) }, text)
  return h('section', { 'aria-labelledby': 'nodes-title' }, [
    h('div', { class: 'tools' }, [
      h('h2', { id: 'nodes-title' }, 'Nodes'),
      h('div', { class: 'switch', role: 'group', 'aria-label': 'Form of the nodes' }, [
        choice('grid', 'Grid'),
        zones.size > 1 && choice('zones', 'Zones'),
        choice('table', 'Table'),
      ]),
      h('label', { class: 'filter' }, [
        'Filter ',
        h('input', {
          id: 'filter',
          type: 'search',
          placeholder: 'name, zone, state or reason',
          autocomplete: 'off',
          spellcheck: false,
          value: filter,
          onInput: ({ currentTarget }) => onFilter(currentTarget.value),
        }),
      ]),
      h('span', { id: 'shown' }, nodes && shownText(shown.length, nodes.length, requested !== '')),
    ]),
    h('ul', { id: 'legend', class: 'legend', role: 'list' }, legend(nodes ?? [])),
    form === 'table'
      ? h(Table, { squares: shown, hasZones: [...zones].some((zone) => zone !== undefined) })
      : h(Grid, { squares: shown, opened, isByZone: form === 'zones' }),
  ])
}

const choiceOf = (form: Form) => ({ type: 'button', id: `show-${form}` }) as const

const shownText = (shown: number, all: number, isFiltered: boolean): string =>
  isFiltered ? `${shown} of ${counted(all, 'node')}` : counted(all, 'node')

function legend(nodes: readonly NodeSquare[]): ComponentChildren {
  const byStatus = Map.groupBy(nodes, ({ status }) => status)
  return shownStatuses.flatMap((status) => {
    const count = byStatus.get(status)?.length ?? 0
    return count === 0 ? [] : [h('li', { key: status }, swatch(status), `${count} ${statusName(status)}`)]
  })
}

const swatch = (status: string): ComponentChild =>
  h('span', { class: 'square paint', 'data-status': status, 'aria-hidden': true })

/** A state, by its sign and its word. */
export const stateOf = (status: NodeSquare['status']): ComponentChild =>
  h('span', { class: 'state' }, swatch(status), statusName(status))

type Squares = { readonly squares: readonly NodeSquare[] }
type GridProperties = Squares & Pick<Properties, 'opened'> & { readonly isByZone: boolean }

function Grid({ squares, opened, isByZone }: GridProperties): ComponentChild {
  const [focused, setFocused] = useState<string>()
  const onFocusIn = ({ target }: Event): void => setFocused((target as HTMLElement).dataset['node'])
  const zones = isByZone ? byZone(squares) : []
  const [first] = zones[0]?.[1] ?? squares
  // one square is in the order of tab; arrows go to the others
  const stop = squares.some(({ node }) => node === focused) ? focused : first?.node
  const list = (some: readonly NodeSquare[], label: string): ComponentChild =>
    h('ul', { class: 'grid', role: 'list', 'aria-label': label, 'aria-describedby': 'grid-hint' }, [
      some.map((square) => squareOf(square, square.node === stop, square.node === opened)),
    ])
  return h('div', null, [
    h('p', { class: 'hint', id: 'grid-hint' }, 'Arrow keys go from node to node, Enter opens one.'),
    h('div', { id: 'grid', onKeyDown: moveFocus, onFocusIn }, [
      isByZone ? zones.map(([zone, some]) => zoneOf(zone, some, list)) : list(squares, 'Nodes'),
    ]),
  ])
}

/** Nodes without a zone come last. */
const byZone = (squares: readonly NodeSquare[]): readonly (readonly [zone: string, some: readonly NodeSquare[]])[] =>
  [...Map.groupBy(squares, ({ zone = '' }) => zone)].toSorted(
    ([a], [b]) => Number(a === '') - Number(b === '') || compare(a, b),
  )

function zoneOf(
  zone: string,
  some: readonly NodeSquare[],
  list: (some: readonly NodeSquare[], label: string) => ComponentChild,
): ComponentChild {
  const title = zone === '' ? 'No zone' : `Zone ${zone}`
  return h('div', { key: zone, class: 'zone' }, [
    h('div', { class: 'tools' }, h('h3', null, title), h('ul', { class: 'legend', role: 'list' }, legend(some))),
    list(some, title),
  ])
}

function squareOf(square: NodeSquare, isStop: boolean, isOpened: boolean): ComponentChild {
  const { node, status } = square
  const label = describe(square)
  const names = { title: label, 'aria-label': label, 'aria-controls': 'panel', 'aria-expanded': isOpened }
  const data = { 'data-node': node, 'data-status': status }
  return h('li', { key: node }, [
    h('button', { type: 'button', class: 'square paint', tabIndex: isStop ? 0 : -1, ...names, ...data }),
  ])
}

const rowsOfPage = 5

function moveFocus(event: KeyboardEvent): void {
  const buttons = [...(event.currentTarget as HTMLElement).querySelectorAll('button')]
  const active = document.activeElement as HTMLButtonElement
  const at = buttons.indexOf(active)
  if (at < 0) return
  // the last row of each zone may be shorter
  const rows = [...Map.groupBy(buttons, ({ offsetTop }) => offsetTop).values()]
  const row = rows.findIndex((some) => some.includes(active))
  const column = rows[row]?.indexOf(active) ?? 0
  const atRow = (next: number): HTMLButtonElement | undefined => {
    const found = rows[within(next, rows)] ?? []
    return found[within(column, found)]
  }
  const targets: Readonly<Record<string, HTMLButtonElement | undefined>> = {
    ArrowRight: buttons[within(at + 1, buttons)],
    ArrowLeft: buttons[within(at - 1, buttons)],
    ArrowDown: atRow(row + 1),
    ArrowUp: atRow(row - 1),
    PageDown: atRow(row + rowsOfPage),
    PageUp: atRow(row - rowsOfPage),
    Home: buttons[0],
    End: buttons.at(-1),
  }
  const target = targets[event.key]
  if (target === undefined) return
  event.preventDefault()
  target.focus()
}

const within = (index: number, { length }: readonly unknown[]): number => Math.min(length - 1, Math.max(0, index))

/** What rows are sorted by. */
const columns = {
  node: ({ node }) => node,
  state: ({ status }) => String(shownStatuses.indexOf(status)),
  reason: ({ reason }) => reason ?? '',
  message: ({ message }) => message ?? '',
  since: ({ sinceMs }) => String(sinceMs ?? ''),
  slot: ({ phase }) => phase ?? '',
  zone: ({ zone }) => zone ?? '',
} satisfies Readonly<Record<string, (square: NodeSquare) => string>>
const columnNames = Object.keys(columns) as (keyof typeof columns)[]

function Table({ squares, hasZones }: Squares & { readonly hasZones: boolean }): ComponentChild {
  const [by, setBy] = useState<keyof typeof columns>('node')
  const [isDescending, setIsDescending] = useState(false)
  const [valueOf, direction] = [columns[by], isDescending ? -1 : 1]
  const sorted = squares.toSorted((a, b) => direction * compare(valueOf(a), valueOf(b)) || compare(a.node, b.node))
  const shownColumns = columnNames.filter((column) => hasZones || column !== 'zone')
  const head = shownColumns.map((column) => {
    const isSorted = column === by
    const order = isSorted ? (isDescending ? 'descending' : 'ascending') : undefined
    const arrow = isSorted ? (isDescending ? ' \u25be' : ' \u25b4') : ''
    const onClick = (): void => {
      setBy(column)
      setIsDescending(isSorted && !isDescending)
    }
    const button = h('button', { type: 'button', onClick }, `${column}${arrow}`)
    return h('th', { key: column, scope: 'col', 'aria-sort': order }, button)
  })
  return h('div', { class: 'scroll', role: 'region', 'aria-label': 'Nodes as a table', tabIndex: 0 }, [
    h('table', { id: 'table' }, [
      h('thead', null, h('tr', { id: 'table-head' }, head)),
      h('tbody', { id: 'table-body' }, [sorted.map((square) => rowOf(square, hasZones))]),
    ]),
  ])
}

const { compare } = new Intl.Collator('en', { numeric: true })

function rowOf(square: NodeSquare, hasZones: boolean): ComponentChild {
  const { node, status, reason, message, sinceMs, phase, zone } = square
  return h('tr', { key: node }, [
    h('th', { scope: 'row' }, h('button', { type: 'button', class: 'link', 'data-node': node }, node)),
    h('td', null, stateOf(status)),
    h('td', null, reason),
    h('td', null, message),
    h('td', null, sinceMs === undefined ? '' : agoText(sinceMs)),
    h('td', null, phase),
    hasZones && h('td', null, zone),
  ])
}
