/** The batches of a Skyhook with a policy, planned for the ledger at one turn of the census. Pure. */
import type { Ledger } from '../../lease/ledger.ts'
import { skyhookScope } from '../../lease/names.ts'
import {
  type BatchVerdict,
  batchAfterCompletion,
  batchBeside,
  batchOfNextRollout,
  batchUnder,
  batchWaiting,
  firstBatch,
  judgeBatch,
} from '../../lease/policy/batch.ts'
import { type Compartment, compartmentsOf } from '../../lease/policy/compartments.ts'
import { ceilingOf } from '../../lease/rule.ts'
import { countsTowards, type Slot } from '../../lease/slot.ts'
import { resetBatchesKey } from '../../schemas/annotations.ts'
import { type Backoff, backoffMs } from '../../schemas/backoff.ts'
import type { BatchState, PolicyKnowledge } from '../../schemas/deployment-policy.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { type CompartmentCount, type Counts, compartmentNames, isInLine } from '../model/count.ts'
import type { NodeFact } from '../model/node-facts.ts'

type FoundPolicy = Extract<PolicyKnowledge, { state: 'found' }>

export type BatchInput = {
  readonly skyhook: Skyhook
  readonly policy: FoundPolicy
  readonly counts: Counts
  readonly currentLedger: Ledger | undefined
  /** From one LIST with `currentLedger`; absent in turns without one. */
  readonly slots: readonly Slot[] | undefined
  /**
   * For how long no node of a compartment could have asked for a slot, in ms: what this census observed, plus what its
   * predecessors had observed according to the ledger.
   */
  readonly idleMs: (compartment: string) => number
}

export type BatchPlan = {
  readonly batches: Readonly<Record<string, BatchState>>
  readonly reset: string | undefined
  /** Compartments of which a LIST shows no slot. Their batches cannot change before something else does. */
  readonly atRest: ReadonlySet<string>
  /** Compartments whose batch is over as soon as it has waited long enough for nodes that may not come. */
  readonly waiting: ReadonlySet<string>
}

/** A node that publishes no reason may be about to ask for a slot. */
const settledMs = 10_000

/** The desired batches. The same input gives the same plan, so that a repeated turn changes nothing. */
export function planBatches(input: BatchInput): BatchPlan {
  const { skyhook, policy, counts, currentLedger, slots } = input
  const reset = skyhook.metadata.annotations?.[resetBatchesKey] ?? currentLedger?.reset
  const isCurrent = currentLedger?.skyhookUID === skyhook.metadata.uid
  const isReset = isCurrent && reset !== currentLedger.reset
  const isNextRollout = isCurrent && currentLedger.applied !== counts.applied
  const isComplete = counts.nodes.length > 0 && counts.complete === counts.nodes.length
  const startsOver = startsOverOnCompletion(skyhook, policy)
  const waiting = new Set<string>()

  const nextBatch = (before: BatchState | undefined, compartment: Compartment): BatchState => {
    const { name, strategy } = compartment
    if (before === undefined) return firstBatch(strategy, 1)
    if (isNextRollout) return batchOfNextRollout(before, strategy, isReset || startsOver)
    if (isReset) return firstBatch(strategy, before.epoch)
    const nodes = nodesOf(counts, name)
    const batch = batchUnder(strategy, isIdle(nodes) ? before : batchWaiting(before, undefined))
    if (slots === undefined) return batch
    const verdict = judge(input, compartment, batch, slots)
    if (verdict.verdict === 'waiting') {
      waiting.add(name)
      const waitedSeconds = Math.max(batch.waitedSeconds ?? 0, Math.floor(verdict.waitedMs / 1_000))
      return batchWaiting(batch, waitedSeconds === 0 ? undefined : waitedSeconds)
    }
    const after = verdict.verdict === 'over' ? verdict.next : batch
    const isOver = verdict.verdict === 'over' || !slots.some((slot) => isOf(slot, skyhook, name))
    return startsOver && isComplete && isOver ? batchAfterCompletion(after, strategy) : after
  }

  const batchOf = (compartment: Compartment): BatchState => {
    const before = isCurrent ? currentLedger.compartments[compartment.name]?.batch : undefined
    const batch = nextBatch(before, compartment)
    return batch.epoch === before?.epoch
      ? batchBeside(batch, before.notWaiting)
      : batchBeside(batch, countNotWaiting(input, compartment.name))
  }

  return {
    batches: Object.fromEntries(compartmentsOf(policy.spec).map((each) => [each.name, batchOf(each)])),
    reset,
    atRest: new Set(
      slots && compartmentNames(policy.spec).filter((name) => !slots.some((slot) => isOf(slot, skyhook, name))),
    ),
    waiting,
  }
}

/** Also the holders of slots: their Nodes may still say that they wait. */
function countNotWaiting({ skyhook, counts, slots = [] }: BatchInput, compartment: string): number {
  const holders = new Set(slots.filter((slot) => isOf(slot, skyhook, compartment)).map(({ holder }) => holder))
  return nodesOf(counts, compartment).filter((node) => !isInLine(node) || holders.has(node.name)).length
}

const nodesOf = ({ compartments }: Counts, compartment: string): readonly NodeFact[] =>
  compartments.find(({ name }) => name === compartment)?.nodes ?? []

const isOf = (slot: Slot, { metadata }: Skyhook, compartment: string): boolean =>
  slot.scope === skyhookScope(metadata, compartment).hash

function judge(
  { skyhook, policy, counts, currentLedger, idleMs }: BatchInput,
  { name, budget, strategy }: Compartment,
  batch: BatchState,
  slots: readonly Slot[],
): BatchVerdict | { readonly verdict: 'waiting'; readonly waitedMs: number } {
  const scope = skyhookScope(skyhook.metadata, name, compartmentNames(policy.spec))
  const matched = currentLedger?.compartments[name]?.matched ?? 0
  const open = {
    batch,
    scope,
    slots: slots.filter((slot) => countsTowards(slot, scope)),
    ceiling: ceilingOf(budget, matched),
  }
  const holders = new Set(open.slots.map(({ holder }) => holder))
  const others = nodesOf(counts, name).filter((node) => !holders.has(node.name))
  const judgeIf = (isNobodyWaiting: boolean): BatchVerdict => judgeBatch(open, { strategy, matched, isNobodyWaiting })
  const verdict = judgeIf(others.every(isSettled))
  if (verdict.verdict === 'over' || !isIdle(others)) return verdict
  const verdictWithoutThem = judgeIf(true)
  const waitedMs = idleMs(name)
  return verdictWithoutThem.verdict === 'open' || waitedMs >= settledMs
    ? verdictWithoutThem
    : { verdict: 'waiting', waitedMs }
}

/** It has no work, or cannot start it before somebody acts. */
const isSettled = ({ status, agent, isIgnored }: NodeFact): boolean =>
  status === 'complete' || status === 'blocked' || isIgnored || agent === 'silent'

/** Whether no node asks for a slot, or will as soon as the Skyhook continues, as far as the Nodes show. */
export const isIdle = (nodes: readonly NodeFact[]): boolean => !nodes.some(mayAsk)

/** A report from before the agent went away blocks nobody. */
const mayAsk = (node: NodeFact): boolean =>
  node.agent !== 'unready' && (isInLine(node) || node.status === 'paused' || node.status === 'disabled')

/** The Skyhook's own option, else the policy's. */
function startsOverOnCompletion({ spec }: Skyhook, policy: FoundPolicy): boolean {
  const own = spec.deploymentPolicyOptions?.resetBatchStateOnCompletion
  return own ?? policy.spec.resetBatchStateOnCompletion ?? false
}

/**
 * When the census lists the slots of a Skyhook with a policy. The Nodes of a compartment hint that its batch may be
 * over. The census then looks, and again after growing pauses until something changes. Pure.
 */

/** By compartment. */
export type SlotLooks = ReadonlyMap<string, Looks>

type Looks = {
  /** What its Nodes and the ledger reported. */
  readonly key: string
  readonly looks: number
  /** Monotonic ms; Infinity: not before something changes. */
  readonly nextAtMs: number
}

/** A node writes its slot a moment after its Node. */
const firstDelayMs = 200
const lookBackoff: Backoff = { initialMs: 500, maxMs: 30_000 }
/** While nodes are at work their batch is open, unless a node that failed before is at work again. */
const busyBackoff: Backoff = { initialMs: 10_000, maxMs: 60_000 }

const isBusy = ({ nodes }: CompartmentCount): boolean => nodes.some(({ status }) => status === 'in_progress')

/** The looks that are due after a change of their inputs; the same ones where nothing has changed. */
export function looksNow(
  before: SlotLooks,
  compartments: readonly CompartmentCount[],
  ledger: Ledger | undefined,
  nowMs: number,
): SlotLooks {
  return new Map(
    compartments.map((compartment) => {
      const { name, nodes } = compartment
      const statuses = nodes.map((node) => `${node.name} ${node.status}`)
      const batch = { ...ledger?.compartments[name]?.batch, waitedSeconds: undefined } // it grows with each look
      const key = JSON.stringify([ledger?.applied, ledger?.policy, batch, statuses])
      const known = before.get(name)
      if (known?.key === key) return [name, known]
      // a newly elected census may not live until the later look
      const delayMs = known !== undefined && isBusy(compartment) ? backoffMs(1, busyBackoff) : firstDelayMs
      return [name, { key, looks: 0, nextAtMs: nowMs + delayMs }]
    }),
  )
}

/** What a look shows of a batch. `nothing`: nothing could be over. `end`: it is over when it has waited long enough. */
export type Expectation = 'nothing' | 'end' | 'by-status'

/** After a look, which showed all compartments. */
export function looksAfter(
  before: SlotLooks,
  compartments: readonly CompartmentCount[],
  expectationOf: (compartment: string) => Expectation,
  nowMs: number,
): SlotLooks {
  const after = new Map(before)
  for (const compartment of compartments) {
    const known = before.get(compartment.name)
    if (known === undefined) continue
    const looks = known.looks + 1
    const expectation = expectationOf(compartment.name)
    const isPatient = isBusy(compartment) && expectation !== 'end'
    const pauseMs = backoffMs(looks, isPatient ? busyBackoff : lookBackoff)
    after.set(compartment.name, { ...known, looks, nextAtMs: expectation === 'nothing' ? Infinity : nowMs + pauseMs })
  }
  return after
}

/** When the next look is due, monotonic ms. */
export const nextLookAtMs = (looks: SlotLooks): number =>
  Math.min(...[...looks.values()].map(({ nextAtMs }) => nextAtMs))
