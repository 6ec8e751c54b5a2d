import type { SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import type { Decide } from '../../kit/node-simulator/node-simulator.ts'
import type { NodeObserver } from '../../kit/node-simulator/node-state.ts'
import type { Action } from '../../../src/stages/model/plan.ts'
import { ofOneNode } from '../../promises/all.ts'
import type { Promised } from '../../promises/promised.ts'
import { FaultyNode } from '../faulty-node.ts'
import { type NodeWorld, watchNode } from '../node-world.ts'
import { assertComplete, completeIsTrue } from './complete-is-true.ts'
import { completePackagesRest } from './complete-packages-rest.ts'
import { decisionsAreLevelTriggered } from './decisions-are-level-triggered.ts'
import { controlPlaneIsGuarded } from './control-plane-is-guarded.ts'
import { dependenciesComeFirst } from './dependencies-come-first.ts'
import { drainComesFirst } from './drain-comes-first.ts'
import { HostEvidence } from './host-evidence.ts'
import { interruptsAreRequired } from './interrupts-are-required.ts'
import { interruptsNeedCordon } from './interrupts-need-cordon.ts'
import { type Invariant, violate } from './invariant.ts'
import { keysNameOneAction } from './keys-name-one-action.ts'
import { outdatedSpecsDecideNothing } from './outdated-specs-decide-nothing.ts'
import { packagesRunOneStep } from './packages-run-one-step.ts'
import { pausedSkyhooksRest } from './paused-skyhooks-rest.ts'
import { rebootsAreMade } from './reboots-are-made.ts'
import { recoveryFollowsLoss } from './recovery-follows-loss.ts'
import { serialSkyhooksRunOnePackage } from './serial-skyhooks-run-one-package.ts'
import { stagesRunInOrder } from './stages-run-in-order.ts'
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
  recoveryFollowsLoss,
  controlPlaneIsGuarded,
  rebootsAreMade,
  completeIsTrue,
]

/** A node under all invariants and promises: the first effect that breaks one throws. */
export class WatchedNode extends FaultyNode {
  readonly evidence: HostEvidence
  readonly world: NodeWorld

  constructor(
    decide: Decide,
    invariants: readonly Invariant[] = everyInvariant,
    promises: readonly Promised[] = ofOneNode,
  ) {
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
    this.world = watchNode(this, promises, violate)
    // judged, then recorded
    observers.push(...invariants.map((invariant) => invariant(this.evidence)), this.world.observer, this.evidence)
  }

  override step(select?: (actions: readonly Action[]) => readonly Action[]): boolean {
    const hasChanged = super.step(select)
    this.world.roundEnds(hasChanged)
    return hasChanged
  }

  override requestRun(skyhook: string, name: string): void {
    this.world.look()
    super.requestRun(skyhook, name)
    this.world.runRequested(skyhook, name)
  }

  override restartAgent(): void {
    super.restartAgent()
    this.world.agentRestarts()
  }

  /** Throws unless the host is what `complete` would claim. */
  assertComplete(skyhook: string, spec: SkyhookSpec): void {
    assertComplete(this.evidence, skyhook, spec)
  }
}
