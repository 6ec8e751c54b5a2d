/** Answers of two servers in the form in which they must be equal: without uids, times and what differs by chance. */
import { fieldsOf, isFields, without } from './json.ts'
import type { TranscriptEntry } from './semantics-script.ts'

/** The same value becomes the same symbol wherever it occurs: a resourceVersion that stays, a uid in a message. */
function createSymbols(prefix: string): (value: string) => string {
  const known = new Map<string, string>()
  return (value) => {
    const symbol = known.get(value) ?? `${prefix}-${known.size + 1}`
    known.set(value, symbol)
    return symbol
  }
}

export function inNormalForm(transcript: readonly TranscriptEntry[]): TranscriptEntry[] {
  const uid = createSymbols('uid')
  const version = createSymbols('version')

  const text = (value: string): string =>
    value
      .replace(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, uid)
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'time')
      .replace(/\b(settings-)\w{5}\b/, '$1chance')
      .replace(/current: \d+/, 'current: version')
      .replace(/(too old resource version:).*/, '$1 …')
      .replace(
        /(ResourceVersion in (?:precondition|the precondition|record)) \((\d+)\)/g,
        (_, what: string, found: string) => `${what} (${version(found)})`,
      )
      .replace(/(invalid continue token).*/, '$1')
      .replace(/(The provided continue parameter is too old).*/, '$1 …')

  const metadata = (value: Readonly<Record<string, unknown>>): unknown => {
    const { resourceVersion, continue: token, ...rest } = without(value, 'managedFields')
    const isObject = 'name' in value
    const isPage = resourceVersion !== undefined && token !== undefined && token !== '' // not a hint beside a refusal
    return {
      ...Object.fromEntries(Object.entries(rest).map(([key, field]) => [key, normal(field)])),
      ...(isObject && { resourceVersion: version(String(resourceVersion)) }),
      ...(isPage && { continue: 'token' }),
    }
  }

  const normal = (value: unknown): unknown => {
    if (typeof value === 'string') return text(value)
    if (Array.isArray(value)) return value.map(normal)
    if (!isFields(value)) return value
    const object = withoutDefaults(value)
    return Object.fromEntries(
      Object.entries(object).map(([key, field]) => [
        key,
        key === 'metadata' && isFields(field) ? metadata(field) : normal(field),
      ]),
    )
  }
  return transcript.map(({ title, summary, answer }) => ({ title, summary, answer: normal(answer) }))
}

/** Without the defaults of the real server that the simulated one leaves out. */
function withoutDefaults(object: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if ('containers' in fieldsOf(object['spec'])) {
    const { nodeName, terminationGracePeriodSeconds } = fieldsOf(object['spec'])
    const { phase, conditions } = fieldsOf(object['status'])
    const own = ['lastProbeTime', 'lastTransitionTime']
    const kept = Array.isArray(conditions) ? conditions.map((one) => without(fieldsOf(one), ...own)) : []
    return { ...object, spec: { nodeName, terminationGracePeriodSeconds }, status: { phase, conditions: kept } }
  }
  if (!isFields(object['status'])) return object
  const status = without(object['status'], 'daemonEndpoints', 'nodeInfo')
  return Object.keys(status).length === 0 ? without(object, 'status') : { ...object, status }
}
