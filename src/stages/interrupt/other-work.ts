import { openStepsOf } from '../../schemas/journal.ts'
import type { Reason } from '../../schemas/catalogue/reasons.ts'
import { isInterrupting, mayBeRunning } from '../model/host-facts.ts'
import type { SkyhookView, Snapshot } from '../model/snapshot.ts'

type Asking = { readonly snapshot: Snapshot; readonly view: Pick<SkyhookView, 'metadata'> }

const othersOf = ({ snapshot, view }: Asking) =>
  Object.entries(snapshot.journal.skyhooks).filter(([name]) => name !== view.metadata.name)

/** Why no step starts: another Skyhook restarts services or reboots on this node. */
export function otherInterrupt(asking: Asking): Reason | undefined {
  const other = othersOf(asking).find(([, { interrupt }]) => isInterrupting(asking.snapshot, interrupt))
  return other && waitsFor(`the interrupt of Skyhook ${other[0]} ends`)
}

/** Why no interrupt starts: it would kill a step of another Skyhook, or mix with the other Skyhook's interrupt. */
export function otherWork(asking: Asking): Reason | undefined {
  const other = othersOf(asking).find(([, record]) =>
    openStepsOf(record).some((step) => mayBeRunning(asking.snapshot, step)),
  )
  return otherInterrupt(asking) ?? (other && waitsFor(`the step of Skyhook ${other[0]} ends`))
}

const waitsFor = (end: string): Reason => ({
  reason: 'WaitingForOtherSkyhook',
  message: `work continues on this node when ${end}`,
})
