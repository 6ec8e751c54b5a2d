/**
 * The finalizer keeps a Skyhook while nodes still have to uninstall. It exists only if a package requests an uninstall,
 * and is removed when no live node has such a package left.
 */
import { apiGroup } from '../schemas/api.ts'
import type { PackageSpec, Skyhook } from '../schemas/skyhook.ts'
import type { Counts } from './count.ts'
import type { NodeFact } from './node-facts.ts'

export const finalizerName = `${apiGroup}/skyhook`

export type DeletionInput = {
  readonly skyhook: Skyhook
  readonly counts: Counts
  readonly isDead: (node: string) => boolean
  /** When this census first saw the Skyhook being deleted. */
  readonly deletionObservedAtMs: number | undefined
  readonly nowMs: number
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
      readonly blockedBy?: 'pause' | 'disable'
      readonly recheckAtMs: number
    }

/** A step that started just before the deletion was observed has published its entry by then. */
const settleMs = 2_000

/** What to do with the finalizer now. */
export function planFinalizer({ skyhook, counts, isDead, deletionObservedAtMs, nowMs }: DeletionInput): FinalizerPlan {
  const { metadata, spec } = skyhook
  const has = metadata.finalizers?.includes(finalizerName) === true
  const toUninstall = packagesToUninstall(spec.packages ?? {})
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
  const settledAtMs = (deletionObservedAtMs ?? nowMs) + settleMs
  if (live.length === 0 && settledAtMs <= nowMs) return { action: 'remove', skipped }
  const blockedBy =
    live.length === 0 ? undefined : counts.isPaused ? 'pause' : counts.isDisabled ? 'disable' : undefined
  return {
    action: 'wait',
    nodes: live,
    skipped,
    ...(blockedBy && { blockedBy }),
    recheckAtMs: settledAtMs > nowMs ? settledAtMs : Infinity,
  }
}

/** Names of packages that are uninstalled when the Skyhook is deleted. */
function packagesToUninstall(packages: Readonly<Record<string, PackageSpec>>): Set<string> {
  return new Set(
    Object.entries(packages).flatMap(([name, { uninstall }]) => (uninstall?.enabled === true ? [name] : [])),
  )
}

/** Nothing is left to do once the entry is gone or its uninstall is over. What cannot be read may still be there. */
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

/** The list of finalizers after a plan; those of others stay as they are. */
export function finalizersAfter(plan: 'add' | 'remove', finalizers: readonly string[] = []): readonly string[] {
  const others = finalizers.filter((name) => name !== finalizerName)
  return plan === 'add' ? [...others, finalizerName] : others
}
