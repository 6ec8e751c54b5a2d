/**
 * Generates the chart's copies of the resource definitions (helm reads no file outside a chart), its Grafana dashboard,
 * and the table of values in its README, from values.yaml and its comments. `node build/generate/chart-files.ts` writes them.
 * The unit test beside this file fails when they are stale.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isMap, isScalar, parseDocument, type YAMLMap } from 'yaml'
import { dashboard } from '../dashboard/dashboard.ts'

const root = join(import.meta.dirname, '..', '..')
const readme = join(root, 'chart', 'README.md')
const tableMarkers = ['<!-- values: generated from values.yaml -->', '<!-- end of values -->'] as const

/** Paths and contents of all generated files. Deterministic. */
export function chartFiles(): Map<string, string> {
  const files = new Map<string, string>()
  for (const name of readdirSync(join(root, 'crds')).sort()) {
    files.set(join(root, 'chart', 'crd-files', name), readFileSync(join(root, 'crds', name), 'utf8'))
  }
  files.set(join(root, 'chart', 'monitoring', 'dashboard.json'), `${JSON.stringify(dashboard(), null, 2)}\n`)
  const values = readFileSync(join(root, 'chart', 'values.yaml'), 'utf8')
  files.set(readme, withValues(readFileSync(readme, 'utf8'), values))
  return files
}

/** The chart's README with the table of these values. */
export function withValues(text: string, values: string): string {
  const { contents } = parseDocument(values)
  if (!isMap(contents)) throw new Error('chart/values.yaml is not a mapping')
  return withTable(text, rows(contents))
}

function withTable(text: string, lines: readonly string[]): string {
  const [before, rest] = text.split(tableMarkers[0])
  const [, after] = rest?.split(tableMarkers[1]) ?? []
  if (before === undefined || after === undefined)
    throw new Error(`chart/README.md lacks the markers ${tableMarkers.join(' and ')}`)
  const table = ['| Value | Default | Meaning |', '|---|---|---|', ...lines].join('\n')
  return `${before}${tableMarkers[0]}\n${table}\n${tableMarkers[1]}${after}`
}

/** One row for every value that is not a group of commented values; a group's comment introduces its first row. */
function rows(map: YAMLMap, prefix = '', introduction = ''): string[] {
  let pending = introduction
  return map.items.flatMap((pair, index) => {
    if (!isScalar(pair.key)) throw new Error(`${prefix}: a key of values.yaml is not a plain name`)
    const path = `${prefix}${String(pair.key.value)}`
    // The first comment of a mapping belongs to the mapping, not to its first key; the file's own introduction ends at
    // a blank line.
    const comment = (index === 0 ? (map.commentBefore ?? '') : (pair.key.commentBefore ?? ''))
      .split('\n')
      .map((line) => line.trim())
    const meaning = [pending, ...comment].filter((line) => line !== '').join(' ')
    pending = ''
    if (isMap(pair.value) && !opaqueValues.has(path) && pair.value.items.length > 0)
      return rows(pair.value, `${path}.`, meaning)
    const text = meaning.replaceAll('|', '\\|').replaceAll('<', '&lt;')
    return [`| \`${path}\` | \`${JSON.stringify(plain(pair.value))}\` | ${text} |`]
  })
}

/** Objects whose inner structure is not the chart's; the table leaves it out. */
const opaqueValues = new Set([
  'resources',
  'nodeSelector',
  'updateStrategy',
  'seLinuxOptions',
  'metrics.dashboard.labels',
])

const plain = (node: unknown): unknown => (node as { toJSON?: () => unknown } | null)?.toJSON?.() ?? null

if (import.meta.main) {
  for (const [path, text] of chartFiles()) writeFileSync(path, text)
}
