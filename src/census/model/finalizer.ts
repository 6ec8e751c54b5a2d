/**
 * The finalizer keeps a Skyhook while nodes still have to uninstall. It exists only if a package requests an uninstall.
 * It is removed when no live node has such a package left and no node works that was admitted before the deletion: a
 * package that a node has just started may not be on its Node yet, but its slot exists.
 */
import type { Slot } from '../../lease/slot.ts'
import { type Backoff, backoffMs } from '../../schemas/backoff.ts'
import { finalizerName, packagesToUninstall, type Skyhook } from '../../schemas/skyhook.ts'
import type { Counts } from './count.ts'
import type { NodeFact } from './node-facts.ts'

export type DeletionInput = {
  readonly skyhook: Skyhook
  readonly counts: Counts
  readonly isDead: (node: string) => boolean
  /** When this census first saw the Skyhook being deleted. */
  readonly deletionObservedAtMs: number | undefined
  /** Who held slots when the census looked; undefined: it has not looked since it saw the deletion. */
  readonly look: HolderLook | undefined
  readonly nowMs: number
}

/** Slots of the Skyhook, of any scope, that were held at the first look and have not gone since. */
export type HolderLook = {
  readonly slots: readonly Pick<Slot, 'uid' | 'holder'>[]
  readonly looks: number
  /** Monotonic ms, of the last look. */
  readonly atMs: number
}

export type FinalizerPlan =
  | { readonly action: 'nothing' }
  | { readonly action: 'add' }
  /** `skipped` are dead nodes on which packages stay installed. */
  | { readonly action: 'remove'; readonly skipped: readonly string[] }
  /** Being deleted; `nodes` are live and not finished. `blockedBy`: why they do not continue. */
  | {
      readonly action: 'wait'
      readonly nodes: readonly string[]
      readonly skipped: readonly string[]
      readonly blockedBy?: 'pause' | 'disable' | 'ignore'
      readonly recheckAtMs: number
      /** When to list the slots; Infinity: the list would show nothing new. */
      readonly looksAtMs: number
    }

/** By then the census observes what a node wrote before it released its slot. */
const settleMs = 2_000
const lookBackoff: Backoff = { initialMs: 1_000, maxMs: 30_000 }

/** The state after a LIST. A node that takes a slot later knows of the deletion: its work is to uninstall. */
export const lookedAt = (
  before: HolderLook | undefined,
  slots: readonly Pick<Slot, 'uid' | 'holder'>[],
  atMs: number,
): HolderLook => ({
  slots: slots
    .filter(({ uid }) => before === undefined || before.slots.some((one) => one.uid === uid))
    .map(({ uid, holder }) => ({ uid, holder })),
  looks: (before?.looks ?? 0) + 1,
  atMs,
})

/** What to do with the finalizer now. */
export function planFinalizer(input: DeletionInput): FinalizerPlan {
  const { skyhook, counts, isDead, nowMs } = input
  const { metadata, spec } = skyhook
  const has = metadata.finalizers?.includes(finalizerName) === true
  const toUninstall = packagesToUninstall(spec)
  if (metadata.deletionTimestamp === undefined) {
    if (toUninstall.size > 0 && !has) return { action: 'add' }
    // Not before everything is done: a package taken out of the spec may be uninstalling.
    return toUninstall.size === 0 && has && counts.complete === counts.nodes.length
      ? { action: 'remove', skipped: [] }
      : { action: 'nothing' }
  }
  if (!has) return { action: 'nothing' }
  const remaining = counts.nodes.filter((node) => hasRemainingPackages(node, toUninstall)).map(({ name }) => name)
  const skipped = remaining.filter(isDead)
  const live = remaining.filter((name) => !isDead(name))
  const { holders, looksAtMs, settledAtMs } = atWorkIn(input, {
    asks: toUninstall.size > 0,
    isWaiting: live.length > 0,
  })
  if (live.length === 0 && holders.length === 0 && settledAtMs <= nowMs) return { action: 'remove', skipped }
  const nodes = [...live, ...holders.filter((name) => !live.includes(name))]
  const blockedBy = live.length === 0 ? undefined : blockerOf(counts, live)
  return {
    action: 'wait',
    nodes,
    skipped,
    ...(blockedBy && { blockedBy }),
    recheckAtMs: settledAtMs > nowMs ? settledAtMs : Infinity,
    looksAtMs,
  }
}

/** What only a person removes. */
function blockerOf(counts: Counts, live: readonly string[]): 'pause' | 'disable' | 'ignore' | undefined {
  if (counts.isPaused) return 'pause'
  if (counts.isDisabled) return 'disable'
  const ignored = new Set(counts.nodes.filter(({ isIgnored }) => isIgnored).map(({ name }) => name))
  return live.every((name) => ignored.has(name)) ? 'ignore' : undefined
}

/**
 * Nodes that work under a slot from before the deletion, when to look for them, and when their last writes are seen.
 */
function atWorkIn(
  { isDead, deletionObservedAtMs, look, nowMs }: DeletionInput,
  { asks, isWaiting }: { readonly asks: boolean; readonly isWaiting: boolean },
): { readonly holders: readonly string[]; readonly looksAtMs: number; readonly settledAtMs: number } {
  // no package requests an uninstall, so what has just started does not need one either
  if (!asks) return { holders: [], looksAtMs: Infinity, settledAtMs: (deletionObservedAtMs ?? nowMs) + settleMs }
  if (look === undefined) return { holders: [], looksAtMs: nowMs, settledAtMs: Infinity }
  const holders = [...new Set(look.slots.map(({ holder }) => holder))].filter((name) => !isDead(name))
  const isDue = holders.length > 0 && !isWaiting
  const looksAtMs = isDue ? look.atMs + backoffMs(look.looks, lookBackoff) : Infinity
  return { holders, looksAtMs, settledAtMs: look.atMs + settleMs }
}

/** Nothing is left to do once the entry is gone or its uninstall is over. An unreadable entry may still be there. */
function hasRemainingPackages({ entries, isMalformed }: NodeFact, toUninstall: ReadonlySet<string>): boolean {
  return (
    isMalformed ||
    Object.values(entries).some(({ name, stage, state }) =>
      stage === 'uninstall' && state !== 'skipped' ? !isOver(state) : toUninstall.has(name),
    )
  )
}

/** An uninstall passed, or was given up. */
const isOver = (state: string | undefined): boolean => state === 'complete' || state === 'unknown'

/** The list of finalizers after a plan; others stay as they are. */
export function finalizersAfter(plan: 'add' | 'remove', finalizers: readonly string[] = []): readonly string[] {
  const others = finalizers.filter((name) => name !== finalizerName)
  return plan === 'add' ? [...others, finalizerName] : others
}
