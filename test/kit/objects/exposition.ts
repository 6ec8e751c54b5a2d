/** The text format in which an agent serves its metrics. */

export type Labels = Readonly<Record<string, string>>
export type Sample = { readonly name: string; readonly labels: Labels; readonly value: number }

const line = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/
const label = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)/y
const escapes: Readonly<Record<string, string>> = { '\\n': '\n', '\\"': '"', '\\\\': '\\' }

/** All samples of an answer. Throws if a line is not one, and on timestamps, which agents never send. */
export function parseExposition(text: string): Sample[] {
  return text
    .split('\n')
    .filter((one) => one !== '' && !one.startsWith('#'))
    .map((one) => {
      const [, name, labels = '', value] = line.exec(one) ?? []
      if (name === undefined || value === undefined) throw new Error(`not a sample: ${JSON.stringify(one)}`)
      return { name, labels: parseLabels(labels), value: parseValue(value) }
    })
}

function parseLabels(text: string): Labels {
  const labels: Record<string, string> = {}
  let end = 0
  while (end < text.length) {
    label.lastIndex = end
    const [whole, name = '', value = ''] = label.exec(text) ?? []
    if (whole === undefined) throw new Error(`not labels: ${JSON.stringify(text)}`)
    labels[name] = value.replace(/\\./g, (escape) => escapes[escape] ?? escape)
    end += whole.length
  }
  return labels
}

function parseValue(text: string): number {
  const infinities: Readonly<Record<string, number>> = { '+Inf': Infinity, '-Inf': -Infinity }
  const value = infinities[text] ?? Number(text)
  if (Number.isNaN(value)) throw new Error(`not a value: ${JSON.stringify(text)}`)
  return value
}

/** `{a="1",b="2"}`, sorted: the same for the same labels. */
export function formatLabels(labels: Labels): string {
  const pairs = Object.entries(labels)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, value]) => `${name}="${value.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n')}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

export function formatValue(value: number): string {
  if (value === Infinity) return '+Inf'
  return value === -Infinity ? '-Inf' : String(value)
}
