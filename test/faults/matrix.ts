/** Which point meets which fault. */
import { faultNames, type FaultName } from './faults.ts'
import type { WorkloadName } from './workloads.ts'

export type Case = { readonly workload: WorkloadName; readonly point: string; readonly fault: FaultName }

/** Where the agent once failed; a sample has these, too. */
const regressions: readonly Case[] = [
  { workload: 'service', fault: 'agent killed', point: 'fsync:interrupts#1' }, // waited for a restart that nobody had asked for
  { workload: 'service', fault: 'host rebooted', point: 'api:PATCH-nodes#2' }, // the same, over a boot
  { workload: 'reboot', fault: 'host rebooted', point: 'fsync:journal#2' }, // a start that the shutdown refused counted as failed
  { workload: 'service', fault: 'disk full', point: 'fsync:agent/#4' }, // the journal was not tried again
  { workload: 'service', fault: 'power cut', point: 'api:PATCH-nodes/status#2' }, // a complete package with empty files
  { workload: 'reboot', fault: 'power cut', point: 'bus:StartTransientUnit#4' }, // no summary of the checks before the interrupt
  { workload: 'change', fault: 'power cut', point: 'fsync:flags/#2' }, // the same of the stage before the one under way
]

/** Every point of every workload with every fault. */
export function allCases(points: Readonly<Record<WorkloadName, readonly string[]>>, only: Partial<Case> = {}): Case[] {
  const cases = (Object.entries(points) as [WorkloadName, readonly string[]][]).flatMap(([workload, list]) =>
    faultNames.flatMap((fault) => list.map((point) => ({ workload, point, fault }))),
  )
  return cases.filter((one) =>
    (Object.keys(only) as (keyof Case)[]).every((key) => only[key] === undefined || one[key] === only[key]),
  )
}

/**
 * `size` of them, spread evenly over lives, faults and time, the same for the same list; `shift` takes neighbours
 * instead, so that samples of different shifts are different.
 */
export function sample<T>(cases: readonly T[], size: number, shift = 0): T[] {
  if (size >= cases.length) return [...cases]
  return Array.from(
    { length: size },
    (_, index) => cases[(Math.floor((index * cases.length) / size) + shift) % cases.length] as T,
  )
}

export const isSameCase = (a: Case, b: Case): boolean =>
  a.workload === b.workload && a.fault === b.fault && a.point === b.point

/** A sample and, of those where the agent once failed, the ones that are among the cases. */
export function sampleWithRegressions(cases: readonly Case[], size: number, shift: number): Case[] {
  const regressionCases = cases.filter((one) => regressions.some((other) => isSameCase(one, other)))
  return [...regressionCases, ...sample(cases, size, shift).filter((one) => !regressionCases.includes(one))]
}

/** Rounds for a fault that strikes all runners at once, and the rest one by one. */
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

/** Cases that a log of the fault campaign has as passed. */
export function passedCases(log: string): Case[] {
  const lines = log.matchAll(/ passed: (\S+), (.+) at (\S+) \([\d.]+ s\)$/gm)
  return [...lines].map(([, workload, fault, point]) => ({ workload, fault, point }) as Case)
}

/** The same cases, in an order in which the first of them are spread over all. */
export function spread<T>(cases: readonly T[]): T[] {
  let stride = Math.max(1, Math.round(cases.length * goldenRatio))
  while (greatestCommonDivisor(stride, cases.length) > 1) stride++
  return cases.map((_, index) => cases[(index * stride) % cases.length] as T)
}

const goldenRatio = (Math.sqrt(5) - 1) / 2
const greatestCommonDivisor = (a: number, b: number): number => (b === 0 ? a : greatestCommonDivisor(b, a % b))
