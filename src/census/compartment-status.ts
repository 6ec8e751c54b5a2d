/** What the status of a Skyhook says of its compartments, and why their nodes do not go on. */
import type { Ledger } from '../lease/ledger.ts'
import { compartmentsOf } from '../lease/policy/compartments.ts'
import { ceilingOf } from '../lease/rule.ts'
import { resetBatchesKey } from '../schemas/annotations.ts'
import type { Budget } from '../schemas/budget.ts'
import type { BatchState } from '../schemas/batch-state.ts'
import type { SkyhookConditionReason } from '../schemas/catalogue/conditions.ts'
import { defaultCompartment } from '../schemas/deployment-policy.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import type { CompartmentCount } from './compartments.ts'
import { isFailing, isInLine, type Counts } from './count.ts'
import type { NodeFact } from './node-facts.ts'
import type { CompartmentStatus } from './skyhook-status.ts'
import { formatNodeNames } from './summary-text.ts'

type CompartmentInput = { readonly skyhook: Skyhook; readonly counts: Counts; readonly ledger: Ledger | undefined }

type Described = {
  /** As people know it. */
  readonly name: string
  readonly nodes: CompartmentCount['nodes']
  readonly ceiling: number
  readonly batch: BatchState | undefined
}

/** Those with a budget: of a policy, or all nodes of a Skyhook with a budget of its own or of the chart's defaults. */
function describe({ skyhook, counts, ledger }: CompartmentInput): readonly Described[] {
  const budgets = new Map<string, Budget>(
    counts.policy?.state === 'found'
      ? compartmentsOf(counts.policy.spec).map(({ name, budget }) => [name, budget])
      : [['', counts.budget]],
  )
  return counts.compartments.flatMap(({ name, nodes }) => {
    const budget = budgets.get(name) ?? {}
    const ceiling = nodes.length === 0 && budget.percent !== undefined ? 0 : ceilingOf(budget, nodes.length)
    const batch = ledger?.skyhookUID === skyhook.metadata.uid ? ledger.compartments[name]?.batch : undefined
    return ceiling === Infinity ? [] : [{ name: name === '' ? defaultCompartment : name, nodes, ceiling, batch }]
  })
}

/** The operator's `compartmentStatuses`; undefined where nothing limits the nodes. */
export function compartmentStatuses(input: CompartmentInput): Readonly<Record<string, CompartmentStatus>> | undefined {
  const described = describe(input)
  if (described.length === 0) return undefined
  return Object.fromEntries(
    described.map(({ name, nodes, ceiling, batch }) => {
      const completed = nodes.filter(({ status }) => status === 'complete').length
      const status: CompartmentStatus = {
        matched: nodes.length,
        ceiling,
        inProgress: nodes.filter(({ status }) => status === 'in_progress').length,
        completed,
        progressPercent: nodes.length === 0 ? 0 : Math.floor((completed * 100) / nodes.length),
        ...(batch && { batchState: batchStateOf(batch) }),
      }
      return [name, status]
    }),
  )
}

/** As the operator writes it: nothing that is zero or false. */
function batchStateOf(batch: BatchState): NonNullable<CompartmentStatus['batchState']> {
  const { currentBatch, consecutiveFailures, completed, failed, stopped, lastBatchSize, lastBatchFailed } = batch
  return {
    ...(currentBatch !== 0 && { currentBatch }),
    ...(consecutiveFailures !== 0 && { consecutiveFailures }),
    ...(completed !== 0 && { completedNodes: completed }),
    ...(failed !== 0 && { failedNodes: failed }),
    ...(stopped && { shouldStop: stopped }),
    ...(lastBatchSize !== 0 && { lastBatchSize }),
    ...(lastBatchFailed && { lastBatchFailed }),
  }
}

type Problem = { readonly reason: SkyhookConditionReason<'Stalled'>; readonly message: string }

/** Why no further node starts until somebody acts; undefined while nodes may start, or need not. */
export function rolloutProblem(input: CompartmentInput): Problem | undefined {
  const { skyhook, counts } = input
  if (counts.complete === counts.nodes.length) return undefined
  if (counts.policy?.state === 'missing')
    return {
      reason: 'DeploymentPolicyNotFound',
      message:
        `DeploymentPolicy ${JSON.stringify(skyhook.spec.deploymentPolicy)} not found: ` +
        'create it, or change spec.deploymentPolicy',
    }
  if (counts.policy?.state === 'unknown') return { reason: 'DeploymentPolicyUnknown', message: counts.policy.why }
  const unfinished = describe(input).filter(({ nodes }) => nodes.some(({ status }) => status !== 'complete'))
  const stopped = unfinished.filter(({ batch }) => batch?.stopped === true)
  if (stopped.length > 0) return { reason: 'RolloutStopped', message: stopped.map(stopMessage).join('; ') }
  const held = unfinished.filter(isHeld)
  const unattended = unfinished.filter((one) => holders(one, isSilent).length > 0 && (isHeld(one) || isStill(one)))
  if (unattended.length > 0)
    return { reason: 'SilentNodesKeepSlots', message: `${unattended.map(silentMessage).join('; ')}; ${wayOut}` }
  if (held.length === 0) return silentProblem(counts)
  return { reason: 'FailedNodesHoldBudget', message: held.map(heldMessage).join('; ') }
}

/** The last nodes of a rollout, also of one without a budget: nobody waits for them, and nothing continues. */
function silentProblem({ nodes, isPaused, isDisabled }: Counts): Problem | undefined {
  if (isPaused || isDisabled) return undefined
  const unfinished = nodes.filter(({ status }) => status !== 'complete')
  const names = unfinished.filter((node) => isSilent(node) && holdsSlot(node)).map(({ name }) => name)
  if (names.length === 0 || !unfinished.every(isSilent)) return undefined
  return { reason: 'SilentNodesKeepSlots', message: `at work and silent: ${formatNodeNames(names)}; ${wayOut}` }
}

const failing = ({ nodes }: Described): string[] => nodes.filter(isFailing).map(({ name }) => name)

/** A node with work that is not done: one that fails before its first step holds no slot. */
const holdsSlot = ({ entries, isCordoned }: NodeFact): boolean =>
  isCordoned || Object.values(entries).some(({ state }) => state === 'in_progress' || state === 'erroring')

/** Its agent has not been Ready for ten minutes: the host may be gone. */
const isSilent = ({ agent }: NodeFact): boolean => agent === 'silent'

const holders = ({ nodes }: Described, test: (node: NodeFact) => boolean): string[] =>
  nodes.filter((node) => test(node) && holdsSlot(node)).map(({ name }) => name)

/** Nodes wait, and none of them can start: a node that fails, or is silent, keeps its slot. */
const isHeld = (compartment: Described): boolean =>
  compartment.nodes.some(isInLine) &&
  compartment.ceiling > 0 &&
  holders(compartment, (node) => isFailing(node) || isSilent(node)).length >= compartment.ceiling

/** Nodes wait for the end of the batch, and none of the batch is on its way there. */
const isStill = ({ nodes, batch }: Described): boolean =>
  batch !== undefined &&
  nodes.some((node) => isInLine(node) && node.reason?.reason === 'WaitingForBatch') &&
  nodes.every((node) => node.status !== 'in_progress' || isFailing(node))

const wayOut = 'bring the nodes and their agents back, or delete the Nodes of hosts that are gone'

function stopMessage(compartment: Described): string {
  const { name, batch } = compartment
  const names = failing(compartment)
  const { currentBatch = 1, consecutiveFailures = 1 } = batch ?? {}
  return (
    `compartment ${name}: batch ${currentBatch - 1} was failed batch ${consecutiveFailures} in a row` +
    `${names.length === 0 ? '' : `; failing: ${formatNodeNames(names)}`}; ` +
    `to continue, fix the package and set the annotation ${resetBatchesKey} to another text`
  )
}

const heldMessage = (compartment: Described): string =>
  `compartment ${compartment.name}: failing nodes hold the whole budget of ${compartment.ceiling}: ` +
  formatNodeNames(holders(compartment, isFailing))

function silentMessage(compartment: Described): string {
  const names = formatNodeNames(holders(compartment, isSilent))
  const failed = holders(compartment, isFailing)
  const what = isHeld(compartment) ? `hold the whole budget of ${compartment.ceiling}` : 'keep the batch open'
  return (
    `compartment ${compartment.name}: nodes whose agents are silent ${what}: ${names}` +
    (failed.length === 0 ? '' : `; failing: ${formatNodeNames(failed)}`)
  )
}
