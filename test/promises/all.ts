/** The rules of a fleet, all of which every run is judged by. */
import { backsOff } from './backs-off.ts'
import { budget } from './budget.ts'
import { batches } from './batches.ts'
import { completeOnce } from './complete-once.ts'
import { completes } from './completes.ts'
import { controlPlane } from './control-plane.ts'
import { counted } from './counted.ts'
import { cordon } from './cordon.ts'
import { endedPods } from './ended-pods.ts'
import { evictions } from './evictions.ts'
import { interruptApart } from './interrupt-apart.ts'
import { halts } from './halts.ts'
import type { Invariant, Promised } from './promised.ts'
import { joining } from './joining.ts'
import { ledgerFresh } from './ledger-fresh.ts'
import { progress } from './progress.ts'
import { readySeen } from './ready-seen.ts'
import { readyTrue } from './ready-true.ts'
import { reboots } from './reboots.ts'
import { requestRate } from './request-rate.ts'
import { seriesTrue } from './series-true.ts'
import { slotsKept } from './slots-kept.ts'
import { slotsOwned } from './slots-owned.ts'
import { slotsTrue } from './slots-true.ts'
import { soak } from './soak.ts'
import { startsRead } from './starts-read.ts'
import { uninstalled } from './uninstalled.ts'

/** What real hosts show as well. */
export const everywhere: readonly Promised[] = [
  budget,
  slotsKept,
  slotsOwned,
  slotsTrue,
  reboots,
  cordon,
  evictions,
  endedPods,
  completeOnce,
  interruptApart,
  progress,
  requestRate,
  readyTrue,
  counted,
]

/** What one node shows that is simulated from its decisions alone: without a budget, a census and requests. */
export const ofOneNode: readonly Promised[] = [
  startsRead,
  slotsKept,
  slotsOwned,
  slotsTrue,
  cordon,
  evictions,
  endedPods,
  completeOnce,
  interruptApart,
  progress,
]

export const invariants: readonly Invariant[] = [
  budget,
  startsRead,
  batches,
  controlPlane,
  slotsKept,
  soak,
  cordon,
  evictions,
  endedPods,
  completeOnce,
  interruptApart,
  readyTrue,
  readySeen,
  joining,
  halts,
  progress,
  slotsOwned,
  requestRate,
  backsOff,
  counted,
  ledgerFresh,
  completes,
  seriesTrue,
  uninstalled,
  slotsTrue,
  reboots,
]
