import { type InterruptRun, type Journal, emptyJournal } from '../../src/schemas/journal.ts'
import type { StatusReadResult } from '../../src/schemas/package-status.ts'
import type { KubernetesNode, NodeCondition } from '../../src/schemas/kubernetes.ts'
import type { Mode, PackageConfig, Step } from '../../src/schemas/package-config.ts'
import type { SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { decide } from '../../src/stages/decide.ts'
import {
  type Action,
  type PackageImage,
  type Plan,
  type StageEvent,
  type TimedReason,
  preparationKey,
} from '../../src/stages/model/plan.ts'
import {
  type AttemptObservation,
  type Eviction,
  type InterruptObservation,
  type OwnSlot,
  type Preparation,
  type SkyhookView,
  type SlotDenial,
  type StepEnd,
  type Snapshot,
  type OnTestFinished,
  known,
  unknown,
} from '../../src/stages/model/snapshot.ts'
import type { Pod, PodWatch } from '../../src/stages/model/pods.ts'

/**
 * One node in a test: holds what the world would hold and carries out what `decide` asks for, instantly and faithfully.
 * It knows nothing of the rules, so whatever the packages do on it was decided by the code under test.
 */
export class NodeSimulator {
  nowMs = 1_000_000
  bootId = 'boot-1'
  journal: Journal
  node: KubernetesNode
  readonly views = new Map<string, SkyhookView>()
  readonly preparations = new Map<string, Preparation>()
  readonly attempts = new Map<string, AttemptObservation>()
  readonly slots: OwnSlot[] = []
  readonly slotDenials = new Map<string, SlotDenial>()
  readonly events: StageEvent[] = []
  /** Every step that ran, in order: `<package> <mode> <path>`. */
  readonly executedSteps: string[] = []
  lastPlan: Plan | undefined
  lastReasons: ReadonlyMap<string, TimedReason> = new Map()
  /** Exit code per `<package> <mode>`; absent = 0. */
  readonly exitCodes = new Map<string, number>()
  /** Packages whose steps keep running until released. */
  readonly hangingPackages = new Set<string>()
  /** Why the host can start no step now. */
  startBlocker: string | undefined
  readonly images = new Map<string, PackageConfig | string>()
  /** Variables whose reference leads nowhere. */
  readonly missingReferences = new Set<string>()
  areSlotsGranted = true
  pods: Pod[] = []
  hostFolders: ReadonlySet<string> = new Set()
  readonly requestedStatuses = new Map<string, StatusReadResult>()
  readonly cleanUps = new Map<string, OnTestFinished>()
  /** What the last look at the status files found. */
  statuses: Snapshot['statuses'] = known(new Map())
  /** Status files of packages, by name: what they say when they are requested. */
  readonly statusFiles = new Map<string, StatusReadResult>()
  reapplyOnReboot = false
  host: Snapshot['host'] = { state: 'usable' }
  podWatch: PodWatch = 'no'
  singleNode: boolean | undefined
  readonly evictions = new Map<string, Eviction>()
  readonly interrupts = new Map<string, InterruptObservation>()
  /** Every interrupt that was carried out, in order. */
  readonly executedInterrupts: string[] = []
  /** What the next interrupts answer, by type; absent = done. */
  readonly interruptAnswers = new Map<string, InterruptObservation>()
  /** Names of pods that refuse eviction. */
  readonly refusingPods = new Set<string>()
  readonly evictedPods: string[] = []
  patches = 0
  /** Why what uninstalls leave behind cannot be removed. */
  cleanUpError: string | undefined
  /** Changes of the Node are on their way and not there yet. */
  arePatchesDelayed = false

  constructor(labels: Record<string, string> = {}) {
    this.node = {
      metadata: { name: 'node-1', uid: 'node-uid', resourceVersion: '1', labels, annotations: {} },
      spec: {},
      status: { conditions: [] },
    }
    this.reportReady()
    this.journal = emptyJournal('node-uid')
  }

  apply(name: string, spec: SkyhookSpec, annotations: Record<string, string> = {}): void {
    const generation = (this.views.get(name)?.metadata.generation ?? 0) + 1
    this.views.set(name, {
      metadata: { name, uid: `${name}-uid`, resourceVersion: String(generation), generation, annotations },
      spec,
      stale: false,
    })
  }

  snapshot(): Snapshot {
    return {
      nowMs: this.nowMs,
      bootId: this.bootId,
      node: this.node,
      skyhooks: known([...this.views.values()]),
      journal: this.journal,
      attempts: this.attempts,
      preparations: this.preparations,
      slots: known([...this.slots]),
      slotDenials: this.slotDenials,
      host: this.host,
      pods: this.podWatch === 'no' ? unknown('not followed') : known({ pods: [...this.pods], since: this.podWatch }),
      singleNode: this.singleNode,
      evictions: this.evictions,
      hostFolders: this.hostFolders,
      statuses: this.statuses,
      requestedStatuses: this.requestedStatuses,
      cleanUps: this.cleanUps,
      interrupts: this.interrupts,
      settings: {
        runtimeRequiredTaint: { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' },
        skipNamespaces: ['kube-system'],
        reapplyOnReboot: this.reapplyOnReboot,
      },
    }
  }

  /** One decision and everything it asks for. True when something happened. */
  step(): boolean {
    const plan = decide(this.snapshot(), this.lastReasons)
    this.lastPlan = plan
    this.lastReasons = plan.reasons
    this.events.push(...plan.events)
    const watched = this.podWatch
    this.podWatch = plan.watchPods
    const changed = JSON.stringify(plan.journal) !== JSON.stringify(this.journal)
    this.journal = plan.journal
    let acted = watched !== this.podWatch
    for (const action of plan.actions) acted = this.#do(action) || acted
    return changed || acted
  }

  /** Until nothing changes any more; the clock stands still. */
  settle(): this {
    for (let round = 0; round < 500; round++) if (!this.step()) return this
    throw new Error(`does not settle: ${JSON.stringify(this.lastPlan?.actions.map(({ key }) => key))}`)
  }

  /** Lets time pass in steps until the plan's next wake-up, at most so often. */
  settleFor(ms: number): this {
    const end = this.nowMs + ms
    this.settle()
    while (this.lastPlan && this.lastPlan.requeueAtMs <= end) {
      this.nowMs = Math.max(this.nowMs + 1, this.lastPlan.requeueAtMs)
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

  /** A reboot nobody of ours requested for, or a power cut: running steps are gone without a result. */
  powerCut(): void {
    this.bootId = `boot-${Number(this.bootId.split('-')[1]) + 1}`
    this.attempts.clear()
  }

  finishHanging(packageName: string, end: StepEnd = { outcome: 'exited', code: 0 }): void {
    this.hangingPackages.delete(packageName)
    for (const [id, { state }] of this.attempts) if (state === 'running') this.attempts.set(id, { state: 'ended', end })
  }

  #cleanUp(requestId: string): boolean {
    const before = this.cleanUps.get(requestId)?.state
    const message = this.cleanUpError
    this.cleanUps.set(requestId, message === undefined ? { state: 'done' } : { state: 'failed', message })
    return before !== this.cleanUps.get(requestId)?.state
  }

  #do(action: Action): boolean {
    switch (action.do) {
      case 'prepare':
        return this.#prepare(preparationKey(action.image), action.image)
      case 'acquireSlot':
      case 'createRecoverySlot': {
        const { name, uid } = action.view.metadata
        if (!this.areSlotsGranted && action.do === 'acquireSlot') {
          this.slotDenials.set(name, {
            message: 'all slots are held',
            nextRequestAtMs: this.nowMs + 10_000,
            sinceMs: this.nowMs,
          })
          return false
        }
        this.slotDenials.delete(name)
        this.slots.push({
          skyhook: name,
          skyhookUid: uid,
          lease: `${name}.slot-0`,
          phase: action.phase,
          confirmed: action.do === 'createRecoverySlot',
          renewedAtMs: this.nowMs,
        })
        return true
      }
      case 'confirmSlot':
        return this.#replaceSlot(action.slot, { ...action.slot, confirmed: true })
      case 'renewSlot':
        return this.#replaceSlot(action.slot, { ...action.slot, phase: action.phase, renewedAtMs: this.nowMs })
      case 'releaseSlot':
        this.slots.splice(0, this.slots.length, ...this.slots.filter(({ lease }) => lease !== action.slot.lease))
        return true
      case 'startStep': {
        const known = this.attempts.get(action.attempt.id)
        if (known && (known.state !== 'absent' || this.startBlocker !== undefined)) return false
        if (this.startBlocker !== undefined) {
          this.attempts.set(action.attempt.id, { state: 'absent', startBlocker: this.startBlocker })
          return true
        }
        const { mode, path } = action.attempt
        this.executedSteps.push(`${action.record.name} ${mode} ${path}`)
        const code = this.exitCodes.get(`${action.record.name} ${mode}`) ?? 0
        this.attempts.set(
          action.attempt.id,
          this.hangingPackages.has(action.record.name)
            ? { state: 'running' }
            : { state: 'ended', end: { outcome: 'exited', code } },
        )
        return true
      }
      case 'stopStep':
        this.attempts.set(action.step.id, { state: 'ended', end: { outcome: 'killed', signal: 'TERM' } })
        return true
      case 'recordStep':
      case 'forgetStep':
        return this.attempts.delete(action.step.id)
      case 'recordChecks':
      case 'recordHistory':
        return true
      case 'cleanUp':
        return this.#cleanUp(action.requestId)
      case 'recordInterrupt':
        return this.interrupts.delete(action.run.id)
      case 'readStatus':
        this.requestedStatuses.set(
          action.requestId,
          this.statusFiles.get(action.package) ?? { state: 'unusable', why: 'there is no such file' },
        )
        return true
      case 'interrupt':
        return this.#interrupt(action.run)
      case 'countNodes':
        this.singleNode = true
        return true
      case 'evict':
        return this.#evict(action.pod, action.delete === true)
      case 'publish':
        return this.#publish(action)
    }
  }

  #interrupt(run: InterruptRun): boolean {
    if (this.interrupts.has(run.id)) return false
    const answer: InterruptObservation = run.abandoned
      ? { state: 'aborted', why: 'abandoned' }
      : (this.interruptAnswers.get(run.interrupt.type) ?? { state: 'done' })
    this.interrupts.set(run.id, answer)
    if (answer.state === 'done' || answer.state === 'unknown')
      this.executedInterrupts.push([run.interrupt.type, ...(run.interrupt.services ?? [])].join(' '))
    if (answer.state === 'done' && run.interrupt.type === 'reboot') this.reboot()
    return true
  }

  /** The host comes up again: a new boot, reported by the kubelet. */
  reboot(): void {
    this.powerCut()
    this.reportReady()
  }

  reportReady(status: 'True' | 'False' = 'True'): void {
    const others = (this.node.status?.conditions ?? []).filter(({ type }) => type !== 'Ready')
    this.node = {
      ...this.node,
      status: {
        ...this.node.status,
        conditions: [...others, { type: 'Ready', status }],
        nodeInfo: { bootID: this.bootId },
      },
    }
  }

  #evict(pod: Pod, force: boolean): boolean {
    if (this.evictions.get(pod.metadata.uid)?.state === 'requested') return false
    if (!force && this.refusingPods.has(pod.metadata.name)) {
      this.evictions.set(pod.metadata.uid, {
        state: 'blocked',
        message: 'PDB shop/cart: 0 allowed',
        sinceMs: this.nowMs,
        retryAtMs: this.nowMs + 5_000,
      })
      return true
    }
    this.evictions.set(pod.metadata.uid, { state: 'requested' })
    this.evictedPods.push(pod.metadata.name)
    this.pods = this.pods.filter(({ metadata }) => metadata.uid !== pod.metadata.uid)
    return true
  }

  #prepare(key: string, { references, ...image }: PackageImage): boolean {
    const content = this.images.get(`${image.image}:${image.version}`) ?? simplePackage()
    if (typeof content === 'string') {
      const retryAtMs = this.nowMs + 30_000
      this.preparations.set(key, { state: 'failed', reason: 'ImagePull', message: content, retryAtMs })
      return true
    }
    const ready: Preparation = {
      state: 'ready',
      digest: `sha256:${image.image}:${image.version}`,
      config: content,
      contentHashes: new Map(),
    }
    const isReferenceMissing = (references?.env ?? []).some(({ name }) => this.missingReferences.has(name))
    const failed: Preparation = {
      state: 'failed',
      reason: 'ReferenceMissing',
      message: 'it is not there',
      retryAtMs: this.nowMs + 30_000,
    }
    this.preparations.set(key, isReferenceMissing ? failed : ready)
    this.preparations.set(preparationKey({ ...image, digest: ready.digest }), ready)
    return true
  }

  #replaceSlot(from: OwnSlot, to: OwnSlot): boolean {
    const at = this.slots.findIndex(({ lease }) => lease === from.lease)
    if (at >= 0) this.slots[at] = to
    return true
  }

  #publish({ patch }: Extract<Action, { do: 'publish' }>): boolean {
    if (this.arePatchesDelayed) return false
    this.patches++
    const hasConditions = patch.conditions.length > 0 || patch.removedConditions.length > 0
    if (hasConditions && (patch.unschedulable !== undefined || patch.taints))
      throw new Error('no request takes spec and conditions')
    const merged = (
      before: Readonly<Record<string, string>> = {},
      change: Readonly<Record<string, string | null>>,
    ): Record<string, string> =>
      Object.fromEntries(
        Object.entries({ ...before, ...change }).filter((entry): entry is [string, string] => entry[1] !== null),
      )
    const types = new Set([...patch.removedConditions, ...patch.conditions.map(({ type }) => type)])
    const conditions: NodeCondition[] = [
      ...(this.node.status?.conditions ?? []).filter(({ type }) => !types.has(type)),
      ...patch.conditions,
    ]
    const { metadata } = this.node
    this.node = {
      ...this.node,
      metadata: {
        ...metadata,
        annotations: merged(metadata.annotations, patch.annotations),
        labels: merged(metadata.labels, patch.labels),
      },
      spec: {
        ...this.node.spec,
        ...(patch.unschedulable !== undefined && { unschedulable: patch.unschedulable }),
        ...(patch.taints && { taints: patch.taints }),
      },
      status: { ...this.node.status, conditions },
    }
    return true
  }
}

const step = (path: string, change: Partial<Step> = {}): Step => ({
  name: path,
  path,
  arguments: [],
  returncodes: [0],
  onHost: true,
  env: {},
  idempotence: 'step',
  upgradeStep: false,
  ...change,
})

/** A package with one step and one check in every mode, or what is given. */
export function simplePackage(modes?: Partial<Record<Mode, readonly Step[]>>): PackageConfig {
  const every = (['apply', 'config', 'upgrade', 'uninstall', 'post-interrupt'] as const).flatMap((stage) => [
    [stage, [step('run.sh')]] as const,
    [`${stage}-check`, [step('run_check.sh')]] as const,
  ])
  return {
    packageName: 'pkg',
    packageVersion: '1.0.0',
    expectedConfigFiles: [],
    modes: modes ?? Object.fromEntries(every),
  }
}

export const guardedStep = (path: string): Step => step(path, { idempotence: 'agent' })
export const plainStep = step
