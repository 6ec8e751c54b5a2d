import fc from 'fast-check'
import type { Interrupt, PackageSpec, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import type { OwnSlot } from '../../src/stages/model/snapshot.ts'
import type { Disturbance } from './faulty-node.ts'
import { controlPlaneLabel } from './invariants/control-plane-is-guarded.ts'

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

export const versions = ['1.0.0', '1.1.0', '2.0.0'] as const

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

type EventOf<Kind> = Extract<ScenarioEvent, { readonly kind: Kind }>

const eventOf = <Kind extends ScenarioEvent['kind']>(
  kind: Kind,
  fields: { readonly [Field in Exclude<keyof EventOf<Kind>, 'kind'>]?: fc.Arbitrary<EventOf<Kind>[Field]> },
): fc.Arbitrary<ScenarioEvent> =>
  fc.record({ kind: fc.constant(kind), ...fields }) as fc.Arbitrary<unknown> as fc.Arbitrary<ScenarioEvent>

const oneOf = (...events: ScenarioEvent[]): fc.Arbitrary<ScenarioEvent> => fc.constantFrom(...events)

const weighted = (weight: number, arbitrary: fc.Arbitrary<ScenarioEvent>) => ({ weight, arbitrary })

const anyPackage = fc.constantFrom('a', 'b', 'c')

const turns = oneOf(
  { kind: 'turn', isFar: true },
  { kind: 'turn', isFar: true },
  { kind: 'turn', isFar: false },
  { kind: 'layers', areSlow: true, areBroken: false },
  { kind: 'layers', areSlow: false, areBroken: true },
  { kind: 'layers', areSlow: false, areBroken: false },
)

const forgettings = oneOf(
  { kind: 'Node forgets', what: 'everything' },
  { kind: 'Node forgets', what: 'annotations' },
  { kind: 'Node forgets', what: 'cordon marks' },
)

const pauses = oneOf(
  { kind: 'time passes', seconds: 1 },
  { kind: 'time passes', seconds: 7 },
  { kind: 'time passes', seconds: 70 },
)

const relabellings = oneOf(
  { kind: 'labelled', key: 'pool', value: 'y' },
  { kind: 'labelled', key: 'pool', value: 'x' },
  { kind: 'labelled', key: 'skyhook.nvidia.com/ignore', value: 'true' },
  { kind: 'labelled', key: 'skyhook.nvidia.com/ignore', value: null },
)

const deeds = oneOf(
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
)

/** Whatever may happen to a node next. */
export const scenarioEvent = (features: Features = { isKeeping: false }): fc.Arbitrary<ScenarioEvent> =>
  fc.oneof(
    weighted(
      8,
      eventOf('rounds', {
        times: fc.integer({ min: 1, max: 7 }),
        reversed: fc.boolean(),
        conflict: fc.constantFrom(false, false, true),
      }),
    ),
    weighted(6, oneOf({ kind: 'finish' })),
    weighted(
      4,
      eventOf('crash', {
        of: fc.constantFrom('agent', 'agent', 'host'),
        afterActions: fc.nat(3),
        losesWrites: fc.boolean(),
      }),
    ),
    weighted(
      3,
      skyhookSpec(features).map((spec) => ({ kind: 'spec changed', spec })),
    ),
    weighted(
      1,
      eventOf('other Skyhook changed', {
        spec: fc.option(skyhookSpec(features), { nil: null, freq: 3 }),
        priority: fc.constantFrom(1, 300),
      }),
    ),
    weighted(2, eventOf('steps fail', { of: anyPackage })),
    weighted(1, eventOf('run requested', { of: anyPackage })),
    weighted(2, eventOf('interrupt required', { of: anyPackage, required: fc.boolean() })),
    weighted(2, pauses),
    weighted(1, eventOf('annotated', { key: fc.constantFrom('pause', 'disable'), on: fc.boolean() })),
    weighted(2, relabellings),
    weighted(4, deeds),
    weighted(
      2,
      eventOf('pod created', { name: fc.constantFrom('p', 'q'), refuses: fc.boolean(), isProtected: fc.boolean() }),
    ),
    ...(features.isDistant ? [weighted(6, turns)] : []),
    ...(features.isForgetful ? [weighted(6, forgettings)] : []),
  )
