/** The nodes as squares, or as a table that says the same. */
import { h, type ComponentChildren, type ComponentChild } from 'preact'
import { useState } from 'preact/hooks'
import type { NodeSquare } from '../page-data.ts'
import { shownStatuses, statusName } from '../../output/rollout-texts.ts'
import { agoText, describe } from './texts.ts'
import { counted } from '../../../schemas/wording.ts'

type Properties = {
  /** Undefined where they are not known. */
  readonly nodes: readonly NodeSquare[] | undefined
  /** Only nodes whose name, state or reason has it are shown. */
  readonly filter: string
  readonly onFilter: (text: string) => void
  /** The node whose panel is open. */
  readonly opened: string | undefined
}

export function Nodes({ nodes, filter, onFilter, opened }: Properties): ComponentChild {
  const [isTable, setIsTable] = useState(false)
  const requested = filter.trim().toLowerCase()
  const shown = (nodes ?? []).filter((square) => describe(square).toLowerCase().includes(requested))
  const form = (text: string, id: string, value: boolean): ComponentChild =>
    h('button', { type: 'button', id, 'aria-pressed': isTable === value, onClick: () => setIsTable(value) }, text)
  return h('section', { 'aria-labelledby': 'nodes-title' }, [
    h('div', { class: 'tools' }, [
      h('h2', { id: 'nodes-title' }, 'Nodes'),
      h('div', { class: 'switch', role: 'group', 'aria-label': 'Form of the nodes' }, [
        form('Grid', 'show-grid', false),
        form('Table', 'show-table', true),
      ]),
      h('label', { class: 'filter' }, [
        'Filter ',
        h('input', {
          id: 'filter',
          type: 'search',
          placeholder: 'name, state or reason',
          autocomplete: 'off',
          spellcheck: false,
          value: filter,
          onInput: ({ currentTarget }) => onFilter(currentTarget.value),
        }),
      ]),
      h('span', { id: 'shown' }, nodes && shownText(shown.length, nodes.length, requested !== '')),
    ]),
    h('ul', { id: 'legend', class: 'legend', role: 'list' }, legend(nodes ?? [])),
    isTable ? h(Table, { squares: shown }) : h(Grid, { squares: shown, opened }),
  ])
}

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

type Squares = { readonly squares: readonly NodeSquare[] }

function Grid({ squares, opened }: Squares & Pick<Properties, 'opened'>): ComponentChild {
  const [focused, setFocused] = useState<string>()
  const onFocusIn = ({ target }: Event): void => setFocused((target as HTMLElement).dataset['node'])
  // one square is in the order of tab; arrows go to the others
  const stop = squares.some(({ node }) => node === focused) ? focused : squares[0]?.node
  return h('div', null, [
    h('p', { class: 'hint', id: 'grid-hint' }, 'Arrow keys go from node to node, Enter opens one.'),
    h('ul', { id: 'grid', class: 'grid', role: 'list', ...described, onKeyDown: moveFocus, onFocusIn }, [
      squares.map((square) => squareOf(square, square.node === stop, square.node === opened)),
    ]),
  ])
}

const described = { 'aria-labelledby': 'nodes-title', 'aria-describedby': 'grid-hint' }

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

/** What rows are sorted by. */
const columns = {
  node: ({ node }) => node,
  state: ({ status }) => String(shownStatuses.indexOf(status)),
  reason: ({ reason }) => reason ?? '',
  message: ({ message }) => message ?? '',
  since: ({ sinceMs }) => String(sinceMs ?? ''),
  slot: ({ phase }) => phase ?? '',
} satisfies Readonly<Record<string, (square: NodeSquare) => string>>
const columnNames = Object.keys(columns) as (keyof typeof columns)[]

function Table({ squares }: Squares): ComponentChild {
  const [by, setBy] = useState<keyof typeof columns>('node')
  const [isDescending, setIsDescending] = useState(false)
  const [valueOf, direction] = [columns[by], isDescending ? -1 : 1]
  const sorted = squares.toSorted((a, b) => direction * compare(valueOf(a), valueOf(b)) || compare(a.node, b.node))
  const head = columnNames.map((column) => {
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
      h('tbody', { id: 'table-body' }, sorted.map(rowOf)),
    ]),
  ])
}

const { compare } = new Intl.Collator('en', { numeric: true })

function rowOf({ node, status, reason, message, sinceMs, phase }: NodeSquare): ComponentChild {
  return h('tr', { key: node }, [
    h('th', { scope: 'row' }, h('button', { type: 'button', class: 'link', 'data-node': node }, node)),
    h('td', null, h('span', { class: 'state' }, swatch(status), statusName(status))),
    h('td', null, reason),
    h('td', null, message),
    h('td', null, sinceMs === undefined ? '' : agoText(sinceMs)),
    h('td', null, phase),
  ])
}
