/** What becomes of a node when everything that its agent orders is done at once. Pure. */
import { patchedNode } from '../../../kube/node-writer.ts'
import type { InterruptRun } from '../../../schemas/package-record.ts'
import type { NodePatch, ObjectMeta } from '../../../schemas/kubernetes.ts'
import type { Action } from '../../../stages/model/plan.ts'
import { known, type OwnSlot, type SkyhookView, type Snapshot } from '../../../stages/model/snapshot.ts'
import { versionsOf } from '../../../stages/skyhook/slot.ts'
import { withReady } from './rehearsal-start.ts'
import { merged } from './three-way-merge.ts'

/** Everything that the agent orders succeeds. */
export const carriedOut = (snapshot: Snapshot, actions: readonly Action[], asksForInterrupts: boolean): Snapshot =>
  actions.reduce((one, action) => afterAction(one, action, asksForInterrupts), snapshot)

function afterAction(snapshot: Snapshot, action: Action, asksForInterrupts: boolean): Snapshot {
  const { slots } = snapshot
  const held = slots.known ? slots.value : []
  switch (action.do) {
    case 'acquireSlot':
      return withSlots(snapshot, [
        ...held,
        ...(action.withControlPlane ? [slotOf(snapshot, 'control-plane', action.view)] : []),
        slotOf(snapshot, 'skyhook', action.view),
      ])
    case 'acquireControlPlaneSlot':
      return withSlots(snapshot, [...held, slotOf(snapshot, 'control-plane', action.view)])
    case 'createRecoverySlot':
      return withSlots(snapshot, [...held, slotOf(snapshot, action.scope, action.view)])
    case 'confirmSlot':
      return withSlots(snapshot, withConfirmed(held, action.slot, { admittedUnder: versionsOf(action.view) }, snapshot))
    case 'renewSlot':
      return withSlots(snapshot, withConfirmed(held, action.slot, {}, snapshot))
    case 'releaseSlot':
      return withSlots(
        snapshot,
        held.filter(({ uid }) => uid !== action.slot.uid),
      )
    case 'startStep':
      return withAttempt(snapshot, action.attempt.id, 0)
    case 'stopStep':
      return withAttempt(snapshot, action.step.id, 143)
    case 'cleanUp':
      return { ...snapshot, cleanUps: new Map([...snapshot.cleanUps, [action.requestId, { state: 'done' }]]) }
    case 'readStatus': {
      const requests = { run: false, interrupt: asksForInterrupts }
      const status = { version: 1, bootId: snapshot.bootId, message: '', requests }
      const answer = { state: 'read', writtenAtMs: snapshot.nowMs, status } as const
      return { ...snapshot, requestedStatuses: new Map([...snapshot.requestedStatuses, [action.requestId, answer]]) }
    }
    case 'countNodes':
      return { ...snapshot, nodeCount: { isSingle: false, atMs: snapshot.nowMs } }
    case 'interrupt':
      return interrupted(snapshot, action.run)
    case 'publish':
      return { ...snapshot, node: patched(snapshot, action.patch) }
    case 'forgetStep':
    case 'recordStep': {
      const attempts = new Map(snapshot.attempts)
      attempts.delete(action.step.id)
      return { ...snapshot, attempts }
    }
    case 'prepare':
    case 'evict':
    case 'recordChecks':
    case 'recordHistory':
    case 'recordInterrupt':
      return snapshot
  }
}

const withSlots = (snapshot: Snapshot, slots: readonly OwnSlot[]): Snapshot => ({ ...snapshot, slots: known(slots) })

const withConfirmed = (
  held: readonly OwnSlot[],
  { uid }: OwnSlot,
  change: Pick<OwnSlot, 'admittedUnder'>,
  { nowMs }: Snapshot,
): readonly OwnSlot[] =>
  held.map((slot) => (slot.uid === uid ? { ...slot, ...change, ownership: 'confirmed', renewedAtMs: nowMs } : slot))

function slotOf({ nowMs }: Snapshot, scope: OwnSlot['scope'], view: SkyhookView): OwnSlot {
  const skyhook = scope === 'skyhook' ? view.metadata.name : ''
  const skyhookUid = scope === 'skyhook' ? view.metadata.uid : undefined
  const lease = `rehearsed-${scope}-${skyhook}`
  return {
    scope,
    skyhook,
    skyhookUid,
    lease,
    uid: lease,
    phase: 'working',
    ownership: 'confirmed',
    admittedUnder: versionsOf(view),
    isFormer: false,
    renewedAtMs: nowMs,
  }
}

/** The step has ended with this exit code. */
export const withAttempt = (snapshot: Snapshot, id: string, code: number): Snapshot => ({
  ...snapshot,
  attempts: new Map([...snapshot.attempts, [id, { state: 'ended', end: { outcome: 'exited', code } }]]),
})

/** The interrupt is done. A reboot is done by the boot that follows. */
export function interrupted(snapshot: Snapshot, run: InterruptRun): Snapshot {
  if (run.interrupt.type !== 'reboot')
    return { ...snapshot, interrupts: new Map([...snapshot.interrupts, [run.id, { state: 'done' }]]) }
  const bootId = `${snapshot.bootId}+`
  const { node } = snapshot
  const status = {
    ...node.status,
    nodeInfo: { bootID: bootId },
    conditions: withReady(node.status?.conditions),
  }
  return { ...snapshot, bootId, attempts: new Map(), interrupts: new Map(), node: { ...node, status } }
}

function patched({ node }: Snapshot, patch: NodePatch): Snapshot['node'] {
  const { labels, annotations } = patch
  const resourceVersion = `${node.metadata.resourceVersion}+`
  return patchedNode(node, patch, merged(node.metadata, { resourceVersion, labels, annotations }) as ObjectMeta)
}
