import type { PackageRecord } from '../../../src/schemas/journal.ts'
import { isHalfChanged } from './host-evidence.ts'
import { type Invariant, violate } from './invariant.ts'

/** A slot is held until the cordon is gone, no step runs, no package is half changed, and completion is published. */
export const slotsCoverChanges: Invariant = ({ node }) => ({
  slotReleased({ skyhook, skyhookUid, scope, uid }) {
    if (scope === 'control-plane') return
    const isSecond = node.slots.some(
      (other) => other.skyhookUid === skyhookUid && other.uid !== uid && other.ownership !== 'seen',
    )
    if (isSecond) return
    const what = `the slot of ${skyhookUid} goes`
    const view = node.views.get(skyhook)
    const isOfAnother = view !== undefined && view.metadata.uid !== skyhookUid
    if (node.annotation(`cordon_${skyhook}`) === 'true' && !isOfAnother) violate(`${what} before the cordon does`)
    const unit = node.running().find(({ view: running }) => running.metadata.uid === skyhookUid)
    if (unit) violate(`${what} while ${unit.record.name} ${unit.attempt.mode} runs`)
    if (!view || isOfAnother || node.node.metadata.labels?.['pool'] !== 'x') return
    const record = node.journal.skyhooks[skyhook]
    const hasHalfChanged = Object.values(record?.packages ?? {}).some(
      (entry) => isHalfChanged(entry) && !needsOnlyInterrupt(entry),
    )
    if (hasHalfChanged) violate(`${what} while the host is half changed`)
    const wasApplied = record?.applied !== undefined && node.lastReasons.get(skyhook) === undefined
    if (wasApplied && node.annotation(`status_${skyhook}`) !== 'complete')
      violate(`${what} before completion is published`)
  },
})

/** Whole on the host, and missing only the interrupt that the package requires: others may have the slot. */
const needsOnlyInterrupt = ({ progress, pendingInterrupt }: PackageRecord): boolean =>
  progress.stage === 'config' && progress.state === 'complete' && pendingInterrupt?.interrupt.when === 'required'
