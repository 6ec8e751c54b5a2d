/** The plan of one Skyhook as text for a terminal, or as Markdown for a pull request. Pure. */
import { shownLine, shownLines } from '../../../schemas/plain-text.ts'
import { counted, named, someOf } from '../../../schemas/wording.ts'
import type { Known } from '../../../stages/model/snapshot.ts'
import { durationText } from '../../base/output/durations.ts'
import type { CompartmentPlan } from './at-once.ts'
import type { DrainedPods, GuardingBudget } from './drained-pods.ts'
import type { InterruptCause } from './plan-node.ts'
import type { RehearsedInterrupt, RehearsedStep } from './rehearsal.ts'
import type { Duration, PlanGroup, SkyhookPlan } from './skyhook-plan.ts'

const maxPodNames = 10
const maxNodeNames = 6
const maxBatchSizes = 6

export function planText(plan: SkyhookPlan, form: TextForm): string {
  const { compartments, groups, doubtful, duration, warnings } = plan
  const general = [
    ...compartments.map(atOnceText),
    ...durationLines(duration),
    ...(groups.known ? [] : [`what nodes would do is unknown: ${groups.why}`]),
    ...warnings.map((text) => `warning: ${text}`),
    ...(groups.known && groups.value.length === 0 && warnings.length === 0 ? ['no node is selected'] : []),
    ...(doubtful.length === 0
      ? []
      : [`what is done already is not known for sure on ${named(doubtful, maxNodeNames)}: these may do more or less`]),
  ]
  const blocks = groups.known
    ? groups.value.map((group, index) => form.group(titleOf(group), groupLines(group, plan.pods.get(index))))
    : []
  return [form.list(general), ...blocks].join('')
}

function titleOf(group: PlanGroup): string {
  const { nodes, steps, mayStart, isDisruptive, isDueAnyway, selection, obstacle, agent } = group
  const count = `${counted(nodes.length, 'node')} (${named(nodes, maxNodeNames)})`
  const verdict = isDisruptive
    ? 'DISRUPTED'
    : steps.length === 0
      ? obstacle || agent !== undefined
        ? 'nothing for now'
        : isDueAnyway
          ? selection === 'leaves'
            ? 'nothing to do, its packages stay'
            : 'nothing to do'
          : 'nothing more, the current work is dropped'
      : isDueAnyway
        ? 'as without this change'
        : !mayStart
          ? 'none may start'
          : 'not disrupted'
  const selected = { stays: '', joins: ', newly selected', leaves: ', no longer selected' }[selection]
  return `${count}${selected}${group.isJoining ? ', joining the cluster' : ''}: ${verdict}`
}

function groupLines(group: PlanGroup, pods: Known<DrainedPods> | undefined): readonly string[] {
  const { steps, stepsIfAsked, causes, obstacle, agent } = group
  const conditional = causes.filter(({ isConditional }) => isConditional)
  return [
    ...steps.flatMap((step) => stepLines(step, causes, pods)),
    ...conditional.map(({ type, field }) => `${type} only if the package asks for it (${field})`),
    ...(stepsIfAsked ? [`if all packages ask for theirs: ${stepsIfAsked.map(shortText).join(', ')}`] : []),
    ...(obstacle ? [`held up: ${obstacle.reason}: ${obstacle.message}`] : []),
    ...(agent === undefined ? [] : [`nothing happens before its agent works: ${agent}`]),
  ]
}

function stepLines(
  step: RehearsedStep,
  causes: readonly InterruptCause[],
  pods: Known<DrainedPods> | undefined,
): readonly string[] {
  switch (step.do) {
    case 'taint':
      return ['CLOSED FOR NEW PODS until it is complete (autoTaintNewNodes): no Skyhook has worked on it before']
    case 'drain':
      return ['cordon and drain', ...drainLines(pods).map((line) => `  ${line}`)]
    case 'stage':
      return [`${step.package} ${step.version}: ${step.stage}`]
    case 'interrupt':
      return [interruptText(step, causes)]
  }
}

const shortText = (step: RehearsedStep): string => {
  switch (step.do) {
    case 'taint':
      return 'taint'
    case 'drain':
      return 'cordon and drain'
    case 'stage':
      return `${step.package} ${step.version}: ${step.stage}`
    case 'interrupt':
      return `interrupt: ${whatText(step, ' ')}`
  }
}

function interruptText(step: RehearsedInterrupt, causes: readonly InterruptCause[]): string {
  const { type, alsoRestartAllServices, packages } = step
  const types = new Set([type, ...(alsoRestartAllServices ? ['restartAllServices'] : [])])
  const why = causes.filter((one) => packages.includes(one.package) && !one.isConditional && types.has(one.type))
  const because = why.map(({ field, key }) => `${field}${key === undefined ? '' : ` matches ${key}`}`)
  const before = `the work of ${packages.join(', ')} before`
  return `interrupt: ${whatText(step, ', ')}, because of ${because.join(' and ') || before}`
}

function whatText({ type, services, alsoRestartAllServices }: RehearsedInterrupt, separator: string): string {
  const what = services.length === 0 ? type : `${type} ${services.join(separator)}`
  return alsoRestartAllServices ? `${what} and restartAllServices` : what
}

function drainLines(pods: Known<DrainedPods> | undefined): readonly string[] {
  if (pods === undefined) return []
  if (!pods.known) return [`its pods are unknown: ${pods.why}`]
  const { leaving, bare, protected: kept, waited = [], left = [], budgets, contested, unanswered } = pods.value
  return [
    leaving.length === 0
      ? 'no pod has to leave'
      : `${counted(leaving.length, 'pod leaves', 'pods leave')}: ${named(leaving, maxPodNames)}`,
    ...(bare.length === 0 ? [] : [`no controller replaces ${named(bare, maxPodNames)}`]),
    ...(kept.length === 0 ? [] : [`HELD UP until they end: ${named(kept, maxPodNames)} (podNonInterruptLabels)`]),
    ...(waited.length === 0
      ? []
      : [`HELD UP until they end: ${named(waited, maxPodNames)}, which tolerate the cordon (drain.tolerating: wait)`]),
    ...(left.length === 0
      ? []
      : [`END WITH THE INTERRUPT: ${named(left, maxPodNames)}, which tolerate the cordon (drain.tolerating)`]),
    ...(contested.length === 0
      ? []
      : [`HELD UP: several PodDisruptionBudgets select ${named(contested, maxPodNames)}, so they are never evicted`]),
    ...budgets.map(budgetText),
    ...(unanswered ? [`dry runs have no answer about ${counted(unanswered.pods, 'pod')}: ${unanswered.why}`] : []),
  ]
}

function budgetText({ budget, pods, allowed, refused }: GuardingBudget): string {
  const state = allowed <= 0 ? 'HELD UP: ' : ''
  const asked = refused === undefined ? '' : `; dry runs refused ${refused} of ${pods}, each pod asked alone`
  return (
    `${state}PodDisruptionBudget ${budget} guards ${counted(pods, 'of these pods', 'of these pods')} and allows ` +
    `${counted(allowed, 'disruption')} now${asked}`
  )
}

function atOnceText({ compartment, isJoining, nodes, limit, source, batches }: CompartmentPlan): string {
  const scope = compartment === '' ? '' : `compartment ${compartment}: `
  const of = `of ${counted(nodes.length, isJoining ? 'joining node' : 'node')}`
  const sizes = someOf(batches?.map(String) ?? [], maxBatchSizes)
  const inBatches =
    batches && batches.length > 0 ? `, in ${counted(batches.length, 'batch', 'batches')} (${sizes}) if none fails` : ''
  const text =
    limit === undefined
      ? `how many ${of} at once is unknown`
      : limit === 'unlimited'
        ? `all ${of} at once`
        : limit === 0
          ? `none ${of} may start`
          : `at most ${limit} ${of} at once`
  return `${scope}${text} (${source})${inBatches}`
}

function durationLines(duration: Duration): readonly string[] {
  switch (duration.state) {
    case 'none':
      return []
    case 'unknown':
      return [`how long it takes is unknown: ${duration.why}`]
    case 'estimated': {
      const { p50Ms, p95Ms, history } = duration
      const { rollouts, nodes } = history
      const past = rollouts === 1 ? 'the last rollout' : `the last ${rollouts} rollouts`
      const [usual, slow] = [durationText(p50Ms), durationText(p95Ms)]
      const source = `of ${counted(nodes, 'node')} in ${past}`
      const text =
        usual === slow ? `${usual} of work (p95 ${source})` : `${usual} to ${slow} of work (p50 and p95 ${source})`
      return [`about ${text}, drains and steps as then`]
    }
  }
}

export type TextForm = {
  heading(text: string): string
  /** Facts about the whole. */
  list(lines: readonly string[]): string
  /** Nodes with the same plan, and what happens there in order. A line that starts with blanks continues the last one. */
  group(title: string, lines: readonly string[]): string
}

export const terminal: TextForm = {
  heading: (text) => shownLines([text]),
  list: (lines) => shownLines(lines.map((line) => `  ${line}`)),
  group: (title, lines) => shownLines([`  ${title}`, ...lines.map((line) => `    ${line}`)]),
}

/**
 * No text is read as markup or mentions anybody. Forges look for mentions and numbers of issues in what the Markdown
 * has become, without its backslashes and with its entities: only something in between keeps them from being found.
 */
const escaped = (text: string): string =>
  shownLine(text)
    .replaceAll(/[\\`*_{}[\]<>#|~@&]/g, (character) => `\\${character}`)
    .replaceAll(/[@#](?=\w)/g, (character) => `${character}<!-- -->`)

export const markdown: TextForm = {
  heading: (text) => `### ${escaped(text)}\n\n`,
  list: (lines) => (lines.length === 0 ? '' : `${lines.map((line) => `- ${escaped(line)}\n`).join('')}\n`),
  group(title, lines) {
    const items = lines.map((line) =>
      line.startsWith(' ') ? `   - ${escaped(line.trimStart())}\n` : `1. ${escaped(line)}\n`,
    )
    return `**${escaped(title)}**\n\n${items.length === 0 ? '' : `${items.join('')}\n`}`
  },
}
