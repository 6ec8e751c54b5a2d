import type { EventFact } from '../kube/events.ts'
import type { Counts } from './count.ts'
import type { FinalizerPlan } from './finalizer.ts'
import { nodeList } from './summary-text.ts'
import { conditionOf, type SkyhookStatus } from './skyhook-status.ts'

export type Told = Pick<EventFact, 'type' | 'reason' | 'message'>

/** What was told of a Skyhook already: keys of problems that have not gone away since. */
export type ToldProblems = ReadonlySet<string>

const MOST_PROBLEMS_AT_ONCE = 5

/** Events for what turned between two statuses that were written one after the other. */
export function turnsOf(before: SkyhookStatus | undefined, after: SkyhookStatus): Told[] {
  const told: Told[] = []
  const [was, is] = [conditionOf(before, 'Ready'), conditionOf(after, 'Ready')]
  if (is?.status === 'True' && was?.status !== 'True') told.push({ type: 'Normal', reason: 'Complete', message: is.message })
  if (was?.status === 'True' && is?.status === 'False' && is.reason !== 'SpecChanged' && is.reason !== 'Deleting') {
    told.push({ type: 'Normal', reason: 'Incomplete', message: is.message })
  }
  const [wasStalled, stalled] = [conditionOf(before, 'Stalled'), conditionOf(after, 'Stalled')]
  if (stalled?.status === 'True' && (wasStalled?.status !== 'True' || wasStalled.reason !== stalled.reason)) {
    told.push({ type: 'Warning', reason: stalled.reason, message: stalled.message })
  }
  return told
}

/**
 * What the nodes report that a person should hear of, once for each reason and message, however many nodes say it. `known` are the
 * problems told before; what is gone from the result may be told again when it comes back.
 */
export function problemsOf({ nodes }: Counts, known: ToldProblems): { readonly told: readonly Told[]; readonly problems: ToldProblems } {
  const groups = new Map<string, { reason: string; message: string; names: string[] }>()
  for (const { name, agent, reason } of nodes) {
    const problem = agent === 'silent' ? { reason: 'AgentNotReady', message: 'no Ready agent for ten minutes' } : reason
    if (problem === undefined || quiet.has(problem.reason)) continue
    const key = `${problem.reason}: ${problem.message}`
    const group = groups.get(key) ?? { ...problem, names: [] }
    group.names.push(name)
    groups.set(key, group)
  }
  const news = [...groups].filter(([key]) => !known.has(key)).slice(0, MOST_PROBLEMS_AT_ONCE)
  const told = news.map(
    ([, { reason, message, names }]): Told => ({ type: 'Warning', reason, message: `${nodeList(names, 5)}: ${message}` }),
  )
  const rest = [...groups.keys()].filter((key) => known.has(key))
  return { told, problems: new Set([...rest, ...news.map(([key]) => key)]) }
}

/** Reasons of every healthy rollout, and what a person asked for himself. */
const quiet: ReadonlySet<string> = new Set([
  'Preparing',
  'WaitingForSlot',
  'WaitingForPriority',
  'WaitingForBatch',
  'RuntimeRequired',
  'ProtectedPods',
  'RebootPending',
  'NodeNotReady',
  'Soaking',
  'Takeover',
  'Paused',
  'Disabled',
  'Ignored',
])

/** Nodes that keep packages of a Skyhook that goes, because they are dead. */
export function skippedNodes(plan: FinalizerPlan): Told[] {
  if (plan.do !== 'remove' || plan.skipped.length === 0) return []
  const message = `deleted without uninstalling from ${nodeList(plan.skipped)}: no Ready agent there for ten minutes`
  return [{ type: 'Warning', reason: 'UninstallSkipped', message }]
}
