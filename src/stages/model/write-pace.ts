import type { Snapshot } from './snapshot.ts'

/** A reason that is gone again sooner is not worth a write: most are before it would arrive. */
const usualSettleMs = 700

/** How long the reason of a wait has to last before it is written, in ms. All nodes of a rollout begin to wait at once. */
export const settleMs = ({ spreadMs = 0 }: Pick<Snapshot, 'spreadMs'>): number => Math.max(usualSettleMs, spreadMs)
