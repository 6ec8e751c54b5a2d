/** The outcome of a workload without what differs from run to run, and the comparison of two outcomes. */
import { cordonedBeforeKey, cordonKey } from '../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import type { Line } from '../kit/files/journal-lines.ts'
import { publishedState } from '../kit/cluster/skyhooks.ts'

export type Outcome = {
  /** What the Node shows. */
  readonly node: Readonly<Record<string, unknown>>
  /** Files below the Skyhook's folder on the host, by path. */
  readonly files: Readonly<Record<string, string>>
  /** Steps that ran, in order, and starts of the service. */
  readonly lines: readonly Line[]
  readonly boots: number
  /** Messages of the Events about steps with an unknown outcome. */
  readonly unknown: readonly string[]
}

/** What a Node shows of a Skyhook. */
export function nodeOutcome(node: KubernetesNode, skyhook: string): Outcome['node'] {
  const { status, label, state, reason, notReady, erroring } = publishedState(node, skyhook)
  const { annotations = {} } = node.metadata
  return {
    status,
    label,
    state,
    reason,
    notReady,
    erroring,
    marks: [cordonKey(skyhook), cordonedBeforeKey].filter((key) => key in annotations),
    isCordoned: node.spec?.unschedulable ?? false,
  }
}

/** Replaces times, uids and the given names by words. */
export function normalize(text: string, replacements: Readonly<Record<string, string>>): string {
  let result = text
  for (const [name, word] of Object.entries(replacements)) result = result.replaceAll(name, word)
  return result
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'UID')
    .replaceAll(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,]?\d*(Z|[+-]\d\d:\d\d)?/g, 'TIME')
    .replaceAll(/\.\.\d{4}(_\d\d){5}\.\w+/g, '..DATA') // the folder behind the links of a mounted ConfigMap
    .replaceAll(/\b1[789]\d{8,}(\.\d+)?\b/g, 'TIME')
}

const stepOf = ({ package: name, version, mode, step, args }: Line): string =>
  mode === 'started' ? `${name} was started` : [name, version, mode, step, args].join(' ').trim()

/**
 * Every deviation from the undisturbed outcome, as a sentence. `hasHostEnded`: the fault ended everything on the host.
 */
export function deviationsOf(found: Outcome, expected: Outcome, hasHostEnded: boolean): string[] {
  return [
    ...differences('the Node', found.node, expected.node),
    ...differences('files', found.files, expected.files),
    ...stepDeviations(found, expected, hasHostEnded),
    ...bootDeviations(found.boots, expected.boots, hasHostEnded),
  ]
}

function differences(
  what: string,
  found: Readonly<Record<string, unknown>>,
  expected: Readonly<Record<string, unknown>>,
): string[] {
  return [...new Set([...Object.keys(found), ...Object.keys(expected)])].toSorted().flatMap((key) => {
    const [one, other] = [JSON.stringify(found[key]), JSON.stringify(expected[key])]
    return one === other ? [] : [`${what}: ${key} is ${one}, not ${other}`]
  })
}

/**
 * No step is missing, and none runs again after it has completed. The one exception: when the host ends during a step
 * or its outcome cannot be written, its progress is unknown. That is reported, and the step is repeated.
 */
function stepDeviations({ lines, unknown }: Outcome, expected: Outcome, hasHostEnded: boolean): string[] {
  const count = (of: readonly Line[]): Map<string, number> => {
    const counts = new Map<string, number>()
    for (const line of of) counts.set(stepOf(line), (counts.get(stepOf(line)) ?? 0) + 1)
    return counts
  }
  const [actualCounts, expectedCounts] = [count(lines), count(expected.lines)]
  const deviations: string[] = []
  for (const step of new Set([...actualCounts.keys(), ...expectedCounts.keys()])) {
    const [times, expectedTimes] = [actualCounts.get(step) ?? 0, expectedCounts.get(step) ?? 0]
    const mode = step.split(' ')[2] ?? ''
    if (step.endsWith(' was started')) {
      if (hasHostEnded || times === expectedTimes) continue // it was restarted before the host ended, or by the boot
    } else if (times > expectedTimes) {
      if (step.endsWith(' SIGTERM') && hasHostEnded) continue
      const reportedCount = unknown.filter((message) => message.includes(`${mode} `)).length
      const ended = lines.filter((line) => line.mode === mode && line.args.endsWith('SIGTERM')).length
      if (times - expectedTimes <= reportedCount + (hasHostEnded ? ended : 0)) continue
    } else if (times === expectedTimes) continue
    deviations.push(`step: ${step} ran ${times} times, not ${expectedTimes}`)
  }
  return deviations
}

function bootDeviations(found: number, expected: number, hasHostEnded: boolean): string[] {
  const maxBoots = expected + (hasHostEnded ? 1 : 0)
  const minBoots = Math.max(expected, hasHostEnded ? 1 : 0)
  return found >= minBoots && found <= maxBoots
    ? []
    : [`the host booted ${found} times, not ${minBoots === maxBoots ? minBoots : `${minBoots} or ${maxBoots}`}`]
}
