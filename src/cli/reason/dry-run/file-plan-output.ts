/** Formats the plan of a file for people and for programs. Pure. */
import { named } from '../../../schemas/wording.ts'
import type { Known } from '../../../stages/model/snapshot.ts'
import { envelope } from '../../base/output/print.ts'
import { markdown, planText, type TextForm, terminal } from '../plan/plan-text.ts'
import { closedNodes, type PlanGroup, type SkyhookPlan, wouldDisrupt } from '../plan/skyhook-plan.ts'
import type { FilePlan } from './plan-file.ts'
import type { RehearsedWrite } from './rehearsed-write.ts'

const maxOthers = 6

export function filePlanText(
  { writes, plans, others, disrupts, isRefused }: FilePlan,
  how: 'text' | 'markdown',
): string {
  const form = how === 'markdown' ? markdown : terminal
  const objects = writes.map((write) => form.heading(headlineOf(write)) + form.list(writeLines(write)))
  const blocks = plans.map((plan) => form.heading(`Nodes of Skyhook ${plan.skyhook}`) + planText(plan, form))
  const closed = new Set(plans.flatMap(closedNodes)).size
  const verdict = isRefused
    ? 'Refused: nothing would be done.'
    : disrupts === undefined
      ? 'Whether nodes would be disrupted is unknown.'
      : disrupts
        ? 'Nodes would be disrupted.'
        : closed > 0
          ? `No node would be disrupted, and ${closed} would be closed for new pods.`
          : 'No node would be disrupted.'
  const unplanned =
    others.length === 0 ? '' : form.heading('Not planned') + form.list([`agents ignore ${named(others, maxOthers)}`])
  return [...objects, ...blocks, unplanned, closing(form, verdict)].join('')
}

const closing = (form: TextForm, verdict: string): string => (form === markdown ? `**${verdict}**\n` : `${verdict}\n`)

const headlineOf = ({ kind, name, change }: RehearsedWrite): string =>
  change === 'unchanged' ? `${kind} ${name} would not change` : `${kind} ${name} would be ${change}`

function writeLines({ fields, admission, change }: RehearsedWrite): readonly string[] {
  const { checkedBy, why, refusals, warnings } = admission
  const checked =
    checkedBy === 'server'
      ? refusals.length > 0
        ? []
        : ['the API server accepts it (dry run)']
      : checkedBy === 'tool'
        ? [`the API server was not asked, ${why ?? ''}: checked by the rules of this version`]
        : change === 'unchanged'
          ? []
          : [why ?? '']
  return [
    ...refusals.map((text) => `REFUSED: ${text}`),
    ...checked,
    ...warnings.map((text) => `warning: ${text}`),
    ...fields.map(({ field, change: how, before, after }) => {
      const values = [before, after].flatMap((value) => (value === undefined ? [] : JSON.stringify(value))).join(' -> ')
      return `${how} ${field}${values === '' ? '' : `: ${values}`}`
    }),
  ]
}

/** An envelope with the result, the changed objects, and the plan of each Skyhook. */
export const filePlanDocument = ({ writes, plans, others, isRefused, disrupts }: FilePlan): object => ({
  ...envelope(
    'Plan',
    plans.map((plan) => planItem(plan, wouldDisrupt(plan))),
  ),
  refused: isRefused,
  disrupts: disrupts ?? null,
  objects: writes.map(({ kind, name, change, fields, admission }) => ({ kind, name, change, fields, admission })),
  unplanned: others,
})

function planItem(plan: SkyhookPlan, skyhookWouldDisrupt: boolean | undefined): object {
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
