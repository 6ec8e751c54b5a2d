/**
 * The finalizer of a Skyhook, which keeps it while nodes still have to uninstall. It is there only where some package asks for that, and
 * goes when no live node has anything of it left.
 */
import type { PackageSpec, Skyhook } from '../schemas/skyhook.ts'
import type { Counts } from './count.ts'
import type { NodeFact } from './node-facts.ts'

export const FINALIZER = 'skyhook.nvidia.com/skyhook'

export type DeletionInput = {
  readonly skyhook: Skyhook
  readonly counts: Counts
  readonly isDead: (node: string) => boolean
  /** When this census first saw the Skyhook being deleted. */
  readonly deletionSeenMs: number | undefined
  readonly nowMs: number
}

export type FinalizerPlan =
  | { readonly do: 'nothing' }
  | { readonly do: 'add' }
  /** `skipped` are dead nodes on which packages stay installed. */
  | { readonly do: 'remove'; readonly skipped: readonly string[] }
  /** Being deleted; `nodes` are live and not done. `heldBy`: why they do not go on. */
  | {
      readonly do: 'wait'
      readonly nodes: readonly string[]
      readonly skipped: readonly string[]
      readonly heldBy?: 'pause' | 'disable'
      readonly againAtMs: number
    }

/** A step that began just before the deletion was seen has published its entry by then. */
const SETTLE_MS = 2_000

/** What to do about the finalizer now. */
export function planFinalizer({ skyhook, counts, isDead, deletionSeenMs, nowMs }: DeletionInput): FinalizerPlan {
  const { metadata, spec } = skyhook
  const has = metadata.finalizers?.includes(FINALIZER) === true
  const wanted = packagesToUninstall(spec.packages ?? {})
  if (metadata.deletionTimestamp === undefined) {
    if (wanted.size > 0 && !has) return { do: 'add' }
    // Not before everything is done: a package taken out of the spec may be uninstalling.
    return wanted.size === 0 && has && counts.complete === counts.nodes.length ? { do: 'remove', skipped: [] } : { do: 'nothing' }
  }
  if (!has) return { do: 'nothing' }
  const left = counts.nodes.filter((node) => hasLeft(node, wanted)).map(({ name }) => name)
  const skipped = left.filter(isDead)
  const live = left.filter((name) => !isDead(name))
  const settledMs = (deletionSeenMs ?? nowMs) + SETTLE_MS
  if (live.length === 0 && settledMs <= nowMs) return { do: 'remove', skipped }
  const heldBy = live.length === 0 ? undefined : counts.isPaused ? 'pause' : counts.isDisabled ? 'disable' : undefined
  return { do: 'wait', nodes: live, skipped, ...(heldBy && { heldBy }), againAtMs: settledMs > nowMs ? settledMs : Infinity }
}

/** Names of packages that are uninstalled when the Skyhook is deleted. */
function packagesToUninstall(packages: Readonly<Record<string, PackageSpec>>): Set<string> {
  return new Set(Object.entries(packages).flatMap(([name, { uninstall }]) => (uninstall?.enabled === true ? [name] : [])))
}

/** An entry is gone, or shows a complete uninstall, once there is nothing left. What nobody can read is not known to be gone. */
function hasLeft({ entries, isScribble }: NodeFact, wanted: ReadonlySet<string>): boolean {
  return (
    isScribble || Object.values(entries).some(({ name, stage, state }) => (stage === 'uninstall' ? state !== 'complete' : wanted.has(name)))
  )
}

/** The list of finalizers after a plan; those of others stay as they are. */
export function finalizersAfter(plan: 'add' | 'remove', finalizers: readonly string[] = []): readonly string[] {
  const others = finalizers.filter((name) => name !== FINALIZER)
  return plan === 'add' ? [...others, FINALIZER] : others
}
