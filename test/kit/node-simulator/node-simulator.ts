import { emptyJournal, openSteps } from '../../../src/schemas/journal.ts'
import type { SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import type { StepEnd } from '../../../src/schemas/step-end.ts'
import { decide } from '../../../src/stages/decide.ts'
import {
  type Action,
  type Plan,
  type StartStep,
  type TimedReason,
  preparationKey,
} from '../../../src/stages/model/plan.ts'
import type { OwnSlot, Snapshot } from '../../../src/stages/model/snapshot.ts'

import { NodeState, type NodeObserver } from './node-state.ts'
import { countNodes, evict, publish } from './cluster.ts'
import { exitCodeOf, interrupt, prepare, startStep, stopStep } from './host.ts'
import { acquireSlot, addForeignSlot, confirmSlot, loseSlot, releaseSlot, updateSlot } from './slots.ts'
import { Wakes } from './wakes.ts'
import { readBudget } from '../../../src/schemas/budget.ts'

export type Decide = (snapshot: Snapshot, lastReasons: ReadonlyMap<string, TimedReason>) => Plan

type Options = {
  readonly decide?: Decide
  readonly observer?: NodeObserver
  /**
   * Steps, interrupts and evictions stay under way until `finish`, and the agent forgets what its plan no longer needs.
   * Otherwise everything ends within its round and what was prepared stays prepared.
   */
  readonly takesTime?: boolean
}

/**
 * One node that carries out what `decide` asks for. It knows none of the rules, so the code under test decided whatever
 * the packages do on it.
 */
export class NodeSimulator extends NodeState {
  readonly #decide: Decide
  readonly #takesTime: boolean
  readonly #incarnations = new Map<string, number>()

  constructor(labels: Record<string, string> = {}, options: Options = {}) {
    super(labels, options.observer)
    this.#decide = options.decide ?? decide
    this.#takesTime = options.takesTime ?? false
  }

  apply(name: string, spec: SkyhookSpec, annotations: Readonly<Record<string, string>> = {}): void {
    const { generation: last = 0, deletionTimestamp } = this.views.get(name)?.metadata ?? {}
    const generation = last + 1
    const uid = `${name}-uid${this.#incarnations.get(name) ?? ''}`
    const deletion = deletionTimestamp === undefined ? {} : { deletionTimestamp }
    this.views.set(name, {
      metadata: { name, uid, resourceVersion: String(generation), generation, annotations, ...deletion },
      spec,
      budget: readBudget(spec.interruptionBudget),
      stale: false,
    })
  }

  /** Someone deletes the Skyhook, and its finalizer keeps it. */
  requestDeletion(name: string): void {
    const view = this.views.get(name)
    if (view) this.views.set(name, { ...view, metadata: { ...view.metadata, deletionTimestamp: 'now' } })
  }

  /** The Skyhook is deleted; one that is applied under its name later is another object. */
  remove(name: string): void {
    this.views.delete(name)
    this.#incarnations.set(name, (this.#incarnations.get(name) ?? 1) + 1)
  }

  /**
   * One decision, its journal made durable, then the actions of it that `select` lets through. True when anything
   * changed.
   */
  step(select = (actions: readonly Action[]): readonly Action[] => actions): boolean {
    const snapshot = this.snapshot()
    const plan = this.#decide(snapshot, this.lastReasons)
    this.observer.decided?.(snapshot, plan)
    this.lastPlan = plan
    this.lastReasons = plan.reasons
    this.events.push(...plan.events)
    const isJournalChanged = JSON.stringify(plan.journal) !== JSON.stringify(this.journal)
    this.journal = plan.journal
    const isWatchChanged = this.podWatch !== plan.watchPods
    this.podWatch = plan.watchPods
    if (this.#takesTime) this.#forget(plan)
    let hasActed = isWatchChanged
    for (const action of select(plan.actions)) hasActed = this.#carryOut(action, snapshot) || hasActed
    hasActed ||= this.hasReadStatuses !== this.readsStatuses
    this.hasReadStatuses = this.readsStatuses
    if (!this.#takesTime) hasActed = this.finish() || hasActed
    return isJournalChanged || hasActed
  }

  /** Steps until nothing changes; the clock does not move. */
  settle(): this {
    for (let round = 0; round < 500; round++) if (!this.step()) return this
    throw new Error(`does not settle: ${JSON.stringify(this.lastPlan?.actions.map(({ key }) => key))}`)
  }

  /** Steps until `holds`; the clock does not move. */
  settleUntil(holds: () => boolean): this {
    for (let round = 0; round < 500 && !holds(); round++) this.step()
    if (!holds()) throw new Error('it never holds')
    return this
  }

  /** Settles for `ms`, moving the clock from one wake-up of the plan to the next. */
  settleFor(ms: number): this {
    const end = this.nowMs + ms
    const wakes = new Wakes()
    this.settle()
    while (this.lastPlan && this.lastPlan.requeueAtMs <= end) {
      this.nowMs = wakes.next(this.nowMs, this.lastPlan.requeueAtMs)
      this.settle()
    }
    this.nowMs = end
    return this.settle()
  }

  annotation(key: string): string | undefined {
    return this.node.metadata.annotations?.[`skyhook.nvidia.com/${key}`]
  }

  /** nodeState in short: `a|1.0.0: config/complete`. */
  state(skyhook = 's'): string[] {
    const entries = JSON.parse(this.annotation(`nodeState_${skyhook}`) ?? '{}') as Record<
      string,
      { stage: string; state: string }
    >
    return Object.entries(entries).map(([key, { stage, state }]) => `${key}: ${stage}/${state}`)
  }

  status(skyhook = 's'): string | undefined {
    return this.annotation(`status_${skyhook}`)
  }

  reason(skyhook = 's'): string | undefined {
    return this.lastReasons.get(skyhook)?.reason
  }

  edit(change: (annotations: Record<string, string>) => void): void {
    const annotations = { ...this.node.metadata.annotations }
    change(annotations)
    this.node = { ...this.node, metadata: { ...this.node.metadata, annotations } }
  }

  /** Steps that run on the host now. */
  running(): StartStep[] {
    return [...this.startedSteps].flatMap(([id, action]) =>
      this.attempts.get(id)?.state === 'running' ? [action] : [],
    )
  }

  /** Everything under way ends: steps with their exit code, evicted pods, interrupts. True when anything did. */
  finish(): boolean {
    let hasEnded = this.terminatingPods.size > 0
    for (const [id, action] of this.startedSteps) {
      if (this.attempts.get(id)?.state !== 'running' || this.hangingSteps.has(id)) continue
      hasEnded = true
      const code = exitCodeOf(this, action)
      this.attempts.set(id, { state: 'ended', end: { outcome: 'exited', code } })
      this.stepEnded(action, action.step.returncodes.includes(code))
    }
    this.pods = this.pods.filter(({ metadata }) => !this.terminatingPods.has(metadata.uid))
    this.terminatingPods.clear()
    for (const [id, { run, skyhook }] of this.interrupting) {
      hasEnded = true
      this.interrupting.delete(id)
      this.observer.interruptEnds?.(run, skyhook)
      if (run.interrupt.type === 'reboot') {
        this.reboot()
        break
      }
      if (this.interrupts.has(id)) this.interrupts.set(id, { state: 'done' })
    }
    return hasEnded
  }

  finishHanging(packageName: string, end: StepEnd = { outcome: 'exited', code: 0 }): void {
    this.hangingPackages.delete(packageName)
    for (const { attempt, record } of this.running())
      if (record.name === packageName) this.attempts.set(attempt.id, { state: 'ended', end })
  }

  /**
   * The agent is killed and starts again: its memory is gone, host and cluster are as they were. It observes the open
   * steps of its journal; it writes the missing records of the others before it decides.
   */
  restartAgent(): void {
    const open = new Set(openSteps(this.journal).map(({ id }) => id))
    for (const id of this.attempts.keys()) if (!open.has(id)) this.attempts.delete(id)
    this.lastReasons = new Map()
    for (const found of [
      this.preparations,
      this.slotDenials,
      this.requestedStatuses,
      this.cleanUps,
      this.failures,
      this.evictions,
      this.interrupts,
    ])
      found.clear()
    this.slots = this.slots.map((slot) => ({ ...slot, ownership: 'seen', renewedAtMs: 0 }))
    this.podWatch = 'no'
    this.nodeCount = undefined
    this.evictedOwners.clear()
    this.hasReadStatuses = false
  }

  /** Running steps vanish without a result; with `losesWrites` also results that were not durable yet. */
  powerCut(losesWrites = false): void {
    this.bootId = `boot-${Number(this.bootId.split('-')[1]) + 1}`
    for (const [skyhook, { interrupt }] of Object.entries(this.journal.skyhooks)) // a boot does what any of them would
      if (interrupt && (interrupt.interrupt.type === 'reboot' || this.requestedInterrupts.has(interrupt.id)))
        this.observer.interruptEnds?.(interrupt, skyhook)
    for (const [id, { state }] of this.attempts) if (state !== 'ended' || losesWrites) this.attempts.delete(id)
    this.interrupting.clear()
    this.observer.booted?.()
    this.restartAgent()
  }

  /** The agent's folder is wiped, and the agent starts again: what the Node shows is all that is left. */
  loseJournal(): void {
    this.journal = emptyJournal('node-uid')
    this.attempts.clear()
    this.restartAgent()
  }

  /** The host comes up again: a new boot, reported by the kubelet. */
  reboot(losesWrites = false): void {
    this.powerCut(losesWrites)
    this.reportReady()
  }

  protected stepEnded(action: StartStep, succeeded: boolean): void {
    this.observer.stepEnds?.(action, succeeded)
  }

  /** A slot that no request of this agent asked for: created late, or brought back by a restored etcd. */
  slotAppears(name: string, scope: OwnSlot['scope']): void {
    addForeignSlot(this, name, scope)
  }

  #forget({ watchPods, needed }: Plan): void {
    if (watchPods === 'no') this.evictions.clear()
    for (const found of [this.preparations, this.requestedStatuses, this.cleanUps])
      for (const key of found.keys()) if (!needed.has(key)) found.delete(key)
  }

  #carryOut(action: Action, snapshot: Snapshot): boolean {
    switch (action.do) {
      case 'prepare':
        return prepare(this, preparationKey(action.image), action.image, action.depth)
      case 'acquireSlot':
      case 'acquireControlPlaneSlot':
      case 'createRecoverySlot':
        return acquireSlot(this, action)
      case 'confirmSlot':
        return confirmSlot(this, action)
      case 'renewSlot':
        if (this.lostLeases.has(action.slot.uid)) return loseSlot(this, action.slot)
        return updateSlot(this, action.slot, { phase: action.phase, ownership: 'owned' })
      case 'releaseSlot':
        return releaseSlot(this, action.slot)
      case 'startStep':
        return startStep(this, action, snapshot)
      case 'stopStep':
        return stopStep(this, action.step)
      case 'recordStep':
      case 'forgetStep':
        return this.attempts.delete(action.step.id)
      case 'recordChecks':
      case 'recordHistory':
        return false
      case 'cleanUp': {
        const isUnchanged = this.cleanUps.get(action.requestId)?.state === (this.cleanUpError ? 'failed' : 'done')
        this.cleanUps.set(
          action.requestId,
          this.cleanUpError === undefined ? { state: 'done' } : { state: 'failed', message: this.cleanUpError },
        )
        return !isUnchanged
      }
      case 'recordInterrupt':
        this.requestedInterrupts.delete(action.run.id)
        return this.interrupts.delete(action.run.id)
      case 'readStatus': {
        const missing = { state: 'unusable', why: 'there is no such file' } as const
        const file = this.statusFiles.get(`${action.skyhook}/${action.package}`) ?? missing
        this.requestedStatuses.set(action.requestId, file)
        return true
      }
      case 'interrupt':
        return interrupt(this, action.run, action.view)
      case 'countNodes':
        return countNodes(this)
      case 'evict':
        return evict(this, action.pod, action.delete === true)
      case 'publish':
        return publish(this, action.patch)
    }
  }
}
