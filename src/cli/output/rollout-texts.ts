/** Texts about a rollout that the terminal and the dashboard share. Pure, without modules of Node. */
import { named } from '../../schemas/wording.ts'
import { durationText } from './durations.ts'

const maxVersions = 3

type PackageVersions = { readonly name: string; readonly version?: string; readonly from: readonly string[] }

/** `tuned 1.0.0 -> 1.1.0`; installed versions come first, if they differ from the next one. */
export function packageText({ name, version, from }: PackageVersions): string {
  const before = named(from, maxVersions)
  if (version === undefined) return `${name} ${before} -> removed`
  return from.length === 0 ? `${name} ${version}` : `${name} ${before} -> ${version}`
}

type Pace = { readonly nodesPerHour: number; readonly restMs: number; readonly measured: number }

/** The rate in two digits, as a plain number: 750, 7.5, 0.75. */
export const paceText = ({ nodesPerHour, restMs, measured }: Pace): string =>
  `${Number(nodesPerHour.toPrecision(2))} nodes per hour by the last ${measured}, about ${durationText(restMs)} left`

/** Not every node that uses the budget is out of service: some work needs no interrupt. */
export function budgetUseText(limit: number | 'unlimited' | { readonly unknown: string }, used: number): string {
  if (limit === 'unlimited') return `no limit, ${used} in use`
  return typeof limit === 'number' ? `${used} of ${limit} in use` : `${used} in use, limit unknown: ${limit.unknown}`
}
