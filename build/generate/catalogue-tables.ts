/**
 * The tables of the reference pages in docs/usage, from the catalogue in src/schemas/catalogue. The prose around the
 * tables is edited in the pages.
 */
import { nodeConditions, skyhookConditions } from '../../src/schemas/catalogue/conditions.ts'
import { nodeEvents, skyhookEvents } from '../../src/schemas/catalogue/events.ts'
import { fleetMetrics } from '../../src/schemas/catalogue/fleet-metrics.ts'
import { type MetricRow, metrics } from '../../src/schemas/catalogue/metrics.ts'
import { reasonCodes, stallsTexts } from '../../src/schemas/catalogue/reason-codes.ts'
import { reasonRows } from '../../src/schemas/catalogue/reasons.ts'
import { stallsBy } from '../../src/schemas/catalogue/stall-rules.ts'

/** What stands between `<!-- generated: NAME -->` and `<!-- end -->`, by page and name. */
const tables: Readonly<Record<string, Readonly<Record<string, () => string>>>> = {
  'reasons.md': {
    waiting: () => reasonTable('waiting'),
    failing: () => reasonTable('failing'),
    blocked: () => reasonTable('blocked'),
    codes: codeTable,
  },
  'operations.md': { gates: gateTable },
  'events.md': {
    node: () => eventTable(nodeEvents),
    'node reasons': () => reportedReasons('Node'),
    skyhook: () => eventTable(skyhookEvents),
    'skyhook reasons': () => reportedReasons('Skyhook'),
  },
  'conditions.md': { node: () => conditionTables(nodeConditions), skyhook: () => conditionTables(skyhookConditions) },
  'metrics.md': {
    series: () => metricTable(metrics),
    labels: () => labelTable(metrics),
    'fleet series': () => metricTable(fleetMetrics),
    'fleet labels': () => sharedLabelTable(fleetMetrics),
  },
}

/** The reference pages, by file name. */
export const pages: readonly string[] = Object.keys(tables)

/** Text of a page with its tables as the catalogue has them now. Throws when the page lacks a table or has another. */
export function withTables(page: string, text: string): string {
  const missing = new Set(Object.keys(tables[page] ?? {}))
  const filled = text.replace(/(?<=<!-- generated: ([\w ]+) -->\n)[^]*?(?=<!-- end -->)/g, (_, name: string) => {
    const generate = tables[page]?.[name]
    if (generate === undefined) throw new Error(`${page}: the catalogue has no table "${name}"; remove its markers`)
    missing.delete(name)
    return `\n${generate()}\n\n`
  })
  if (missing.size > 0) throw new Error(`${page}: add markers for ${[...missing].join(', ')}`)
  return filled
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')

const code = (name: string): string => `\`${name}\``

function reasonTable(section: 'waiting' | 'failing' | 'blocked'): string {
  const rows = reasonRows.filter(([, row]) => row.section === section)
  return table(
    ['Reason', 'Status', 'Stalls', 'Meaning', 'What to do'],
    rows.map(([name, { status, meaning, remedy }]) => [
      code(name),
      status === 'by-slot' ? '`waiting` or `in_progress`' : code(status),
      name === 'ImagePull' ? 'by its code' : stallsTexts[stallsBy(name)],
      meaning,
      remedy,
    ]),
  )
}

function gateTable(): string {
  return table(
    ['Reason', 'Gate', 'Cause', 'Command'],
    reasonRows.map(
      ([
        name,
        {
          explain: { gate, cause, command },
        },
      ]) => [`[${name}](#${name.toLowerCase()})`, gate, cause, cell(code(command))],
    ),
  )
}

function codeTable(): string {
  return table(
    ['Code', 'Stalls', 'Meaning', 'What to do', 'Command'],
    Object.entries(reasonCodes).map(([name, { stalls, meaning, remedy, command }]) => [
      code(name),
      stallsTexts[stalls],
      sentence(meaning),
      sentence(remedy),
      cell(code(command)),
    ]),
  )
}

const sentence = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`

/** A bar would end the cell, also inside of code. */
const cell = (text: string): string => text.replaceAll('|', String.raw`\|`)

function eventTable(
  events: Readonly<Record<string, { readonly type: string; readonly meaning: string; readonly remedy?: string }>>,
): string {
  return table(
    ['Event', 'Type', 'Meaning', 'What to do'],
    Object.entries(events).map(([name, { type, meaning, remedy }]) => [code(name), type, meaning, remedy ?? '—']),
  )
}

function reportedReasons(object: 'Node' | 'Skyhook'): string {
  const rows = reasonRows.filter(([, row]) => row.eventOn.includes(object))
  return rows.map(([name]) => code(name)).join(', ')
}

function conditionTables(
  conditions: Readonly<
    Record<
      string,
      {
        readonly origin: 'operator' | 'skyhookd'
        readonly meaning: string
        readonly reasons: Readonly<Record<string, readonly [string, string]>>
      }
    >
  >,
): string {
  return Object.entries(conditions)
    .map(([type, { origin, meaning, reasons }]) => {
      const rows = Object.entries(reasons).map(([reason, [status, text]]) => [code(reason), status, text])
      const text = origin === 'operator' ? `${meaning} From the Skyhook operator.` : meaning
      return `### ${code(type)}\n\n${text}\n\n${table(['Reason', 'Status', 'Meaning'], rows)}`
    })
    .join('\n\n')
}

type MetricRows = Readonly<Record<string, MetricRow>>

function metricTable(rows: MetricRows): string {
  return table(
    ['Series', 'Type', 'Meaning'],
    Object.entries(rows).map(([name, { type, help, labels }]) => {
      const names = Object.keys(labels)
      return [code(names.length === 0 ? name : `${name}{${names.join(',')}}`), type, help]
    }),
  )
}

type LabelRow = { readonly series: string; readonly label: string; readonly values: string }

const labelRows = (rows: MetricRows): LabelRow[] =>
  Object.entries(rows).flatMap(([series, { labels }]) =>
    Object.entries(labels).map(([label, values]) => ({
      series,
      label,
      values: typeof values === 'string' ? values : values.map(code).join(', '),
    })),
  )

function labelTable(rows: MetricRows): string {
  return table(
    ['Series', 'Label', 'Values'],
    labelRows(rows).map(({ series, label, values }) => [code(series), code(label), values]),
  )
}

/** Many series have the same labels: each label once, with the series by what their names start with. */
function sharedLabelTable(rows: MetricRows): string {
  const groups = Map.groupBy(labelRows(rows), ({ label, values }) => `${label} ${values}`)
  return table(
    ['Label', 'Series', 'Values'],
    [...groups.values()].map((group) => {
      const names = group.map(({ series }) => series)
      const [{ label, values } = { label: '', values: '' }] = group
      return [code(label), names.length < 4 ? names.map(code).join(', ') : code(`${commonStart(names)}*`), values]
    }),
  )
}

function commonStart([first = '', ...others]: readonly string[]): string {
  let length = first.length
  while (!others.every((name) => name.startsWith(first.slice(0, length)))) length--
  return first.slice(0, length)
}
