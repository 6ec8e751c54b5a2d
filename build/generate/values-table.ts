/** The table of values in the chart's README, from values.yaml and its comments. */
import { isMap, isScalar, parseDocument, type YAMLMap } from 'yaml'

const tableMarkers = ['<!-- values: generated from values.yaml -->', '<!-- end of values -->'] as const

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
