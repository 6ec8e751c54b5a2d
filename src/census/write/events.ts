import type { EventInput } from '../../kube/events.ts'
import type { SkyhookConditionReason } from '../../schemas/catalogue/conditions.ts'
import type { SkyhookSpec } from '../../schemas/skyhook.ts'
import { eventTypeOf, type SkyhookEventReason } from '../../schemas/catalogue/events.ts'
import { isReportedOn } from '../../schemas/catalogue/reason.ts'
import { clip } from '../../schemas/plain-text.ts'
import type { Counts } from '../model/count.ts'
import type { FinalizerPlan } from '../model/finalizer.ts'
import { named } from '../../schemas/wording.ts'
import { formatNodeNames } from '../model/summary-text.ts'
import { conditionOf, type SkyhookStatus } from '../model/skyhook-status.ts'

export type SkyhookEvent = Pick<EventInput, 'type' | 'reason' | 'message'>

const skyhookEvent = (reason: SkyhookEventReason, message: string): SkyhookEvent => ({
  type: eventTypeOf(reason),
  reason,
  message,
})

/** Problems of a Skyhook that are reported already and still exist, by key. */
export type ReportedProblems = ReadonlySet<string>

/** Messages name pods and paths, so each node may have its own. The conditions have the others of a reason. */
const maxMessagesPerReason = 5
/** The API server accepts 1,024 characters of a message. */
const maxTagsLength = 1_000
const agentNotReady: SkyhookEventReason = 'AgentNotReady'

/** Events for the conditions that changed between two successive statuses. */
export function transitionEvents(before: SkyhookStatus | undefined, after: SkyhookStatus): SkyhookEvent[] {
  const events: SkyhookEvent[] = []
  const [was, is] = [conditionOf(before, 'Ready'), conditionOf(after, 'Ready')]
  if (is?.status === 'True' && was?.status !== 'True') events.push(skyhookEvent('Complete', is.message))
  const isUnexpected = is?.reason !== 'SpecChanged' && is?.reason !== 'Deleting'
  if (was?.status === 'True' && is !== undefined && is.status !== 'True' && isUnexpected) {
    events.push(skyhookEvent('Incomplete', is.message))
  }
  const [wasStalled, stalled] = [conditionOf(before, 'Stalled'), conditionOf(after, 'Stalled')]
  const isNewlyStalled = wasStalled?.status !== 'True' || wasStalled.reason !== stalled?.reason
  if (stalled?.status === 'True' && (isNewlyStalled || hasNewStop(before, after))) {
    events.push(skyhookEvent(stalled.reason as SkyhookConditionReason<'Stalled'>, stalled.message))
  }
  return events
}

/** Another compartment was stopped, while one is stopped already. */
const hasNewStop = (before: SkyhookStatus | undefined, after: SkyhookStatus): boolean =>
  Object.entries(after.compartmentStatuses ?? {}).some(
    ([name, { batchState }]) =>
      batchState?.shouldStop === true && before?.compartmentStatuses?.[name]?.batchState?.shouldStop !== true,
  )

/**
 * Events for problems of nodes, once for each reason and message, regardless of how many nodes report it, and of each
 * reason for five messages at a time. `known` are the problems reported before; one that is missing from the result is
 * reported again when it returns.
 */
export function problemEvents(
  counts: Counts,
  known: ReportedProblems,
): { readonly events: readonly SkyhookEvent[]; readonly problems: ReportedProblems } {
  const groups = new Map<string, { reason: string; message: string; names: string[] }>()
  for (const { name, agent, reason } of counts.nodes) {
    const problem = agent === 'silent' ? { reason: agentNotReady, message: 'no Ready agent for ten minutes' } : reason
    if (problem === undefined || !isReportedOn('Skyhook', problem.reason) || isOfSkyhook(counts, problem)) continue
    const key = `${problem.reason}: ${problem.message}`
    const group = groups.get(key) ?? { ...problem, names: [] }
    group.names.push(name)
    groups.set(key, group)
  }
  const reportedOf = new Map<string, number>()
  const takePlace = (reason: string): boolean => {
    const place = reportedOf.get(reason) ?? 0
    reportedOf.set(reason, place + 1)
    return place < maxMessagesPerReason
  }
  for (const [key, { reason }] of groups) if (known.has(key)) takePlace(reason)
  const newProblems = [...groups].filter(([key, { reason }]) => !known.has(key) && takePlace(reason))
  const events = newProblems.map(
    ([, { reason, message, names }]): SkyhookEvent => ({
      type: 'Warning',
      reason,
      message: `${named(names, 5)}: ${message}`,
    }),
  )
  const rest = [...groups.keys()].filter((key) => known.has(key))
  return { events, problems: new Set([...rest, ...newProblems.map(([key]) => key)]) }
}

/**
 * One Event about images with a tag that is not the version: the version is pulled instead. `known` as above.
 */
export function imageTagEvents(
  { packages = {} }: SkyhookSpec,
  known: ReportedProblems,
): { readonly events: readonly SkyhookEvent[]; readonly problems: ReportedProblems } {
  const ignored = Object.entries(packages).flatMap(([name, { image, version }]) => {
    const [, tag = version] = /^[^@]*:([^/:@]+)(?:@|$)/.exec(image) ?? []
    return tag === version ? [] : `the tag ${tag} of package ${name} (version ${version} is pulled)`
  })
  if (ignored.length === 0) return { events: [], problems: new Set() }
  const problem = `ignored: ${ignored.join(', ')}`
  const events = known.has(problem) ? [] : [skyhookEvent('ImageTagIgnored', clip(problem, maxTagsLength))]
  return { events, problems: new Set([problem]) }
}

/** Nodes repeat what `Stalled` of the Skyhook reports with an Event of its own. */
function isOfSkyhook({ policy, specProblem }: Counts, { reason, message }: Reported): boolean {
  if (policy?.state === 'missing' && reason === policyNotFound) return true
  if (policy?.state === 'unknown' && message === policy.why) return true
  return specProblem !== undefined && message === specProblem
}

type Reported = { readonly reason: string; readonly message: string }
const policyNotFound: SkyhookEventReason = 'DeploymentPolicyNotFound'

/** Events for dead nodes, which keep the packages of a deleted Skyhook. */
export function skippedNodeEvents(plan: FinalizerPlan): SkyhookEvent[] {
  if (plan.action !== 'remove' || plan.skipped.length === 0) return []
  const names = formatNodeNames(plan.skipped)
  const message = `deleted without uninstalling from ${names}: they had no Ready agent for ten minutes`
  return [skyhookEvent('UninstallSkipped', message)]
}
