import { type InterruptRun, type Journal, emptyJournal } from '../../src/schemas/journal.ts'
import type { StatusReadResult } from '../../src/schemas/package-status.ts'
import type { KubernetesNode, NodeCondition, NodePatch } from '../../src/schemas/kubernetes.ts'
import type { Mode, PackageConfig, Step } from '../../src/schemas/package-config.ts'
import type { SkyhookSpec, SlotPhase } from '../../src/schemas/skyhook.ts'
import type { StepEnd } from '../../src/schemas/step-end.ts'
import { decide } from '../../src/stages/decide.ts'
import {
  type Action,
  type PackageImage,
  type Plan,
  type StageEvent,
  type StartStep,
  type TimedReason,
  failureKey,
  preparationKey,
} from '../../src/stages/model/plan.ts'
import { groupPods } from '../../src/stages/drain/pods.ts'
import type { Pod, PodWatch } from '../../src/stages/model/pods.ts'
import {
  type AttemptObservation,
  type Eviction,
  type Failure,
  type InterruptObservation,
  type CleanUpResult,
  type OwnSlot,
  type Preparation,
  type PreparationDepth,
  type ShutdownObservation,
  type SkyhookView,
  type SlotDenial,
  type Snapshot,
  known,
  unknown,
} from '../../src/stages/model/snapshot.ts'

export type Decide = (snapshot: Snapshot, lastReasons: ReadonlyMap<string, TimedReason>) => Plan

/** Hears of every effect just before it happens. */
export type NodeObserver = {
  decided?(snapshot: Snapshot, plan: Plan): void
  stepStarts?(action: StartStep, snapshot: Snapshot): void
  stepEnds?(action: StartStep, succeeded: boolean): void
  interruptStarts?(run: InterruptRun, view: SkyhookView): void
  interruptEnds?(run: InterruptRun, skyhook: string): void
  slotReleased?(slot: OwnSlot): void
  published?(patch: NodePatch): void
  booted?(): void
}

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
 * One node: holds what a host, a cluster and an agent's memory would hold, and carries out what `decide` asks for. It
 * knows none of the rules, so the code under test decided whatever the packages do on it. The fields are grouped by
 * what
 * loses them: a power cut, nothing, or the end of the agent (`restartAgent`).
 */
export class NodeSimulator {
  nowMs = 1_000_000
  wallOffsetMs = 0

  // The host.
  bootId = 'boot-1'
  journal: Journal = emptyJournal('node-uid')
  /** Steps that were started and not recorded. */
  readonly attempts = new Map<string, AttemptObservation>()
  /** Interrupts that the host accepted and has not finished. */
  readonly interrupting = new Map<string, { readonly run: InterruptRun; readonly skyhook: string }>()
  /** What packages wrote about themselves, by `<skyhook>/<package>`. */
  readonly statusFiles = new Map<string, StatusReadResult>()
  hostFolders: ReadonlySet<string> = new Set()
  host: Snapshot['host'] = { state: 'usable' }

  // The cluster.
  node: KubernetesNode
  readonly views = new Map<string, SkyhookView>()
  /** Leases that this node knows of; what may be done under them only the agent knows. */
  slots: OwnSlot[] = []
  /** By uid: they are gone, and only the answer to the next write will tell. */
  readonly lostLeases = new Set<string>()
  pods: Pod[] = []
  /** A write of the Node was not answered. */
  isNodeInDoubt = false
  /** The first LIST of the pods is not answered yet. */
  arePodsUnknown = false

  // The agent's memory.
  lastPlan: Plan | undefined
  lastReasons: ReadonlyMap<string, TimedReason> = new Map()
  readonly preparations = new Map<string, Preparation>()
  readonly slotDenials = new Map<string, SlotDenial>()
  readonly requestedStatuses = new Map<string, StatusReadResult>()
  readonly cleanUps = new Map<string, CleanUpResult>()
  readonly evictions = new Map<string, Eviction>()
  readonly failures = new Map<string, Failure>()
  readonly interrupts = new Map<string, InterruptObservation>()
  podWatch: PodWatch = 'no'
  singleNode: boolean | undefined
  hasReadStatuses = false
  reapplyOnReboot = false

  // What the test arranges.
  /** Exit code per `<package> <mode>` or per package; absent = 0. */
  readonly exitCodes = new Map<string, number>()
  /** Exit code of a step by what it runs with; asked before `exitCodes`. */
  exitCodeOf: (action: StartStep) => number | undefined = () => undefined
  /** Services that do not restart. */
  readonly failingServices = new Set<string>()
  /** Packages whose steps keep running until `finishHanging`. */
  readonly hangingPackages = new Set<string>()
  /** Why the host can start no step now. */
  startBlocker: string | undefined
  /** Package contents, or why the image cannot be pulled, by `<image>:<version>`. */
  readonly images = new Map<string, PackageConfig | string>()
  /** Of images that the registry has, by `<image>:<version>`: what is in them is no package. */
  readonly brokenLayers = new Set<string>()
  /** Layers are on their way and do not arrive. */
  areLayersSlow = false
  /** Images on the host, by `<image>:<version>`, in the order in which they came. */
  readonly fetchedImages: string[] = []
  /** Variables whose reference does not exist. */
  readonly missingReferences = new Set<string>()
  /** Skyhooks for whose slots other nodes come first. */
  readonly distantSkyhooks = new Set<string>()
  areSlotsGranted = true
  /** Else the budget of the moment takes back what is to be confirmed. */
  areSlotsConfirmed = true
  /** Else another node of the control plane is out of service. */
  isControlPlaneFree = true
  /** The agent reads the status files after each round. */
  readsStatuses = true
  /** What the next interrupts answer, by type; absent = they are carried out. */
  readonly interruptAnswers = new Map<string, InterruptObservation>()
  /** What the host says about a shutdown while a requested reboot is waited for. */
  shutdown: ShutdownObservation['progress'] = 'none'
  /** Names of pods that refuse eviction. */
  readonly refusingPods = new Set<string>()
  /** Why what uninstalls leave behind cannot be removed. */
  cleanUpError: string | undefined
  /** Changes of the Node are on their way and not there yet. */
  arePatchesDelayed = false

  // What happened.
  readonly events: StageEvent[] = []
  /** Every step that ran, in order: `<package> <mode> <path>`. */
  readonly executedSteps: string[] = []
  /** Every interrupt that was carried out, in order. */
  readonly executedInterrupts: string[] = []
  readonly evictedPods: string[] = []
  patches = 0

  readonly #decide: Decide
  readonly #observer: NodeObserver
  readonly #takesTime: boolean
  readonly #started = new Map<string, StartStep>()
  readonly #hanging = new Set<string>()
  readonly #requestedInterrupts = new Set<string>()
  readonly #terminatingPods = new Set<string>()
  readonly #incarnations = new Map<string, number>()
  #leases = 0

  constructor(labels: Record<string, string> = {}, options: Options = {}) {
    this.#decide = options.decide ?? decide
    this.#observer = options.observer ?? {}
    this.#takesTime = options.takesTime ?? false
    this.node = {
      metadata: { name: 'node-1', uid: 'node-uid', resourceVersion: '1', labels, annotations: {} },
      spec: {},
      status: { conditions: [] },
    }
    this.reportReady()
  }

  apply(name: string, spec: SkyhookSpec, annotations: Readonly<Record<string, string>> = {}): void {
    const { generation: last = 0, deletionTimestamp } = this.views.get(name)?.metadata ?? {}
    const generation = last + 1
    const uid = `${name}-uid${this.#incarnations.get(name) ?? ''}`
    const deletion = deletionTimestamp === undefined ? {} : { deletionTimestamp }
    this.views.set(name, {
      metadata: { name, uid, resourceVersion: String(generation), generation, annotations, ...deletion },
      spec,
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

  snapshot(): Snapshot {
    return {
      nowMs: this.nowMs,
      wallOffsetMs: this.wallOffsetMs,
      bootId: this.bootId,
      node: this.node,
      skyhooks: known([...this.views.values()]),
      journal: this.journal,
      attempts: new Map(this.attempts),
      preparations: new Map(this.preparations),
      slots: known([...this.slots]),
      slotDenials: new Map(this.slotDenials),
      distantSkyhooks: new Set(this.distantSkyhooks),
      host: this.host,
      isNodeInDoubt: this.isNodeInDoubt,
      pods:
        this.podWatch === 'no' || this.arePodsUnknown
          ? unknown('not followed')
          : known({ pods: [...this.pods], since: this.podWatch }),
      singleNode: this.singleNode,
      evictions: new Map(this.evictions),
      hostFolders: this.hostFolders,
      statuses: this.hasReadStatuses ? known(new Map(this.statusFiles)) : unknown('not looked yet'),
      requestedStatuses: new Map(this.requestedStatuses),
      cleanUps: new Map(this.cleanUps),
      failures: new Map(this.failures),
      interrupts: new Map(this.interrupts),
      settings: {
        runtimeRequiredTaint: { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' },
        skipNamespaces: ['kube-system'],
        reapplyOnReboot: this.reapplyOnReboot,
      },
    }
  }

  /**
   * One decision, its journal made durable, then the actions of it that `select` lets through. True when anything
   * changed.
   */
  step(select = (actions: readonly Action[]): readonly Action[] => actions): boolean {
    const snapshot = this.snapshot()
    const plan = this.#decide(snapshot, this.lastReasons)
    this.#observer.decided?.(snapshot, plan)
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

  /** Steps that run on the host now. */
  running(): StartStep[] {
    return [...this.#started].flatMap(([id, action]) => (this.attempts.get(id)?.state === 'running' ? [action] : []))
  }

  /** Everything under way ends: steps with their exit code, evicted pods, interrupts. True when anything did. */
  finish(): boolean {
    let hasEnded = this.#terminatingPods.size > 0
    for (const [id, action] of this.#started) {
      if (this.attempts.get(id)?.state !== 'running' || this.#hanging.has(id)) continue
      hasEnded = true
      const { name } = action.record
      const { mode } = action.attempt
      const code = this.exitCodeOf(action) ?? this.exitCodes.get(`${name} ${mode}`) ?? this.exitCodes.get(name) ?? 0
      this.attempts.set(id, { state: 'ended', end: { outcome: 'exited', code } })
      this.stepEnded(action, code === 0)
    }
    this.pods = this.pods.filter(({ metadata }) => !this.#terminatingPods.has(metadata.uid))
    this.#terminatingPods.clear()
    for (const [id, { run, skyhook }] of this.interrupting) {
      hasEnded = true
      this.interrupting.delete(id)
      this.#observer.interruptEnds?.(run, skyhook)
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

  /** The agent is killed and starts again: its memory is gone, host and cluster are as they were. */
  restartAgent(): void {
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
    this.singleNode = undefined
    this.hasReadStatuses = false
  }

  /** Running steps vanish without a result; with `losesWrites` also results that were not durable yet. */
  powerCut(losesWrites = false): void {
    this.bootId = `boot-${Number(this.bootId.split('-')[1]) + 1}`
    for (const [skyhook, { interrupt }] of Object.entries(this.journal.skyhooks)) // a boot does what any of them would
      if (interrupt && (interrupt.interrupt.type === 'reboot' || this.#requestedInterrupts.has(interrupt.id)))
        this.#observer.interruptEnds?.(interrupt, skyhook)
    for (const [id, { state }] of this.attempts) if (state !== 'ended' || losesWrites) this.attempts.delete(id)
    this.interrupting.clear()
    this.#observer.booted?.()
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

  protected stepEnded(action: StartStep, succeeded: boolean): void {
    this.#observer.stepEnds?.(action, succeeded)
  }

  #forget({ watchPods, needed }: Plan): void {
    if (watchPods === 'no') this.evictions.clear()
    for (const found of [this.preparations, this.requestedStatuses, this.cleanUps])
      for (const key of found.keys()) if (!needed.has(key)) found.delete(key)
  }

  #carryOut(action: Action, snapshot: Snapshot): boolean {
    switch (action.do) {
      case 'prepare':
        return this.#prepare(preparationKey(action.image), action.image, action.depth)
      case 'acquireSlot':
      case 'acquireControlPlaneSlot':
      case 'createRecoverySlot':
        return this.#acquireSlot(action)
      case 'confirmSlot':
        return this.#confirmSlot(action)
      case 'renewSlot':
        if (this.lostLeases.has(action.slot.uid)) return this.#loseSlot(action.slot)
        return this.#updateSlot(action.slot, { phase: action.phase, ownership: 'owned' })
      case 'releaseSlot':
        return this.#releaseSlot(action.slot)
      case 'startStep':
        return this.#startStep(action, snapshot)
      case 'stopStep': {
        const attempt = this.attempts.get(action.step.id)
        if (attempt?.state === 'ended') return false
        const hasStarted = attempt?.state === 'running'
        const killed: StepEnd = { outcome: 'killed', signal: 'TERM' }
        const unstarted: StepEnd = { outcome: 'failed-to-start', detail: 'stopped before it started' }
        this.attempts.set(action.step.id, { state: 'ended', end: hasStarted ? killed : unstarted })
        return true
      }
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
        this.#requestedInterrupts.delete(action.run.id)
        return this.interrupts.delete(action.run.id)
      case 'readStatus': {
        const missing = { state: 'unusable', why: 'there is no such file' } as const
        const file = this.statusFiles.get(`${action.skyhook}/${action.package}`) ?? missing
        this.requestedStatuses.set(action.requestId, file)
        return true
      }
      case 'interrupt':
        return this.#interrupt(action.run, action.view)
      case 'countNodes':
        this.singleNode = true
        return true
      case 'evict':
        return this.#evict(action.pod, action.delete === true)
      case 'publish':
        return this.#publish(action.patch)
    }
  }

  #prepare(key: string, { references, ...image }: PackageImage, depth: PreparationDepth): boolean {
    const content = this.images.get(`${image.image}:${image.version}`) ?? simplePackage()
    const retryAtMs = this.nowMs + 30_000
    if (typeof content === 'string') {
      this.preparations.set(key, { state: 'failed', depth, reason: 'ImagePull', message: content, retryAtMs })
      return true
    }
    const isReferenceMissing = (references?.env ?? []).some(({ name }) => this.missingReferences.has(name))
    const missing = {
      state: 'failed',
      depth,
      reason: 'ReferenceMissing',
      message: 'it is not there',
      retryAtMs,
    } as const
    const tag = `${image.image}:${image.version}`
    const digest = `sha256:${tag}`
    if (depth === 'manifest' && !this.fetchedImages.includes(tag)) {
      this.preparations.set(key, isReferenceMissing ? missing : { state: 'checked' })
      return true
    }
    if (this.areLayersSlow && !this.fetchedImages.includes(tag)) return false
    if (this.brokenLayers.has(tag)) {
      this.preparations.set(key, { state: 'failed', depth, reason: 'InvalidPackage', message: 'is broken', retryAtMs })
      return true
    }
    if (!this.fetchedImages.includes(tag)) this.fetchedImages.push(tag)
    const ready: Preparation = { state: 'ready', digest, config: content, contentHashes: new Map() }
    this.preparations.set(key, isReferenceMissing ? missing : ready)
    this.preparations.set(preparationKey({ ...image, digest }), ready)
    return true
  }

  #acquireSlot(
    action: Extract<Action, { do: 'acquireSlot' | 'acquireControlPlaneSlot' | 'createRecoverySlot' }>,
  ): boolean {
    const { do: kind, view, phase } = action
    const { name: skyhook } = view.metadata
    const isRecovery = kind === 'createRecoverySlot'
    const needsControlPlane =
      kind === 'acquireControlPlaneSlot' || (kind === 'acquireSlot' && action.withControlPlane && !this.#isScopeHeld())
    const deny = (message: string, waitsFor?: 'control-plane'): false => {
      const timesMs = { nextRequestAtMs: this.nowMs + 10_000, sinceMs: this.nowMs }
      const denial = { message, ...timesMs, ...(waitsFor && { waitsFor }) }
      this.slotDenials.set(skyhook, denial)
      return false
    }
    if (needsControlPlane && !this.isControlPlaneFree) return deny('another control-plane node', 'control-plane')
    if (kind === 'acquireSlot' && !this.areSlotsGranted) return deny('the budget of 1 node is used up')
    this.slotDenials.delete(skyhook)
    if (needsControlPlane || (isRecovery && action.scope === 'control-plane'))
      this.#grant(view, phase, 'control-plane', isRecovery)
    if (kind === 'acquireSlot' || (isRecovery && action.scope === 'skyhook'))
      this.#grant(view, phase, 'skyhook', isRecovery, kind === 'acquireSlot' && action.isJoining)
    return true
  }

  /** A slot that no request of this agent asked for: created late, or brought back by a restored etcd. */
  slotAppears(name: string, scope: OwnSlot['scope']): void {
    const view = this.views.get(name)
    if (!view) return
    this.#leases++
    const own = { skyhook: name, skyhookUid: view.metadata.uid }
    const slot: OwnSlot = {
      scope,
      ...(scope === 'skyhook' ? own : { skyhook: '', skyhookUid: undefined }),
      lease: `${scope}-${this.#leases}`,
      uid: `lease-${this.#leases}`,
      phase: 'working',
      ownership: 'seen',
      isFormer: false,
      renewedAtMs: 0,
    }
    this.slots = [...this.slots, slot]
  }

  readonly #isScopeHeld = (): boolean => this.slots.some(({ scope }) => scope === 'control-plane')

  #grant(
    { metadata }: SkyhookView,
    phase: SlotPhase,
    scope: OwnSlot['scope'],
    isRecovery: boolean,
    isBootstrap = false,
  ): void {
    const isOfSkyhook = scope === 'skyhook'
    const end = isRecovery ? 'node' : isBootstrap ? 'bootstrap-0' : 'slot-0'
    const lease = `${isOfSkyhook ? metadata.uid : scope}.${end}`
    const uid = `lease-${++this.#leases}`
    const slot: OwnSlot = {
      scope,
      skyhook: isOfSkyhook ? metadata.name : '',
      skyhookUid: isOfSkyhook ? metadata.uid : undefined,
      lease,
      uid,
      phase,
      ownership: 'owned',
      ...(isBootstrap && { isBootstrap }),
      isFormer: false,
      renewedAtMs: this.nowMs,
    }
    this.slots = [...this.slots.filter((other) => other.lease !== lease), slot]
  }

  /** The budget of this moment would not grant it: it is given back. */
  #confirmSlot({ slot, view }: Extract<Action, { do: 'confirmSlot' }>): boolean {
    if (this.lostLeases.has(slot.uid)) return this.#loseSlot(slot)
    if (this.areSlotsConfirmed) return this.#updateSlot(slot, { ownership: 'confirmed' })
    const nextRequestAtMs = this.nowMs + 1_000
    this.slotDenials.set(view.metadata.name, { message: 'the budget fell', nextRequestAtMs, sinceMs: this.nowMs })
    return this.#releaseSlot(slot)
  }

  #releaseSlot(slot: OwnSlot): boolean {
    if (!this.slots.some(({ uid }) => uid === slot.uid)) return false
    if (!this.lostLeases.has(slot.uid)) this.#observer.slotReleased?.(slot)
    return this.#loseSlot(slot)
  }

  #loseSlot({ uid }: OwnSlot): boolean {
    this.slots = this.slots.filter((slot) => slot.uid !== uid)
    return true
  }

  #updateSlot({ uid }: OwnSlot, change: Partial<OwnSlot>): boolean {
    this.slots = this.slots.map((slot) => (slot.uid === uid ? { ...slot, ...change, renewedAtMs: this.nowMs } : slot))
    return true
  }

  #startStep(action: StartStep, snapshot: Snapshot): boolean {
    const { id, mode, path } = action.attempt
    const attempt = this.attempts.get(id)
    if (attempt && attempt.state !== 'absent') return false
    const key = failureKey(action)
    if (this.startBlocker !== undefined) {
      if (this.failures.has(key)) return false
      const failure = { reason: 'HostUnusable', message: this.startBlocker, sinceMs: this.nowMs } as const
      this.failures.set(key, { ...failure, action: action.do })
      return true
    }
    this.failures.delete(key)
    this.#observer.stepStarts?.(action, snapshot)
    this.executedSteps.push(`${action.record.name} ${mode} ${path}`)
    this.#started.set(id, action)
    if (this.hangingPackages.has(action.record.name)) this.#hanging.add(id)
    else this.#hanging.delete(id)
    this.attempts.set(id, { state: 'running' })
    return true
  }

  /** As the agent does: checks pods and slot once more before the first request, and requests one reboot once. */
  #interrupt(run: InterruptRun, view: SkyhookView): boolean {
    const { id, interrupt } = run
    const latest = this.interrupts.get(id)
    if (latest?.state === 'unknown') this.#observeShutdown(id, latest)
    if (latest) return latest.state === 'unknown'
    if (!this.#requestedInterrupts.has(id)) {
      if (run.abandoned || !this.#mayInterrupt(view)) {
        this.interrupts.set(id, { state: 'aborted', why: 'no longer allowed' })
        return true
      }
      const answer = this.#failedRestart(run, view.metadata.name) ?? this.interruptAnswers.get(interrupt.type)
      if (answer === undefined || answer.state === 'done' || answer.state === 'unknown')
        this.executedInterrupts.push([interrupt.type, ...(interrupt.services ?? [])].join(' '))
      if (answer) {
        this.interrupts.set(id, answer)
        return true
      }
      this.#observer.interruptStarts?.(run, view)
      this.#requestedInterrupts.add(id)
      if (interrupt.type === 'noop') this.#observer.interruptEnds?.(run, view.metadata.name)
      else this.interrupting.set(id, { run, skyhook: view.metadata.name })
    }
    if (interrupt.type === 'reboot') this.interrupts.set(id, { state: 'unknown', message: 'accepted' })
    else this.interrupts.set(id, { state: this.interrupting.has(id) ? 'running' : 'done' })
    return true
  }

  #observeShutdown(id: string, latest: Extract<InterruptObservation, { state: 'unknown' }>): void {
    const progress = this.interrupting.has(id) ? 'under-way' : this.shutdown
    const sinceMs = latest.shutdown?.progress === progress ? latest.shutdown.sinceMs : this.nowMs
    this.interrupts.set(id, { ...latest, shutdown: { progress, sinceMs, atMs: this.nowMs } })
  }

  /** The other services restart all the same. */
  #failedRestart(run: InterruptRun, skyhook: string): InterruptObservation | undefined {
    const services = (run.interrupt.services ?? []).filter((service) => this.failingServices.has(service))
    if (services.length === 0) return undefined
    const owners = run.owners.filter((key) => {
      const pending = this.journal.skyhooks[skyhook]?.packages[key]?.pendingInterrupt?.interrupt
      return pending?.type === 'service' && !(pending.services ?? []).some((service) => services.includes(service))
    })
    this.#observer.interruptEnds?.({ ...run, owners }, skyhook)
    return { state: 'failed', message: `${services.join()} failed`, services }
  }

  #mayInterrupt({ metadata, spec }: SkyhookView): boolean {
    const groups = groupPods(this.pods, spec.podNonInterruptLabels, ['kube-system'])
    const isAlone = spec.drain?.singleNode === 'skip' && this.singleNode === true
    const isDrained = groups.protected.length === 0 && (groups.toDrain.length === 0 || isAlone)
    const isControlPlane = 'node-role.kubernetes.io/control-plane' in (this.node.metadata.labels ?? {})
    this.slots = this.slots.filter(({ uid }) => !this.lostLeases.has(uid)) // the report is a write
    const hasSlot = this.slots.some(({ skyhookUid }) => skyhookUid === metadata.uid)
    return isDrained && hasSlot && (!isControlPlane || this.#isScopeHeld())
  }

  #evict({ metadata: { uid, name } }: Pod, force: boolean): boolean {
    if (!force && this.refusingPods.has(name)) {
      const retryAtMs = this.nowMs + 5_000
      const message = 'PDB shop/cart: 0 allowed'
      this.evictions.set(uid, { state: 'blocked', message, sinceMs: this.nowMs, retryAtMs })
      return true
    }
    this.evictions.set(uid, { state: 'requested' })
    this.evictedPods.push(name)
    this.#terminatingPods.add(uid)
    this.pods = this.pods.map((pod) =>
      pod.metadata.uid === uid ? { ...pod, metadata: { ...pod.metadata, deletionTimestamp: 'now' } } : pod,
    )
    return true
  }

  #publish(patch: NodePatch): boolean {
    if (this.arePatchesDelayed) return false
    this.#observer.published?.(patch)
    this.patches++
    const hasConditions = patch.conditions.length > 0 || patch.removedConditions.length > 0
    if (hasConditions && (patch.unschedulable !== undefined || patch.taints))
      throw new Error('no request takes spec and conditions')
    const merged = (before: Readonly<Record<string, string>> = {}, change: Readonly<Record<string, string | null>>) =>
      Object.fromEntries(
        Object.entries({ ...before, ...change }).filter((entry): entry is [string, string] => entry[1] !== null),
      )
    const types = new Set([...patch.removedConditions, ...patch.conditions.map(({ type }) => type)])
    const kept: NodeCondition[] = (this.node.status?.conditions ?? []).filter(({ type }) => !types.has(type))
    const { metadata, spec, status } = this.node
    this.node = {
      metadata: {
        ...metadata,
        annotations: merged(metadata.annotations, patch.annotations),
        labels: merged(metadata.labels, patch.labels),
      },
      spec: {
        ...spec,
        ...(patch.unschedulable !== undefined && { unschedulable: patch.unschedulable }),
        ...(patch.taints && { taints: patch.taints }),
      },
      status: { ...status, conditions: [...kept, ...patch.conditions] },
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

/** A package with the given steps, by default one step and one check in every mode. */
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
