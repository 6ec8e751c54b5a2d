import type { SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import type { Decide } from '../../kit/node-simulator/node-simulator.ts'
import type { NodeObserver } from '../../kit/node-simulator/node-state.ts'
import { FaultyNode } from '../faulty-node.ts'
import { assertComplete, completeIsTrue } from './complete-is-true.ts'
import { completePackagesRest } from './complete-packages-rest.ts'
import { decisionsAreLevelTriggered } from './decisions-are-level-triggered.ts'
import { controlPlaneIsGuarded } from './control-plane-is-guarded.ts'
import { dependenciesComeFirst } from './dependencies-come-first.ts'
import { drainComesFirst } from './drain-comes-first.ts'
import { HostEvidence } from './host-evidence.ts'
import { interruptsAreRequired } from './interrupts-are-required.ts'
import { interruptsNeedCordon } from './interrupts-need-cordon.ts'
import type { Invariant } from './invariant.ts'
import { keysNameOneAction } from './keys-name-one-action.ts'
import { outdatedSpecsDecideNothing } from './outdated-specs-decide-nothing.ts'
import { packagesRunOneStep } from './packages-run-one-step.ts'
import { pausedSkyhooksRest } from './paused-skyhooks-rest.ts'
import { rebootsAreMade } from './reboots-are-made.ts'
import { recoveryFollowsLoss } from './recovery-follows-loss.ts'
import { serialSkyhooksRunOnePackage } from './serial-skyhooks-run-one-package.ts'
import { slotsCoverChanges } from './slots-cover-changes.ts'
import { stagesRunInOrder } from './stages-run-in-order.ts'
import { stepsAndInterruptsAreApart } from './steps-and-interrupts-are-apart.ts'
import { stepsKeepTheirCordon } from './steps-keep-their-cordon.ts'
import { stepsNeedConfirmedSlot } from './steps-need-confirmed-slot.ts'
import { stepsStartOnce } from './steps-start-once.ts'
import { successfulStepsAreKept } from './successful-steps-are-kept.ts'
import { uninstallsAreTried } from './uninstalls-are-tried.ts'

const everyInvariant: readonly Invariant[] = [
  keysNameOneAction,
  decisionsAreLevelTriggered,
  stepsNeedConfirmedSlot,
  interruptsAreRequired,
  stepsAndInterruptsAreApart,
  packagesRunOneStep,
  serialSkyhooksRunOnePackage,
  pausedSkyhooksRest,
  outdatedSpecsDecideNothing,
  stepsStartOnce,
  successfulStepsAreKept,
  uninstallsAreTried,
  stagesRunInOrder,
  drainComesFirst,
  dependenciesComeFirst,
  completePackagesRest,
  interruptsNeedCordon,
  stepsKeepTheirCordon,
  slotsCoverChanges,
  recoveryFollowsLoss,
  controlPlaneIsGuarded,
  rebootsAreMade,
  completeIsTrue,
]

/** A node under all invariants: the first effect that breaks one throws. */
export class WatchedNode extends FaultyNode {
  readonly evidence: HostEvidence

  constructor(decide: Decide) {
    const observers: NodeObserver[] = []
    super(decide, {
      decided: (...effect) => observers.forEach((observer) => observer.decided?.(...effect)),
      stepStarts: (...effect) => observers.forEach((observer) => observer.stepStarts?.(...effect)),
      stepEnds: (...effect) => observers.forEach((observer) => observer.stepEnds?.(...effect)),
      interruptStarts: (...effect) => observers.forEach((observer) => observer.interruptStarts?.(...effect)),
      interruptEnds: (...effect) => observers.forEach((observer) => observer.interruptEnds?.(...effect)),
      slotReleased: (...effect) => observers.forEach((observer) => observer.slotReleased?.(...effect)),
      published: (...effect) => observers.forEach((observer) => observer.published?.(...effect)),
      booted: () => observers.forEach((observer) => observer.booted?.()),
    })
    this.evidence = new HostEvidence(this, decide)
    // judged, then recorded
    observers.push(...everyInvariant.map((invariant) => invariant(this.evidence)), this.evidence)
  }

  /** Throws unless the host is what `complete` would claim. */
  assertComplete(skyhook: string, spec: SkyhookSpec): void {
    assertComplete(this.evidence, skyhook, spec)
  }
}
