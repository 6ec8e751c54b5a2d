import { controlPlaneScope, type Scope } from '../../lease/names.ts'
import { admissibleIndices, type Limit } from '../../lease/rule.ts'
import { heldIndices, type Lease, type NodeIdentity, type SlotProgress, type Slot } from '../../lease/slot.ts'
import { type Leases, listScope } from '../../lease/slot-reads.ts'
import { acquire, release, type AcquireOutcome } from '../../lease/slots.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { SkyhookView } from '../../stages/model/snapshot.ts'

/**
 * Only one control-plane node of the cluster may be disturbed at a time, regardless of Skyhooks and budgets: it takes a
 * second slot, acquired first and released last.
 */
const controlPlaneLabels = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master']

/** Whether work of this Skyhook on this node needs the control plane's slot: only what may interrupt does. */
export function needsControlPlaneSlot(node: KubernetesNode | undefined, { spec }: SkyhookView): boolean {
  if (!controlPlaneLabels.some((label) => label in (node?.metadata.labels ?? {}))) return false
  return Object.values(spec.packages ?? {}).some(
    ({ interrupt, configInterrupts }) => interrupt !== undefined || Object.keys(configInterrupts ?? {}).length > 0,
  )
}

/**
 * Acquires the control plane's slot, but only if the Skyhook's own scope has room as well, so that nobody holds it in
 * vain.
 */
export async function acquireControlPlaneSlot(
  leases: Leases,
  skyhookAdmission: { readonly scope: Scope; readonly limitFrom: (ledgers: readonly Lease[]) => Limit },
  node: NodeIdentity,
  progress: SlotProgress,
  signal: AbortSignal,
): Promise<AcquireOutcome> {
  const { slots, ledgers } = await listScope(leases, skyhookAdmission.scope, signal)
  const limit = skyhookAdmission.limitFrom(ledgers)
  if (typeof limit === 'object') return { outcome: 'waiting', reason: `budget unknown: ${limit.unknown}`, holders: [] }
  if (limit !== 'unlimited' && admissibleIndices(heldIndices(slots, skyhookAdmission.scope), limit).length === 0) {
    return {
      outcome: 'waiting',
      reason: `${slots.length} of ${limit} slots are held`,
      holders: slots.map(({ holder }) => holder),
    }
  }
  const answer = await acquire(
    leases,
    { scope: controlPlaneScope, node, progress, admissionFrom: () => ({ limit: 1 }) },
    signal,
  )
  if (answer.outcome !== 'waiting') return answer
  return { ...answer, reason: 'another control-plane node is in progress' }
}

/**
 * Releases it only once the API server of this cluster answers: the next control-plane node must not take it down for
 * good.
 */
export async function releaseControlPlaneSlot(
  leases: Leases,
  slot: Slot,
  node: NodeIdentity,
  signal: AbortSignal,
): Promise<void> {
  const answer = await leases.transport.stream('/readyz', { signal })
  answer.destroy()
  const released = await release(leases, slot, node, signal)
  if (released.outcome === 'unknown') throw new Error(`slot ${slot.name} was not released`, { cause: released.error })
}
