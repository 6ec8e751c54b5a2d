import type { PackageConfig } from '../../src/schemas/package-config.ts'
import type { SkyhookSpec } from '../../src/schemas/skyhook.ts'
import type { Pod } from '../../src/stages/model/pods.ts'
import { parseState } from '../../src/schemas/published.ts'
import type { Decide } from '../kit/node-simulator/node-simulator.ts'
import { guardedStep, plainStep, simplePackage } from '../kit/node-simulator/package-content.ts'
import { Wakes } from '../kit/node-simulator/wakes.ts'
import { WatchedNode } from './invariants/index.ts'
import type { Invariant } from './invariants/invariant.ts'
import { type ScenarioEvent, versions } from './scenario.ts'

/** Where the agent guards steps, the first one of the stage is such a step. */
function packageWithGuardedSteps(): PackageConfig {
  const { modes, ...config } = simplePackage()
  const guarded = [guardedStep('once.sh'), plainStep('run.sh')]
  return { ...config, modes: { ...modes, apply: guarded, 'post-interrupt': guarded } }
}

const isOfCordon = (key: string): boolean => key.startsWith('skyhook.nvidia.com/cordon')

/** A node under all invariants, with what people last asked of it. */
export class Scenario {
  readonly node: WatchedNode
  #spec: SkyhookSpec
  #otherSpec: SkyhookSpec | undefined
  #annotations: Record<string, string> = {}
  #shouldBeUnschedulable = false
  #pods = 0
  #registrations = 0

  /** `judges`: instead of all invariants and promises. */
  constructor(decide: Decide, spec: SkyhookSpec, judges?: readonly Invariant[]) {
    this.node = judges ? new WatchedNode(decide, judges, []) : new WatchedNode(decide)
    for (const version of versions) this.node.images.set(`r/other:${version}`, packageWithGuardedSteps())
    this.#spec = spec
    this.node.requiringPackages.add('c')
    this.node.apply('s', spec)
  }

  play(event: ScenarioEvent): void {
    this.#make(event)
    this.node.world.look()
  }

  #make(event: ScenarioEvent): void {
    const { node } = this
    switch (event.kind) {
      case 'rounds':
        for (let round = 0; round < event.times; round++) node.reconcile(event)
        return
      case 'crash':
        node.reconcile({ crashAfterActions: event.afterActions })
        if (event.of === 'agent') node.restartAgent()
        else node.reboot(event.losesWrites)
        return
      case 'finish':
        node.finish()
        return
      case 'steps fail':
        node.exitCodes.set(event.of, 1)
        node.finish()
        node.exitCodes.clear()
        return
      case 'interrupt required':
        if (event.required) node.requiringPackages.add(event.of)
        else node.requiringPackages.delete(event.of)
        return
      case 'run requested':
        if (this.#spec.packages?.[event.of]?.rerunOnRequest) node.evidence.requestedRuns.add(`s/${event.of}`)
        node.requestRun('s', event.of)
        return
      case 'time passes':
        node.nowMs += event.seconds * 1_000
        return
      case 'time goes by':
        this.liveUntil(node.nowMs + 240_000)
        return
      case 'spec changed':
        this.#spec = event.spec
        this.#publishSpec()
        return
      case 'spec unread':
        this.#outdate()
        if (event.isRelabelled) node.label('pool', 'y')
        return
      case 'Skyhooks in doubt':
        node.areSkyhooksInDoubt = event.are
        return
      case 'other Skyhook changed':
        this.#otherSpec = event.spec ?? undefined
        if (event.spec) node.apply('t', { ...event.spec, priority: event.priority })
        else node.remove('t')
        return
      case 'annotated':
        this.#annotations = {
          ...this.#annotations,
          [`skyhook.nvidia.com/${event.key}`]: String(event.on),
        }
        this.#publishSpec()
        return
      case 'labelled':
        node.label(event.key, event.value ?? undefined)
        return
      case 'slot lost':
        node.slots = []
        return
      case 'slot deleted':
        for (const { uid } of node.slots) node.lostLeases.add(uid)
        return
      case 'slots in doubt':
        node.slots = node.slots.map((slot) => ({ ...slot, ownership: 'seen', renewedAtMs: 0 }))
        return
      case 'slot appears':
        node.slotAppears('s', event.scope)
        return
      case 'slots confirmed':
        node.areSlotsConfirmed = event.confirmed
        return
      case 'control plane':
        node.isControlPlaneFree = event.free
        return
      case 'slots granted':
        node.areSlotsGranted = event.granted
        return
      case 'turn':
        if (event.isFar) node.distantSkyhooks.add('s')
        else node.distantSkyhooks.delete('s')
        return
      case 'layers':
        this.#setLayers(event.areSlow, event.areBroken)
        return
      case 'pod created':
        this.#addPod(event.name, event.refuses, event.isProtected)
        return
      case 'pods allow eviction':
        node.refusingPods.clear()
        return
      case 'protected pods end':
        node.pods = node.pods.filter(({ metadata }) => metadata.labels?.['workload'] !== 'never')
        return
      case 'administrator sets unschedulable':
        if ((node.node.spec?.unschedulable === true) === event.to) return // a write without a change is invisible
        this.#shouldBeUnschedulable = event.to
        node.setUnschedulable(event.to)
        node.reconcile() // two writes of which nobody saw the first would cancel out
        return
      case 'Node forgets':
        this.#forget(event.what)
        return
      case 'reset':
        if (node.annotation('nodeState_s') === undefined) return
        node.evidence.forgetCompletion('s')
        node.edit((annotations) => delete annotations['skyhook.nvidia.com/nodeState_s'])
        return
      case 'rerun':
        this.#rerun(event.of)
        return
      case 'deletion requested':
        node.requestDeletion('s')
        return
      case 'deleted':
        node.remove('s')
        return
      case 'replaced':
        node.remove('s')
        this.#publishSpec()
        return
    }
  }

  /** Without disturbances, and with every step succeeding, brings the node to completion; throws if it gets stuck. */
  end(): void {
    const { node } = this
    this.calm()
    if (node.views.get('s')?.metadata.deletionTimestamp !== undefined) node.remove('s') // it cannot be taken back
    this.#publishSpec()
    this.liveUntil(node.nowMs + 7_200_000, (next) => {
      if (this.#isOver()) return next > node.nowMs + 30_000
      if (next > node.nowMs + 2_000 && node.lastReasons.size === 0) throw new Error('waits without a reason')
      return false
    })
    this.#assertEndedWell()
  }

  /** Nothing disturbs the node any more. */
  calm(): void {
    const { node } = this
    node.exitCodes.clear()
    node.refusingPods.clear()
    node.areSlotsGranted = true
    node.areSlotsConfirmed = true
    node.isControlPlaneFree = true
    node.areSkyhooksInDoubt = false
    this.#setLayers(false, false)
    node.pods = node.pods.filter(({ metadata }) => metadata.labels?.['workload'] !== 'never')
    node.label('pool', 'x')
    node.label('skyhook.nvidia.com/ignore', undefined)
    this.#annotations = {}
    if (node.views.has('s')) this.#publishSpec()
  }

  #setLayers(areSlow: boolean, areBroken: boolean): void {
    this.node.areLayersSlow = areSlow
    this.node.brokenLayers.clear()
    if (areBroken) this.node.brokenLayers.add('r/pkg:1.1.0')
  }

  /** Lets everything under way end, again and again, until `endMs` or until it is over. */
  liveUntil(endMs: number, isOver: (nextMs: number) => boolean = () => false): void {
    const { node } = this
    const wakes = new Wakes()
    while (node.nowMs < endMs) {
      this.settle()
      if (node.finish()) continue
      const next = node.lastPlan?.requeueAtMs ?? Infinity
      if (isOver(next)) return
      node.nowMs = wakes.next(node.nowMs, Math.min(next, node.nowMs + 60_000))
    }
  }

  /** Reconciles until nothing changes; the clock does not move. */
  settle(): void {
    const { node } = this
    for (let round = 0; round < 60; round++) if (!node.reconcile()) return
    throw new Error(`does not settle: ${node.lastPlan?.actions.map(({ key }) => key).join(' ')}`)
  }

  #isOver(): boolean {
    const isComplete = (name: string): boolean => this.node.annotation(`status_${name}`) === 'complete'
    return isComplete('s') && (!this.#otherSpec || isComplete('t')) && this.node.slots.length === 0
  }

  #assertEndedWell(): void {
    const { node } = this
    const reason = node.lastReasons.get('s')
    const details =
      `status ${node.annotation('status_s')}, reason ${JSON.stringify(reason)}, slots ` +
      `${JSON.stringify(node.slots)}, journal ${JSON.stringify(node.journal.skyhooks['s'])}`
    if (!this.#isOver()) throw new Error(`never complete: ${details}`)
    node.assertComplete('s', this.#spec)
    if (this.#otherSpec) node.assertComplete('t', this.#otherSpec)
    const annotations = Object.keys(node.node.metadata.annotations ?? {})
    const leftover = annotations.filter((key) => /cordon|keepOff|autoscaler|karpenter/.test(key))
    if (leftover.length > 0) throw new Error(`left behind: ${leftover.join()}`)
    if ((node.node.spec?.unschedulable === true) !== this.#shouldBeUnschedulable)
      throw new Error(`unschedulable should be ${this.#shouldBeUnschedulable}`)
    const wanted = Object.entries(this.#spec.packages ?? {}).filter(([, { uninstall }]) => uninstall?.apply !== true)
    const expected = wanted.map(([name, { version }]) => `${name}|${version}`).sort()
    const shown = Object.keys(JSON.parse(node.annotation('nodeState_s') ?? '{}') as object).filter(
      (key) => !this.#isKept(key),
    )
    if (shown.join() !== expected.join()) throw new Error(`entries ${shown.join()} instead of ${expected.join()}`)
    for (const [key, { forgotten }] of node.evidence.host)
      if (
        !forgotten &&
        key.startsWith('s/') &&
        !wanted.some(([name]) => key === `s/${name}`) &&
        !this.#isKept(key.slice(2))
      )
        throw new Error(`${key} was not uninstalled`)
  }

  /** A package that the spec no longer has, or has in another version, may stay: by its policy, or left behind. */
  #isKept(key: string): boolean {
    return Object.entries(this.node.journal.skyhooks['s']?.packages ?? {}).some(
      ([other, { uninstall, version, name, progress }]) =>
        (other === key || name === key) &&
        (uninstall?.enabled === false || progress.state === 'retained') &&
        this.#spec.packages?.[name]?.version !== version,
    )
  }

  #forget(what: 'everything' | 'annotations' | 'cordon marks'): void {
    const { node } = this
    if (what === 'everything') {
      const { name, labels = {} } = node.node.metadata
      const metadata = { name, uid: `node-uid-${++this.#registrations}`, resourceVersion: '1', labels, annotations: {} }
      node.node = { metadata, spec: {}, status: { conditions: [] } }
      node.reportReady()
      node.slots = [] // the garbage collector removes the Leases of the former Node
      this.#shouldBeUnschedulable = false
      return
    }
    // a write of the cordon that the agent has not seen on the Node yet is nobody's for sure
    const isUnread = node.areSkyhooksInDoubt || [...node.views.values()].some(({ stale }) => stale)
    if (isUnread) return
    node.reconcile()
    node.reconcile()
    const lastWrite = node.lastPlan?.actions.find((action) => action.do === 'publish')?.patch.annotations ?? {}
    if (Object.keys(lastWrite).some(isOfCordon)) return
    node.edit((annotations) => {
      for (const key of Object.keys(annotations)) if (what === 'annotations' || isOfCordon(key)) delete annotations[key]
    })
  }

  #outdate(): void {
    const view = this.node.views.get('s')
    if (view) this.node.views.set('s', { ...view, stale: true })
  }

  #publishSpec(): void {
    this.node.apply('s', this.#spec, this.#annotations)
  }

  #addPod(name: string, refuses: boolean, isProtected: boolean): void {
    const { node } = this
    const unique = `${name}${++this.#pods}`
    if (refuses) node.refusingPods.add(unique)
    node.pods = [
      ...node.pods,
      {
        metadata: {
          name: unique,
          namespace: 'shop',
          uid: `uid-${unique}`,
          resourceVersion: '1',
          labels: isProtected ? { workload: 'never' } : {},
        },
        status: { phase: 'Running' },
      } satisfies Pod,
    ]
  }

  #rerun(name: string): void {
    const { node } = this
    const state = parseState(node.annotation('nodeState_s') ?? '')
    if (state === undefined) return
    const entries = [...state].filter(([key]) => !key.startsWith(`${name}|`))
    node.evidence.forgetCompletion('s')
    node.edit((annotations) => {
      annotations['skyhook.nvidia.com/nodeState_s'] = JSON.stringify(Object.fromEntries(entries))
    })
  }
}

/** Throws the first violated invariant, or what keeps the node from completing. */
export function runScenario(decide: Decide, spec: SkyhookSpec, events: readonly ScenarioEvent[]): Scenario {
  const scenario = new Scenario(decide, spec)
  for (const event of events) scenario.play(event)
  scenario.end()
  return scenario
}
