import fc from 'fast-check'
import type { PackageConfig } from '../../src/schemas/package-config.ts'
import type { Interrupt, PackageSpec, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import type { OwnSlot } from '../../src/stages/model/snapshot.ts'
import type { Pod } from '../../src/stages/model/pods.ts'
import { parseState } from '../../src/schemas/published.ts'
import { WatchedNode } from './invariants/index.ts'
import type { Invariant } from './invariants/invariant.ts'
import { controlPlaneLabel } from './invariants/control-plane-is-guarded.ts'
import type { Disturbance } from './faulty-node.ts'
import type { Decide } from '../kit/node-simulator/node-simulator.ts'
import { guardedStep, plainStep, simplePackage } from '../kit/node-simulator/package-content.ts'
import { Wakes } from '../kit/node-simulator/wakes.ts'

/** What can happen to a node, as data: a list of these is a scenario that a search can shrink. */
export type ScenarioEvent =
  | ({ readonly kind: 'rounds'; readonly times: number } & Disturbance)
  /** The agent or the whole host crashes after some actions of a decision. */
  | {
      readonly kind: 'crash'
      readonly of: 'agent' | 'host'
      readonly afterActions: number
      readonly losesWrites: boolean
    }
  | { readonly kind: 'finish' }
  | { readonly kind: 'steps fail'; readonly of: string }
  /** From now on this package requires an interrupt after its config, or does not. */
  | { readonly kind: 'interrupt required'; readonly of: string; readonly required: boolean }
  /** The host requests a run of this package's config. */
  | { readonly kind: 'run requested'; readonly of: string }
  | { readonly kind: 'time passes'; readonly seconds: number }
  /** Whatever can happen within four minutes happens: failing steps fail several times. */
  | { readonly kind: 'time goes by' }
  | { readonly kind: 'spec changed'; readonly spec: SkyhookSpec }
  /** The watch shows a newer spec, and it cannot be read until the next one. The node's label may follow it. */
  | { readonly kind: 'spec unread'; readonly isRelabelled: boolean }
  /** The watch of the Skyhooks is broken. */
  | { readonly kind: 'Skyhooks in doubt'; readonly are: boolean }
  /** Another Skyhook on the same node, with its own priority; null deletes it. */
  | { readonly kind: 'other Skyhook changed'; readonly spec: SkyhookSpec | null; readonly priority: number }
  | { readonly kind: 'annotated'; readonly key: 'pause' | 'disable'; readonly on: boolean }
  | { readonly kind: 'labelled'; readonly key: string; readonly value: string | null }
  /** The agent sees that its slots are gone. */
  | { readonly kind: 'slot lost' }
  /** The next write will tell. */
  | { readonly kind: 'slot deleted' }
  /** The watch showed a deletion, or lacks the slots. */
  | { readonly kind: 'slots in doubt' }
  | { readonly kind: 'slot appears'; readonly scope: OwnSlot['scope'] }
  /** The budget of the moment grants what is to be confirmed. */
  | { readonly kind: 'slots confirmed'; readonly confirmed: boolean }
  | { readonly kind: 'control plane'; readonly free: boolean }
  | { readonly kind: 'slots granted'; readonly granted: boolean }
  /** The node's turn for a slot of its Skyhook is far, or near. */
  | { readonly kind: 'turn'; readonly isFar: boolean }
  | { readonly kind: 'layers'; readonly areSlow: boolean; readonly areBroken: boolean }
  | { readonly kind: 'pod created'; readonly name: string; readonly refuses: boolean; readonly isProtected: boolean }
  | { readonly kind: 'pods allow eviction' }
  | { readonly kind: 'protected pods end' }
  | { readonly kind: 'administrator sets unschedulable'; readonly to: boolean }
  /** Its Node is deleted and registered again, or somebody removes annotations: all of them, or those of the cordon. */
  | { readonly kind: 'Node forgets'; readonly what: 'everything' | 'annotations' | 'cordon marks' }
  | { readonly kind: 'reset' }
  | { readonly kind: 'rerun'; readonly of: string }
  /** Somebody deletes the Skyhook; the finalizer keeps it until `deleted` or `replaced`. */
  | { readonly kind: 'deletion requested' }
  | { readonly kind: 'deleted' }
  | { readonly kind: 'replaced' }

const interrupts: readonly Interrupt[] = [
  { type: 'reboot' },
  { type: 'service', services: ['cron'] },
  { type: 'service', services: ['containerd'] },
  { type: 'noop' },
  { type: 'restartAllServices' },
  { type: 'reboot', when: 'required' },
  { type: 'service', services: ['cron'], when: 'required' },
]

const versions = ['1.0.0', '1.1.0', '2.0.0'] as const

/** Where the agent guards steps, the first one of the stage is such a step. */
function packageWithGuardedSteps(): PackageConfig {
  const { modes, ...config } = simplePackage()
  const guarded = [guardedStep('once.sh'), plainStep('run.sh')]
  return { ...config, modes: { ...modes, apply: guarded, 'post-interrupt': guarded } }
}

const rarely = <T>(arbitrary: fc.Arbitrary<T>, weight = 3): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined, freq: weight })

export type Features = {
  readonly isKeeping: boolean
  /** Other nodes come first for slots, now and then. */
  readonly isDistant?: boolean
  /** The Node forgets what was written on it, now and then. */
  readonly isForgetful?: boolean
}

const packageSpec = ({ isKeeping }: Features): fc.Arbitrary<PackageSpec> =>
  fc
    .record({
      version: fc.constantFrom(...versions),
      image: fc.constantFrom('r/pkg', 'r/pkg', 'r/pkg', 'r/other'),
      interrupt: rarely(fc.constantFrom(...interrupts), 2),
      configMap: fc.constantFrom({}, { x: '1' }, { x: '2' }, { x: '1', y: '1' }, { y: '2' }),
      env: fc.constantFrom(undefined, undefined, [{ name: 'E', value: '1' }], [{ name: 'E', value: '2' }]),
      configInterrupts: fc.constantFrom(
        undefined,
        undefined,
        { x: interrupts[1] as Interrupt },
        { '*': interrupts[0] as Interrupt },
        { '*': interrupts[5] as Interrupt },
      ),
      rerunOnRequest: rarely(fc.constant({ minInterval: '1m' })),
      uninstall: isKeeping
        ? fc.constantFrom(undefined, undefined, { enabled: false }, { enabled: true }, { enabled: true, apply: true })
        : fc.constantFrom(undefined, undefined, undefined, { enabled: true }, { enabled: true, apply: true }),
    })
    .map((spec) => Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined)) as PackageSpec)

/** Specs whose dependencies form no cycle and name existing versions. */
export const skyhookSpec = (features: Features = { isKeeping: false }): fc.Arbitrary<SkyhookSpec> =>
  fc
    .record({
      packages: fc.dictionary(fc.constantFrom('a', 'b', 'c'), packageSpec(features), {
        maxKeys: 3,
        noNullPrototype: true,
      }),
      edges: fc.subarray(['ba', 'ca', 'cb'], { maxLength: 2 }),
      serial: fc.constantFrom(false, false, true),
      protects: fc.boolean(),
      runtimeRequired: fc.constantFrom(false, false, true),
      drain: fc.constantFrom<NonNullable<SkyhookSpec['drain']>[]>(
        {},
        {},
        { cordon: 'late' },
        { yieldAfterSeconds: 30 },
        { timeoutSeconds: 20, onTimeout: 'delete' },
        { timeoutSeconds: 20, onTimeout: 'release' },
        { singleNode: 'skip' },
      ),
    })
    .map(({ packages, edges, serial, protects, runtimeRequired, drain }) => {
      const linked = Object.fromEntries(
        Object.entries(packages).map(([name, spec]) => {
          const needed = edges
            .filter(([from, to]) => from === name && to !== undefined && packages[to])
            .map((edge) => edge.charAt(1))
          const dependsOn = Object.fromEntries(needed.map((other) => [other, packages[other]?.version ?? '']))
          return [name, needed.length === 0 ? spec : { ...spec, dependsOn }]
        }),
      )
      return {
        nodeSelectors: { matchLabels: { pool: 'x' } },
        packages: linked,
        ...(serial && { serial }),
        ...(runtimeRequired && { runtimeRequired }),
        ...(protects && { podNonInterruptLabels: { matchLabels: { workload: 'never' } } }),
        drain,
      }
    })

const turns = {
  weight: 6,
  arbitrary: fc.constantFrom<ScenarioEvent[]>(
    { kind: 'turn', isFar: true },
    { kind: 'turn', isFar: true },
    { kind: 'turn', isFar: false },
    { kind: 'layers', areSlow: true, areBroken: false },
    { kind: 'layers', areSlow: false, areBroken: true },
    { kind: 'layers', areSlow: false, areBroken: false },
  ),
}

const forgettings = {
  weight: 6,
  arbitrary: fc.constantFrom<ScenarioEvent[]>(
    { kind: 'Node forgets', what: 'everything' },
    { kind: 'Node forgets', what: 'annotations' },
    { kind: 'Node forgets', what: 'cordon marks' },
  ),
}

export const scenarioEvent = (features?: Features): fc.Arbitrary<ScenarioEvent> =>
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        kind: fc.constant('rounds' as const),
        times: fc.integer({ min: 1, max: 7 }),
        reversed: fc.boolean(),
        conflict: fc.constantFrom(false, false, true),
      }),
    },
    { weight: 6, arbitrary: fc.constant<ScenarioEvent>({ kind: 'finish' }) },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('crash' as const),
        of: fc.constantFrom('agent' as const, 'agent' as const, 'host' as const),
        afterActions: fc.nat(3),
        losesWrites: fc.boolean(),
      }),
    },
    { weight: 3, arbitrary: skyhookSpec(features).map((spec): ScenarioEvent => ({ kind: 'spec changed', spec })) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('other Skyhook changed' as const),
        spec: fc.option(skyhookSpec(features), { nil: null, freq: 3 }),
        priority: fc.constantFrom(1, 300),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('steps fail' as const), of: fc.constantFrom('a', 'b', 'c') }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('run requested' as const), of: fc.constantFrom('a', 'b', 'c') }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('interrupt required' as const),
        of: fc.constantFrom('a', 'b', 'c'),
        required: fc.boolean(),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.constantFrom<ScenarioEvent[]>(
        { kind: 'time passes', seconds: 1 },
        { kind: 'time passes', seconds: 7 },
        { kind: 'time passes', seconds: 70 },
      ),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('annotated' as const),
        key: fc.constantFrom('pause' as const, 'disable' as const),
        on: fc.boolean(),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.constantFrom<ScenarioEvent[]>(
        { kind: 'labelled', key: 'pool', value: 'y' },
        { kind: 'labelled', key: 'pool', value: 'x' },
        { kind: 'labelled', key: 'skyhook.nvidia.com/ignore', value: 'true' },
        { kind: 'labelled', key: 'skyhook.nvidia.com/ignore', value: null },
      ),
    },
    {
      weight: 4,
      arbitrary: fc.constantFrom<ScenarioEvent[]>(
        { kind: 'slot lost' },
        { kind: 'slot deleted' },
        { kind: 'slots in doubt' },
        { kind: 'spec unread', isRelabelled: false },
        { kind: 'spec unread', isRelabelled: true },
        { kind: 'spec unread', isRelabelled: true },
        { kind: 'Skyhooks in doubt', are: true },
        { kind: 'Skyhooks in doubt', are: false },
        { kind: 'slot appears', scope: 'skyhook' },
        { kind: 'slot appears', scope: 'control-plane' },
        { kind: 'slots confirmed', confirmed: false },
        { kind: 'slots confirmed', confirmed: true },
        { kind: 'control plane', free: false },
        { kind: 'control plane', free: true },
        { kind: 'labelled', key: controlPlaneLabel, value: '' },
        { kind: 'labelled', key: controlPlaneLabel, value: null },
        { kind: 'slots granted', granted: false },
        { kind: 'slots granted', granted: true },
        { kind: 'pods allow eviction' },
        { kind: 'protected pods end' },
        { kind: 'administrator sets unschedulable', to: false },
        { kind: 'administrator sets unschedulable', to: true },
        { kind: 'reset' },
        { kind: 'rerun', of: 'a' },
        { kind: 'deleted' },
        { kind: 'replaced' },
      ),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('pod created' as const),
        name: fc.constantFrom('p', 'q'),
        refuses: fc.boolean(),
        isProtected: fc.boolean(),
      }),
    },
    ...(features?.isDistant ? [turns] : []),
    ...(features?.isForgetful ? [forgettings] : []),
  )

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

  constructor(decide: Decide, spec: SkyhookSpec, invariants?: readonly Invariant[]) {
    this.node = new WatchedNode(decide, invariants)
    for (const version of versions) this.node.images.set(`r/other:${version}`, packageWithGuardedSteps())
    this.#spec = spec
    this.node.requiringPackages.add('c')
    this.node.apply('s', spec)
  }

  play(event: ScenarioEvent): void {
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
