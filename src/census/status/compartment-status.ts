/** The compartments in the status of a Skyhook, and why their nodes do not continue. */
import type { Ledger } from '../../lease/ledger.ts'
import { compartmentsOf } from '../../lease/policy/compartments.ts'
import { ceilingOf } from '../../lease/rule.ts'
import { resetBatchesKey } from '../../schemas/annotations.ts'
import type { Budget } from '../../schemas/budget.ts'
import type { SkyhookConditionReason } from '../../schemas/catalogue/conditions.ts'
import { finalAttempts, stallsAtMs } from '../../schemas/catalogue/reason-codes.ts'
import { isFailure } from '../../schemas/catalogue/reason.ts'
import { stallsBy } from '../../schemas/catalogue/stall-rules.ts'
import { type BatchState, defaultCompartment } from '../../schemas/deployment-policy.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { type CompartmentCount, type Counts, isFailing, isInLine } from '../model/count.ts'
import type { NodeFact } from '../model/node-facts.ts'
import { policyNotFound } from './operator-conditions.ts'
import { type CompartmentStatus, conditionOf, statusOf } from '../model/skyhook-status.ts'
import { formatNodeNames } from '../model/summary-text.ts'

export type CompartmentInput = {
  readonly skyhook: Skyhook
  readonly counts: Counts
  readonly ledger: Ledger | undefined
}

/** `nowMs`: wall clock. */
type RolloutInput = CompartmentInput & { readonly nowMs: number }

type Described = {
  /** The name that users see. */
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

/** A user without a policy does not know compartments. */
const prefixOf = ({ name, batch }: Described): string =>
  name === defaultCompartment && batch === undefined ? '' : `compartment ${name}: `

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

/** As the operator writes it: without fields that are zero or false. */
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

/**
 * Why no further node starts until somebody acts; undefined if nodes may start, need not, or will start by themselves.
 */
export function rolloutProblem(input: RolloutInput): Problem | undefined {
  const { counts, nowMs } = input
  const { policy } = counts
  if (counts.complete === counts.nodes.length) return undefined
  if (policy?.state === 'missing') return missingPolicyAtMs(input) <= nowMs ? policyNotFoundProblem(input) : undefined
  if (policy?.state === 'unknown')
    return policy.isRefused ? { reason: 'DeploymentPolicyUnknown', message: policy.why } : undefined
  const unfinished = describe(input).filter(({ nodes }) => nodes.some(({ status }) => status !== 'complete'))
  const stopped = unfinished.filter(({ batch }) => batch?.stopped === true)
  if (stopped.length > 0) return { reason: 'RolloutStopped', message: stopped.map(stopMessage).join('; ') }
  const held = unfinished.filter((one) => isHeld(one, nowMs) || isStill(one, nowMs))
  const unattended = held.filter((one) => holders(one, isSilent).length > 0)
  if (unattended.length > 0) {
    const messages = unattended.map((one) => silentMessage(one, nowMs))
    return { reason: 'SilentNodesKeepSlots', message: `${messages.join('; ')}; ${wayOut}` }
  }
  if (held.length === 0) return silentProblem(counts)
  return { reason: 'FailedNodesHoldBudget', message: held.map((one) => heldMessage(one, nowMs)).join('; ') }
}

/** Nodes in line that cannot start: the budget of their compartment is 0. */
export function nodesWithoutBudget(input: CompartmentInput): ReadonlySet<NodeFact> {
  const closed = describe(input).filter(({ ceiling }) => ceiling === 0)
  return new Set(closed.flatMap(({ nodes }) => nodes.filter(isInLine)))
}

/** When the absence of the policy has lasted, by the status before; Infinity if that does not report it. */
export function missingPolicyAtMs({ skyhook, counts: { policy } }: Pick<RolloutInput, 'skyhook' | 'counts'>): number {
  const before = conditionOf(statusOf(skyhook), policyNotFound)
  if (policy?.state !== 'missing' || before?.status !== 'True') return Infinity
  return stallsAtMs(stallsBy('DeploymentPolicyNotFound'), 0, Date.parse(before.lastTransitionTime))
}

const policyNotFoundProblem = ({ skyhook }: RolloutInput): Problem => ({
  reason: 'DeploymentPolicyNotFound',
  message:
    `DeploymentPolicy ${JSON.stringify(skyhook.spec.deploymentPolicy)} not found: ` +
    'create it, or change spec.deploymentPolicy',
})

/** The last nodes of a rollout, also of one without a budget: no other node waits for them, and nothing continues. */
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

/** Nodes wait, and none of them can start: each slot is held by a node that has failed for good, or is silent. */
const isHeld = (compartment: Described, nowMs: number): boolean =>
  compartment.nodes.some(isInLine) &&
  compartment.ceiling > 0 &&
  holders(compartment, (node) => hasFailed(node, nowMs) || isSilent(node)).length >= compartment.ceiling

/** Nodes wait for the end of the batch, and no node of the batch continues. */
const isStill = (compartment: Described, nowMs: number): boolean =>
  compartment.batch !== undefined &&
  compartment.nodes.some((node) => isInLine(node) && node.reason?.reason === 'WaitingForBatch') &&
  holders(compartment, (node) => isSilent(node) || keepsBatchOpen(node, nowMs)).length > 0 &&
  compartment.nodes.every((node) => !isAtWork(node) || hasFailed(node, nowMs))

const isAtWork = ({ status }: NodeFact): boolean => status === 'in_progress' || status === 'erroring'

/** The batch ends without a node whose stage has failed often enough, and waits for all others. */
const keepsBatchOpen = (node: NodeFact, nowMs: number): boolean =>
  hasFailed(node, nowMs) && Object.values(node.entries).every(({ restarts = 0 }) => restarts < finalAttempts)

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

const failedHolders = (compartment: Described, nowMs: number): readonly string[] =>
  holders(compartment, (node) => hasFailed(node, nowMs))

const whatIsTaken = (compartment: Described, nowMs: number): string =>
  isHeld(compartment, nowMs) ? `hold the whole budget of ${compartment.ceiling}` : 'keep the batch open'

const heldMessage = (compartment: Described, nowMs: number): string =>
  `${prefixOf(compartment)}failing nodes ${whatIsTaken(compartment, nowMs)}: ` +
  formatNodeNames(failedHolders(compartment, nowMs))

function silentMessage(compartment: Described, nowMs: number): string {
  const names = formatNodeNames(holders(compartment, isSilent))
  const failed = failedHolders(compartment, nowMs)
  const what = whatIsTaken(compartment, nowMs)
  return (
    `${prefixOf(compartment)}nodes whose agents are silent ${what}: ${names}` +
    (failed.length === 0 ? '' : `; failing: ${formatNodeNames(failed)}`)
  )
}

/** Whether a node that is not complete will continue by itself, judged by what it publishes. Pure. */

type PublishedOutlook = Pick<NodeFact, 'status' | 'agent' | 'reason' | 'entries'>

/**
 * The moment (wall clock, ms) from which on the node has failed for good: it may retry, but nothing suggests another
 * result. -Infinity: it has failed, no matter when. Infinity: it continues by itself, or its outlook is unknown.
 */
export function failedAtMs(node: PublishedOutlook): number {
  const { status, agent, reason } = node
  if (agent === 'silent') return Infinity // its last report may be old
  const attempts = failedAttempts(node)
  switch (status) {
    case 'complete':
    case 'unknown':
    case 'paused':
    case 'disabled':
      return Infinity
    case 'waiting':
    case 'blocked':
    case 'in_progress':
    case 'erroring': {
      // a stage that is retried may report nothing else
      if (reason === undefined) return stallsAtMs('by-attempts', attempts, Infinity)
      const stalls = stallsBy(reason.reason, reason.code)
      const isUntried = stalls === 'by-attempts' && attempts === 0 && isFailure(reason.reason)
      return stallsAtMs(isUntried ? 'after-two-minutes' : stalls, attempts, reason.sinceMs ?? Infinity)
    }
  }
}

export const hasFailed = (node: PublishedOutlook, nowMs: number): boolean => failedAtMs(node) <= nowMs

/** When the next of the nodes will have failed for good if nothing changes; Infinity if none will. */
export const nextFailureAtMs = (nodes: readonly PublishedOutlook[], nowMs: number): number =>
  nodes.reduce((soonestMs, node) => {
    const atMs = failedAtMs(node)
    return atMs > nowMs && atMs < soonestMs ? atMs : soonestMs
  }, Infinity)

/** Of the stage that the reason is about; else of those that are open. A stage that passes starts from zero. */
function failedAttempts({ status, reason, entries }: PublishedOutlook): number {
  const { name, version } = reason?.package ?? {}
  const named = entries[`${name}|${version}`]
  if (named !== undefined) return named.restarts ?? 0
  // one that is left as it failed, while its successor runs, proves nothing about the node
  const isBetweenAttempts = status === 'erroring' || reason !== undefined
  const isOpen = (state: string | undefined): boolean =>
    state === 'in_progress' || (state === 'erroring' && isBetweenAttempts)
  return Object.values(entries).reduce(
    (most, { state, restarts = 0 }) => (isOpen(state) ? Math.max(most, restarts) : most),
    0,
  )
}
