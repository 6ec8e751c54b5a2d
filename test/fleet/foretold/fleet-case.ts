/** A case of the judge of plans in a fleet, as data: how far a rollout is, and an edit. */
import fc from 'fast-check'
import type { Interrupt, PackageSpec, SkyhookSpec } from '../../../src/schemas/skyhook.ts'

type Packages = NonNullable<SkyhookSpec['packages']>

export type FleetCase = {
  readonly nodes: number
  readonly spec: Partial<SkyhookSpec> & { readonly packages: Packages }
  /** When the plan is made. `failing`: steps of p0b failed before it, none fails after it. */
  readonly state: 'new' | 'complete' | 'under way' | 'failing' | 'paused' | 'waiting'
  readonly atMs: number
  /** A merge patch of the spec. */
  readonly edit: object
}

const interrupt = fc.constantFrom<Interrupt | null>(
  null,
  null,
  { type: 'reboot' },
  { type: 'service', services: ['web.service'] },
)
const version = fc.constantFrom('1.0.0', '1.1.0', '1.2.0')
const configMap = fc.constantFrom({ x: '1' }, { x: '2' }, { x: '1', y: '1' })

const packageSpec = (name: string): fc.Arbitrary<PackageSpec> =>
  fc.record({ version, configMap, interrupt }).map(({ interrupt: own, ...spec }) => ({
    ...spec,
    image: `registry.test/${name}`,
    ...(own && { interrupt: own }),
  }))

const edit: fc.Arbitrary<object> = fc.oneof(
  version.map((next) => ({ packages: { p0a: { version: next } } })),
  configMap.map((next) => ({ packages: { p0b: { configMap: next } } })),
  fc.record({ version, configMap }).map((change) => ({ packages: { p0a: change, p0b: { configMap: { z: '1' } } } })),
  interrupt.map((next) => ({ packages: { p0a: { interrupt: next, version: '1.3.0' } } })),
  fc.constant({ packages: { p0b: null } }),
  fc.constant({ packages: { p0c: { version: '1.0.0', image: 'registry.test/p0c', interrupt: { type: 'reboot' } } } }),
  fc.constantFrom(0, 1, 2).map((count) => ({ interruptionBudget: { count }, packages: { p0b: { version: '2.0.0' } } })),
  fc.constant({ nodeSelectors: { matchLabels: { pool: 'other' } } }),
)

export const fleetCase: fc.Arbitrary<FleetCase> = fc.record({
  nodes: fc.constantFrom(2, 3),
  spec: fc
    .record({ p0a: packageSpec('p0a'), p0b: packageSpec('p0b'), count: fc.constantFrom(1, 2), serial: fc.boolean() })
    .map(({ count, serial, ...packages }) => ({ packages, interruptionBudget: { count }, serial })),
  state: fc.constantFrom('new', 'complete', 'complete', 'under way', 'under way', 'failing', 'paused', 'waiting'),
  atMs: fc.integer({ min: 0, max: 20_000 }),
  edit,
})
