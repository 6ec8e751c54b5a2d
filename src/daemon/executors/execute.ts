import type { Action } from '../../stages/model/plan.ts'
import { type ActionOutcome, outcomeOf } from '../failures/reason-of.ts'
import type { Evictor } from './evictions.ts'
import type { Interrupter } from './interrupts.ts'
import type { Preparer } from './prepare.ts'
import type { StepRunner } from './steps/run.ts'
import type { NodeCounter } from '../state/fleet-size.ts'
import type { PackageStatuses } from '../state/package-statuses.ts'
import type { SlotManager } from '../slots/slot-manager.ts'
import type { NodePatch } from '../../schemas/kubernetes.ts'

/** The executors of actions. */
export type Executors = {
  readonly preparer: Preparer
  readonly slots: SlotManager
  readonly steps: StepRunner
  readonly interrupter: Interrupter
  readonly statuses: PackageStatuses
  readonly evictor: Evictor
  readonly nodeCounter: NodeCounter
  readonly publish: (patch: NodePatch, computedFrom: string) => Promise<void>
}

/** Passes an action to its executor, without a decision. Rejects only for a bug. */
export const execute = (executors: Executors, action: Action): Promise<ActionOutcome> =>
  outcomeOf(carryOut(executors, action))

async function carryOut(
  { preparer, slots, steps, interrupter, statuses, evictor, nodeCounter, publish }: Executors,
  action: Action,
): Promise<void> {
  switch (action.do) {
    case 'prepare':
      return await preparer.prepare(action.image, action.depth)
    case 'acquireSlot':
      return await slots.acquire(action.view, action.phase, action.withControlPlane, action.isJoining)
    case 'acquireControlPlaneSlot':
      return await slots.acquireControlPlane(action.view, action.phase)
    case 'createRecoverySlot':
      return await slots.createRecovery(action.view, action.phase, action.scope)
    case 'confirmSlot':
      return await slots.confirm(action.slot, action.view)
    case 'renewSlot':
      return await slots.renew(action.slot, action.phase)
    case 'releaseSlot':
      return await slots.release(action.slot)
    case 'startStep':
      return await steps.start(action)
    case 'stopStep':
      return await steps.stop(action.step)
    case 'forgetStep':
      return await steps.forgetStep(action.step)
    case 'recordStep':
      return await steps.recordStep(action)
    case 'recordChecks':
      return await steps.recordChecks(action)
    case 'recordHistory':
      return await steps.recordHistory(action)
    case 'cleanUp':
      return await steps.cleanUp(action)
    case 'readStatus':
      return await statuses.readForStage(action)
    case 'evict':
      return await evictor.evict(action.pod, action.delete === true)
    case 'countNodes':
      return void (await nodeCounter.count())
    case 'interrupt':
      return await interrupter.interrupt(action)
    case 'recordInterrupt':
      return await interrupter.record(action)
    case 'publish':
      return await publish(action.patch, action.computedFrom)
  }
}
