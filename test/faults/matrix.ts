/** Which failpoint is combined with which fault. */
import { faultNames, type FaultName } from './fault-names.ts'
import type { WorkloadName } from './workloads.ts'

export type Case = { readonly workload: WorkloadName; readonly point: string; readonly fault: FaultName }

/** Cases in which the agent once failed; every sample contains them. */
const regressions: readonly Case[] = [
  // waited for a restart that nothing had requested
  { workload: 'service', fault: 'agent killed', point: 'fsync:interrupts#1' },
  { workload: 'service', fault: 'host rebooted', point: 'api:PATCH-nodes#2' }, // the same across a boot
  // a start refused by the shutdown counted as failed
  { workload: 'reboot', fault: 'host rebooted', point: 'fsync:journal#2' },
  { workload: 'service', fault: 'disk full', point: 'fsync:agent/#4' }, // the journal was not written again
  { workload: 'service', fault: 'power cut', point: 'api:PATCH-nodes/status#2' }, // a complete package with empty files
  // no summary of the checks before the interrupt
  { workload: 'reboot', fault: 'power cut', point: 'bus:StartTransientUnit#4' },
  { workload: 'change', fault: 'power cut', point: 'fsync:flags/#2' }, // the same for the stage before the current one
]

/** Every failpoint of every workload with every fault. */
export function allCases(points: Readonly<Record<WorkloadName, readonly string[]>>, only: Partial<Case> = {}): Case[] {
  const cases = (Object.entries(points) as [WorkloadName, readonly string[]][]).flatMap(([workload, list]) =>
    faultNames.flatMap((fault) => list.map((point) => ({ workload, point, fault }))),
  )
  return cases.filter((one) =>
    (Object.keys(only) as (keyof Case)[]).every((key) => only[key] === undefined || one[key] === only[key]),
  )
}

/**
 * `size` of the cases, spread evenly over workloads, faults and time, and the same for the same list; `shift` selects
 * neighbours, so that samples with different shifts differ.
 */
export function sample<T>(cases: readonly T[], size: number, shift = 0): T[] {
  if (size >= cases.length) return [...cases]
  return Array.from(
    { length: size },
    (_, index) => cases[(Math.floor((index * cases.length) / size) + shift) % cases.length] as T,
  )
}

export const caseName = ({ workload, fault, point }: Case): string => `${workload}, ${fault} at ${point}`

const isSameCase = (a: Case, b: Case): boolean =>
  a.workload === b.workload && a.fault === b.fault && a.point === b.point

/** A sample, plus the cases among these in which the agent once failed. */
export function sampleWithRegressions(cases: readonly Case[], size: number, shift: number): Case[] {
  const regressionCases = cases.filter((one) => regressions.some((other) => isSameCase(one, other)))
  return [...regressionCases, ...sample(cases, size, shift).filter((one) => !regressionCases.includes(one))]
}

/** Rounds for the fault that affects all runners at once, and the other cases one by one. */
export function split(
  cases: readonly Case[],
  runners: number,
): { readonly single: readonly Case[]; readonly rounds: readonly (readonly Case[])[] } {
  const simultaneous = cases.filter(({ fault }) => fault === 'API server down')
  const rounds = Array.from({ length: Math.ceil(simultaneous.length / runners) }, (_, index) =>
    simultaneous.slice(index * runners, (index + 1) * runners),
  )
  return { single: cases.filter(({ fault }) => fault !== 'API server down'), rounds }
}

/** The same cases, ordered so that any first part of them is spread over all. */
export function spread<T>(cases: readonly T[]): T[] {
  let stride = Math.max(1, Math.round(cases.length * goldenRatio))
  while (greatestCommonDivisor(stride, cases.length) > 1) stride++
  return cases.map((_, index) => cases[(index * stride) % cases.length] as T)
}

const goldenRatio = (Math.sqrt(5) - 1) / 2
const greatestCommonDivisor = (a: number, b: number): number => (b === 0 ? a : greatestCommonDivisor(b, a % b))
