import { type InterruptRun, type Journal, emptyJournal } from '../../src/schemas/journal.ts'
import type { StatusReadResult } from '../../src/schemas/package-status.ts'
import type { KubernetesNode, NodeCondition, NodePatch } from '../../src/schemas/kubernetes.ts'
import type { SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { simplePackage } from '../support/node-simulator.ts'
import {
  type Action,
  type Plan,
  type StartStep,
  type TimedReason,
  preparationKey,
} from '../../src/stages/model/plan.ts'
import { groupPods } from '../../src/stages/drain/pods.ts'
import {
  type AttemptObservation,
  type Eviction,
  type InterruptObservation,
  type OwnSlot,
  type Preparation,
  type SkyhookView,
  type Snapshot,
  type OnTestFinished,
  known,
  unknown,
} from '../../src/stages/model/snapshot.ts'
import type { Pod, PodWatch } from '../../src/stages/model/pods.ts'

/**
 * A node on which anything may happen between any two effects. Unlike the model beside the stage machine it takes its
 * time (steps, interrupts and evictions are under way until told to end), separates what a host, a cluster and an
 * agent's memory lose when one of them dies, and tells whoever watches of every effect before it happens.
 * /
 */
export type Decide = (snapshot: Snapshot, lastReasons: ReadonlyMap<string, TimedReason>) => Plan

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

export type Unit = { readonly action?: StartStep | undefined; readonly state: AttemptObservation }
type Lease = Omit<OwnSlot, 'confirmed' | 'renewedAtMs'>

/** What an agent knows only as long as it lives. */
const newMemory = () => ({
  reasons: new Map() as ReadonlyMap<string, TimedReason>,
  preparations: new Map<string, Preparation>(),
  confirmed: new Set<string>(),
  renewed: new Map<string, number>(),
  slotDenials: new Map<string, { message: string; nextRequestAtMs: number; sinceMs: number }>(),
  podWatch: 'no' as PodWatch,
  evictions: new Map<string, Eviction>(),
  interrupts: new Map<string, InterruptObservation>(),
  requestedStatuses: new Map<string, StatusReadResult>(),
  cleanUps: new Map<string, OnTestFinished>(),
  hasReadStatuses: false,
  singleNode: undefined as boolean | undefined,
})

export type Turn = {
  /** So many actions are carried out, then the agent (or the host) dies; absent = all of them. */
  readonly crashAfterActions?: number
  /** Actions run side by side in the agent: any order may happen. */
  readonly reversed?: boolean
  /** Somebody else wrote the Node in between. */
  readonly conflict?: boolean
}

export class FaultyNode {
  nowMs = 1_000_000
  boot = 1
  journal: Journal = emptyJournal('node-uid')
  node: KubernetesNode
  readonly views = new Map<string, SkyhookView>()
  readonly units = new Map<string, Unit>()
  /** Interrupts that the host was requested for and that are not over. */
  readonly interrupting = new Map<string, { readonly run: InterruptRun; readonly skyhook: string }>()
  readonly requested = new Set<string>()
  leases: Lease[] = []
  pods: Pod[] = []
  readonly refusingPods = new Set<string>()
  areSlotsGranted = true
  readonly failingPackages = new Set<string>()
  /** Packages that find an interrupt required when their config ends. */
  readonly requiringPackages = new Set<string>()
  /** What packages wrote about themselves, by `<skyhook>/<package>`; on the host's disk. */
  readonly statusFiles = new Map<string, StatusReadResult>()
  readonly executedSteps: string[] = []
  memory = newMemory()
  lastPlan: Plan | undefined
  #generations = new Map<string, number>()
  #uids = new Map<string, number>()
  readonly #decide: Decide
  readonly #observer: NodeObserver

  constructor(decide: Decide, observer: NodeObserver) {
    this.#decide = decide
    this.#observer = observer
    this.node = {
      metadata: { name: 'n', uid: 'node-uid', resourceVersion: '1', labels: { pool: 'x' }, annotations: {} },
      spec: {},
      status: {},
    }
    this.#reportReady()
  }

  get bootId(): string {
    return `boot-${this.boot}`
  }

  apply(name: string, spec: SkyhookSpec, annotations: Readonly<Record<string, string>> = {}): void {
    const generation = (this.#generations.get(name) ?? 0) + 1
    this.#generations.set(name, generation)
    const uid = `${name}-${this.#uids.get(name) ?? 1}`
    this.views.set(name, {
      metadata: { name, uid, resourceVersion: String(generation), generation, annotations },
      spec,
      stale: false,
    })
  }

  remove(name: string): void {
    this.views.delete(name)
    this.#generations.delete(name)
    this.#uids.set(name, (this.#uids.get(name) ?? 1) + 1)
  }

  snapshot(): Snapshot {
    const { memory } = this
    return {
      nowMs: this.nowMs,
      bootId: this.bootId,
      node: this.node,
      skyhooks: known([...this.views.values()]),
      journal: this.journal,
      attempts: new Map([...this.units].map(([id, { state }]) => [id, state])),
      preparations: new Map(memory.preparations),
      slots: known(this.leases.map((lease) => this.#slot(lease))),
      slotDenials: new Map(memory.slotDenials),
      pods:
        memory.podWatch === 'no' ? unknown('not followed') : known({ pods: [...this.pods], since: memory.podWatch }),
      singleNode: memory.singleNode,
      evictions: new Map(memory.evictions),
      interrupts: new Map(memory.interrupts),
      hostFolders: new Set(),
      statuses: memory.hasReadStatuses ? known(new Map(this.statusFiles)) : unknown('not looked yet'),
      requestedStatuses: new Map(memory.requestedStatuses),
      cleanUps: new Map(memory.cleanUps),
      host: { state: 'usable' },
      settings: {
        runtimeRequiredTaint: { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' },
        skipNamespaces: ['kube-system'],
        reapplyOnReboot: false,
      },
    }
  }

  #slot = (lease: Lease): OwnSlot => ({
    ...lease,
    confirmed: this.memory.confirmed.has(lease.lease),
    renewedAtMs: this.memory.renewed.get(lease.lease) ?? 0,
  })

  /** One decision, its journal made durable, then its actions. True when anything changed. */
  turn({ crashAfterActions, reversed = false, conflict = false }: Turn = {}): boolean {
    this.nowMs++
    const snapshot = this.snapshot()
    const plan = this.#decide(snapshot, this.memory.reasons)
    this.#observer.decided?.(snapshot, plan)
    this.lastPlan = plan
    const changed = JSON.stringify(plan.journal) !== JSON.stringify(this.journal)
    this.journal = plan.journal
    this.memory.reasons = plan.reasons
    const isWatchChanged = this.memory.podWatch !== plan.watchPods
    this.memory.podWatch = plan.watchPods
    if (plan.watchPods === 'no') this.memory.evictions.clear()
    for (const found of [this.memory.preparations, this.memory.requestedStatuses, this.memory.cleanUps])
      for (const key of found.keys()) if (!plan.needed.has(key)) found.delete(key)
    let acted = isWatchChanged
    const actions = reversed ? plan.actions.toReversed() : plan.actions
    for (const action of actions.slice(0, crashAfterActions)) {
      if (conflict && action.do === 'publish') continue
      acted = this.#do(action, snapshot) || acted
    }
    this.memory.hasReadStatuses = true
    return changed || acted
  }

  /** What the host finds between the stages of a package that wrote a status before. */
  requestRun(skyhook: string, name: string): void {
    const file = this.statusFiles.get(`${skyhook}/${name}`)
    if (file?.state !== 'read') return
    const status = { ...file.status, bootId: this.bootId, requests: { ...file.status.requests, run: true } }
    this.statusFiles.set(`${skyhook}/${name}`, { state: 'read', status, writtenAtMs: this.nowMs })
  }

  /** The agent is killed and starts anew: what it knew is gone, host and cluster are as they were. */
  restartAgent(): void {
    this.memory = newMemory()
  }

  /** Whatever ran is gone without a result; with `loses` also results that were not durable yet. */
  powerCut(losesWrites = false): void {
    this.boot++
    for (const [skyhook, { interrupt }] of Object.entries(this.journal.skyhooks)) // a boot is as good as any interrupt that was meant
      if (interrupt && (interrupt.interrupt.type === 'reboot' || this.requested.has(interrupt.id)))
        this.#observer.interruptEnds?.(interrupt, skyhook)
    for (const [id, { state }] of this.units) if (state.state === 'running' || losesWrites) this.units.delete(id)
    this.interrupting.clear()
    this.#observer.booted?.()
    this.restartAgent()
    this.#reportReady()
  }

  /** Everything under way ends: steps with exit code 0, or 1 where they are to fail. */
  finish(): boolean {
    let hasEnded = false
    for (const [id, { action, state }] of this.units) {
      if (state.state !== 'running' || !action) continue
      hasEnded = true
      const code = this.failingPackages.has(action.record.name) ? 1 : 0
      this.units.set(id, { action, state: { state: 'ended', end: { outcome: 'exited', code } } })
      if (action.attempt.mode === 'config') this.#writeStatus(action)
      this.#observer.stepEnds?.(action, code === 0)
    }
    const terminating = this.pods.filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
    if (terminating.length > 0) hasEnded = true
    this.pods = this.pods.filter((pod) => !terminating.includes(pod))
    for (const [id, { run, skyhook }] of this.interrupting) {
      hasEnded = true
      this.interrupting.delete(id)
      this.#observer.interruptEnds?.(run, skyhook)
      if (run.interrupt.type === 'reboot') {
        this.powerCut()
        break
      }
      if (this.memory.interrupts.has(id)) this.memory.interrupts.set(id, { state: 'done' })
    }
    return hasEnded
  }

  edit(change: (annotations: Record<string, string>) => void): void {
    const annotations = { ...this.node.metadata.annotations }
    change(annotations)
    this.node = { ...this.node, metadata: { ...this.node.metadata, annotations } }
  }

  label(key: string, value: string | undefined): void {
    const { [key]: _, ...labels } = this.node.metadata.labels ?? {}
    this.node = {
      ...this.node,
      metadata: { ...this.node.metadata, labels: value === undefined ? labels : { ...labels, [key]: value } },
    }
  }

  setUnschedulable(unschedulable: boolean): void {
    this.node = { ...this.node, spec: { ...this.node.spec, unschedulable } }
  }

  annotation(key: string): string | undefined {
    return this.node.metadata.annotations?.[`skyhook.nvidia.com/${key}`]
  }

  /** Steps that run on the host now. */
  running(): StartStep[] {
    return [...this.units.values()].flatMap(({ action, state }) =>
      action && state.state === 'running' ? [action] : [],
    )
  }

  #writeStatus({ view, record: { name } }: StartStep): void {
    const requests = { run: false, interrupt: this.requiringPackages.has(name) }
    const status = { bootId: this.bootId, message: '', requests }
    this.statusFiles.set(`${view.metadata.name}/${name}`, { state: 'read', status, writtenAtMs: this.nowMs })
  }

  #reportReady(): void {
    const others = (this.node.status?.conditions ?? []).filter(({ type }) => type !== 'Ready')
    this.node = {
      ...this.node,
      status: {
        ...this.node.status,
        conditions: [...others, { type: 'Ready', status: 'True' }],
        nodeInfo: { bootID: this.bootId },
      },
    }
  }

  #do(action: Action, snapshot: Snapshot): boolean {
    const { memory } = this
    switch (action.do) {
      case 'prepare': {
        const { image, version } = action.image
        const ready: Preparation = {
          state: 'ready',
          digest: `sha256:${image}:${version}`,
          config: simplePackage(),
          contentHashes: new Map(),
        }
        memory.preparations.set(preparationKey(action.image), ready)
        const { references: _, ...content } = action.image
        memory.preparations.set(preparationKey({ ...content, digest: ready.digest }), ready)
        return true
      }
      case 'acquireSlot':
      case 'createRecoverySlot': {
        const { name, uid } = action.view.metadata
        if (!this.areSlotsGranted && action.do === 'acquireSlot') {
          memory.slotDenials.set(name, {
            message: 'all slots are held',
            nextRequestAtMs: this.nowMs + 10_000,
            sinceMs: this.nowMs,
          })
          return false
        }
        const lease = `${uid}.${action.do === 'acquireSlot' ? 'slot-0' : 'node'}`
        this.leases = [
          ...this.leases.filter((other) => other.lease !== lease),
          { skyhook: name, skyhookUid: uid, lease, phase: action.phase },
        ]
        memory.slotDenials.delete(name)
        memory.renewed.set(lease, this.nowMs)
        if (action.do === 'createRecoverySlot') memory.confirmed.add(lease)
        return true
      }
      case 'confirmSlot':
        memory.confirmed.add(action.slot.lease)
        memory.renewed.set(action.slot.lease, this.nowMs)
        return true
      case 'renewSlot':
        this.leases = this.leases.map((lease) =>
          lease.lease === action.slot.lease ? { ...lease, phase: action.phase } : lease,
        )
        memory.renewed.set(action.slot.lease, this.nowMs)
        return true
      case 'releaseSlot':
        if (!this.leases.some(({ lease }) => lease === action.slot.lease)) return false
        this.#observer.slotReleased?.(action.slot)
        this.leases = this.leases.filter(({ lease }) => lease !== action.slot.lease)
        memory.confirmed.delete(action.slot.lease)
        return true
      case 'startStep': {
        if (this.units.has(action.attempt.id)) return false
        this.#observer.stepStarts?.(action, snapshot)
        this.executedSteps.push(
          `${action.view.metadata.name} ${action.record.name}|${action.record.version} ${action.attempt.mode}`,
        )
        this.units.set(action.attempt.id, { action, state: { state: 'running' } })
        return true
      }
      case 'stopStep': {
        const unit = this.units.get(action.step.id)
        if (unit !== undefined && unit.state.state !== 'running') return false
        this.units.set(action.step.id, {
          ...unit,
          state: { state: 'ended', end: { outcome: 'killed', signal: 'TERM' } },
        })
        return true
      }
      case 'forgetStep':
      case 'recordStep':
        return this.units.delete(action.step.id)
      case 'recordChecks':
      case 'recordHistory':
        return false
      case 'cleanUp':
        if (memory.cleanUps.has(action.requestId)) return false
        memory.cleanUps.set(action.requestId, { state: 'done' })
        return true
      case 'recordInterrupt':
        this.requested.delete(action.run.id)
        return memory.interrupts.delete(action.run.id)
      case 'readStatus': {
        const missing = { state: 'unusable', why: 'there is no such file' } as const
        memory.requestedStatuses.set(
          action.requestId,
          this.statusFiles.get(`${action.skyhook}/${action.package}`) ?? missing,
        )
        return true
      }
      case 'interrupt':
        return this.#interrupt(action.run, action.view)
      case 'countNodes':
        memory.singleNode = true
        return true
      case 'evict':
        return this.#evict(action.pod, action.delete === true)
      case 'publish':
        this.#publish(action.patch)
        return true
    }
  }

  /**
   * As the agent's own: looks at pods and slot once more before the first request, and never asks twice for one reboot.
   */
  #interrupt(run: InterruptRun, view: SkyhookView): boolean {
    const { interrupts } = this.memory
    if (interrupts.has(run.id)) return false
    if (!this.requested.has(run.id)) {
      const groups = groupPods(this.pods, view.spec.podNonInterruptLabels, ['kube-system'])
      const isAlone = view.spec.drain?.singleNode === 'skip' && this.memory.singleNode === true
      const isEmpty = groups.protected.length === 0 && (groups.toDrain.length === 0 || isAlone)
      if (run.abandoned || !isEmpty || !this.leases.some(({ skyhookUid }) => skyhookUid === view.metadata.uid)) {
        interrupts.set(run.id, { state: 'aborted', why: 'not any more' })
        return true
      }
      this.#observer.interruptStarts?.(run, view)
      this.executedSteps.push(`${view.metadata.name} ${run.owners.join(',')} interrupt ${run.interrupt.type}`)
      this.requested.add(run.id)
      if (run.interrupt.type === 'noop') this.#observer.interruptEnds?.(run, view.metadata.name)
      else this.interrupting.set(run.id, { run, skyhook: view.metadata.name })
    }
    if (run.interrupt.type === 'reboot') interrupts.set(run.id, { state: 'unknown', message: 'accepted' })
    else interrupts.set(run.id, this.interrupting.has(run.id) ? { state: 'running' } : { state: 'done' })
    return true
  }

  #evict(pod: Pod, force: boolean): boolean {
    const { uid, name } = pod.metadata
    if (!force && this.refusingPods.has(name)) {
      this.memory.evictions.set(uid, {
        state: 'blocked',
        message: 'PDB',
        sinceMs: this.nowMs,
        retryAtMs: this.nowMs + 5_000,
      })
      return true
    }
    this.memory.evictions.set(uid, { state: 'requested' })
    this.pods = this.pods.map((other) =>
      other.metadata.uid === uid ? { ...other, metadata: { ...other.metadata, deletionTimestamp: 'now' } } : other,
    )
    return true
  }

  #publish(patch: NodePatch): void {
    this.#observer.published?.(patch)
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
  }
}
