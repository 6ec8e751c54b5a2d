/** A plan as JSON: `schemas/` has its schema. Pure. */
import type { Known } from '../../stages/model/snapshot.ts'
import type { PlanGroup } from './plan-groups.ts'
import type { SkyhookPlan } from './skyhook-plan.ts'

export function planItem(plan: SkyhookPlan, skyhookWouldDisrupt: boolean | undefined): object {
  const { skyhook, compartments, groups, duration, doubtful, warnings } = plan
  return {
    skyhook,
    disrupts: skyhookWouldDisrupt ?? null,
    compartments: compartments.map(({ compartment, isJoining, nodes, limit, source, batches }) => ({
      name: compartment,
      ...(isJoining && { joining: true }),
      nodes: nodes.length,
      limit: limit ?? null,
      source,
      ...(batches && { batches }),
    })),
    duration: durationItem(duration),
    groups: groups.known ? groups.value.map((group, index) => groupItem(group, plan.pods.get(index))) : null,
    ...(groups.known ? {} : { unknown: groups.why }),
    doubtfulNodes: doubtful,
    warnings,
  }
}

function durationItem(duration: SkyhookPlan['duration']): object {
  if (duration.state !== 'estimated') return duration
  const { p50Ms, p95Ms, history } = duration
  const seconds = (ms: number): number => Math.round(ms / 1_000)
  return {
    state: 'estimated',
    p50Seconds: seconds(p50Ms),
    p95Seconds: seconds(p95Ms),
    history: {
      rollouts: history.rollouts,
      nodes: history.nodes,
      slotP50Seconds: seconds(history.p50Ms),
      slotP95Seconds: seconds(history.p95Ms),
    },
  }
}

function groupItem(group: PlanGroup, pods: Known<object> | undefined): object {
  const { nodes, compartment, isJoining, mayStart, selection, isDisruptive, isDueAnyway } = group
  const { steps, stepsIfAsked, causes, obstacle, agent } = group
  return {
    nodes,
    compartment,
    ...(isJoining && { joining: true }),
    selection,
    mayStart,
    disrupts: isDisruptive,
    dueAnyway: isDueAnyway,
    steps,
    ...(stepsIfAsked && { stepsIfAsked }),
    interruptCauses: causes.map(({ isConditional, ...cause }) => ({ ...cause, conditional: isConditional })),
    ...(pods && { pods: pods.known ? pods.value : { unknown: pods.why } }),
    ...(obstacle && { obstacle: { reason: obstacle.reason, message: obstacle.message } }),
    ...(agent !== undefined && { agent }),
  }
}
