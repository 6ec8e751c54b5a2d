/** A case of the judge of plans, as data: a life that brings a node to a state, and an edit. */
import fc from 'fast-check'
import type { Interrupt, PackageSpec, SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import { failingSpec } from '../failing-specs.ts'
import { type Features, type ScenarioEvent, scenarioEvent, skyhookSpec, versions } from '../scenario.ts'

type OperatorEntries = Readonly<Record<string, { readonly stage: string; readonly state: string }>>

/** How the node came to the Skyhook. */
export type Beginning =
  | 'empty'
  /** The operator worked on it, and these are its words. */
  | { readonly adopted: OperatorEntries }
  /** The same, and no agent has run there before the edit. */
  | { readonly left: OperatorEntries }
  /** It has the runtime-required taint. */
  | 'joining'

/** One change of a Skyhook by a person. */
export type Edit =
  | { readonly edit: 'package'; readonly of: string; readonly change: Partial<PackageSpec> }
  | { readonly edit: 'removed'; readonly of: string }
  | { readonly edit: 'spec'; readonly change: Partial<SkyhookSpec> }
  | { readonly edit: 'annotation'; readonly key: 'pause' | 'disable'; readonly on: boolean }

export type Asked = 'nothing' | readonly Edit[] | 'deletion' | { readonly replaced: SkyhookSpec }

export type Case = {
  readonly beginning: Beginning
  readonly spec: SkyhookSpec
  readonly life: readonly ScenarioEvent[]
  readonly asked: Asked
  /** Whether packages ask for the interrupts that they make only if required. */
  readonly requires: boolean
}

const features: Features = { isKeeping: true }
/** As the specs of random lives have them: `planCase` gives them the length that the API server asks for. */
const anyPackage = fc.constantFrom('a', 'b', 'c')
const interrupts: readonly (Interrupt | undefined)[] = [
  undefined,
  { type: 'reboot' },
  { type: 'service', services: ['cron'] },
  { type: 'noop' },
  { type: 'restartAllServices' },
  { type: 'service', services: ['cron'], when: 'required' },
]

const packageChange: fc.Arbitrary<Partial<PackageSpec>> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...versions).map((version) => ({ version })) },
  {
    weight: 4,
    arbitrary: fc.constantFrom({}, { x: '1' }, { x: '2' }, { x: '3', y: '1' }).map((configMap) => ({ configMap })),
  },
  { weight: 1, arbitrary: fc.constantFrom('1', '2', '3').map((value) => ({ env: [{ name: 'E', value }] })) },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom(...interrupts)
      .map((interrupt) => (interrupt ? { interrupt } : ({ interrupt: undefined } as object))),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Partial<PackageSpec>>(
      { configMap: { x: '4' }, configInterrupts: { x: { type: 'reboot' } } },
      { configMap: { y: '4' }, configInterrupts: { '*': { type: 'service', services: ['cron'] } } },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Partial<PackageSpec>>(
      { uninstall: { enabled: true } },
      { uninstall: { enabled: false } },
      { uninstall: { enabled: true, apply: true } },
    ),
  },
  { weight: 1, arbitrary: fc.constant({ image: 'r/other' }) },
)

const specChange: fc.Arbitrary<Partial<SkyhookSpec>> = fc.constantFrom<Partial<SkyhookSpec>>(
  { nodeSelectors: { matchLabels: { pool: 'y' } } },
  { nodeSelectors: { matchLabels: { pool: 'x' } } },
  { interruptionBudget: { count: 0 } },
  { interruptionBudget: { count: 1 } },
  { interruptionBudget: { count: 0 }, bootstrap: { count: 1 } },
  { bootstrap: { count: 0 } },
  { runtimeRequired: true, autoTaintNewNodes: true },
  { runtimeRequired: false },
  { serial: true },
  { serial: false },
  { drain: { cordon: 'late' } },
)

const edit: fc.Arbitrary<Edit> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .record({ of: anyPackage, change: packageChange })
      .map(({ of, change }): Edit => ({ edit: 'package', of, change })),
  },
  { weight: 1, arbitrary: anyPackage.map((of): Edit => ({ edit: 'removed', of })) },
  { weight: 2, arbitrary: specChange.map((change): Edit => ({ edit: 'spec', change })) },
  {
    weight: 1,
    arbitrary: fc
      .record({ key: fc.constantFrom('pause' as const, 'disable' as const), on: fc.boolean() })
      .map(({ key, on }): Edit => ({ edit: 'annotation', key, on })),
  },
)

const asked: fc.Arbitrary<Asked> = fc.oneof(
  { weight: 1, arbitrary: fc.constant<Asked>('nothing') },
  { weight: 12, arbitrary: fc.array(edit, { minLength: 1, maxLength: 3 }) },
  { weight: 2, arbitrary: skyhookSpec(features).map((replaced): Asked => ({ replaced })) },
  { weight: 1, arbitrary: fc.constant<Asked>('deletion') },
)

const adopted: fc.Arbitrary<Beginning> = fc
  .dictionary(
    fc.tuple(anyPackage, fc.constantFrom(...versions)).map(([name, version]) => `${name}|${version}`),
    fc.record({
      stage: fc.constantFrom('apply', 'config', 'interrupt', 'post-interrupt', 'uninstall', 'upgrade'),
      state: fc.constantFrom('complete', 'complete', 'in_progress', 'erroring'),
    }),
    { minKeys: 1, maxKeys: 3, noNullPrototype: true },
  )
  .map((entries) => ({ adopted: entries }))

/** What a plan cannot know before it happens is no part of it: nobody has lost a slot, a Node or the watch. */
const moves: ReadonlySet<ScenarioEvent['kind']> = new Set([
  'rounds',
  'crash',
  'finish',
  'steps fail',
  'interrupt required',
  'time passes',
  'time goes by',
  'spec changed',
  'other Skyhook changed',
  'annotated',
  'labelled',
  'slots granted',
  'pod created',
])

const calmEvent: fc.Arbitrary<ScenarioEvent> = scenarioEvent(features).filter(({ kind }) => moves.has(kind))

const life: fc.Arbitrary<readonly ScenarioEvent[]> = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: calmEvent },
    { weight: 2, arbitrary: fc.constant<ScenarioEvent>({ kind: 'time goes by' }) },
    { weight: 2, arbitrary: failingSpec(features).map((spec): ScenarioEvent => ({ kind: 'spec changed', spec })) },
  ),
  { maxLength: 5 },
)

const shortNamed: fc.Arbitrary<Case> = fc.record({
  beginning: fc.oneof(
    { weight: 8, arbitrary: fc.constant<Beginning>('empty') },
    { weight: 1, arbitrary: fc.constant<Beginning>('joining') },
    { weight: 1, arbitrary: adopted },
  ),
  spec: fc.oneof({ weight: 3, arbitrary: skyhookSpec(features) }, { weight: 1, arbitrary: failingSpec(features) }),
  life,
  asked,
  requires: fc.boolean(),
})

/** With names of packages that the API server takes. */
export const planCase: fc.Arbitrary<Case> = shortNamed.map((one) => withLongNames(one) as Case)

const shortName = /^[abc](?=$|\|)/

/** Wherever a package is named: as a key, or as what an event or an edit is about. */
function withLongNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withLongNames)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, one]: [string, unknown]) => [
      key.replace(shortName, 'p$&'),
      key === 'of' && typeof one === 'string' ? one.replace(shortName, 'p$&') : withLongNames(one),
    ]),
  )
}
