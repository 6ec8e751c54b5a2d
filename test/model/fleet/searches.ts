/** How large a fleet is searched, what happens to it, and what it works on. */
import type { SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import { Cores, masterLabel, poolLabel } from './core.ts'
import type { SearchResult } from '../breadth-first.ts'
import { explore } from './explore.ts'
import { type FleetRules, productRules } from './rules.ts'
import type { Fault, World } from './world.ts'

export type Search = {
  readonly nodes: number
  /** One after the other, each at any moment. */
  readonly budgets: readonly number[]
  /** How many of `faults` happen at most, on any nodes, at any moments. */
  readonly maxFaults: number
  readonly faults: readonly Fault[]
  readonly spec?: SkyhookSpec
  readonly isControlPlane?: boolean
}

const interrupt = { type: 'service', services: ['cron'] } as const
const image = { version: '1.0.0', image: 'r/pkg' }

const nodeSelectors = { matchLabels: { [poolLabel]: '' } }

/** The node is cordoned before the first step. */
const interrupting: SkyhookSpec = { nodeSelectors, packages: { a: { ...image, interrupt } } }
/** Work is under way for a while when the node has to be cordoned. */
export const interruptingLater: SkyhookSpec = {
  nodeSelectors,
  packages: { a: image, b: { ...image, dependsOn: { a: '1.0.0' }, interrupt } },
}

export const allFaults: readonly Fault[] = [
  'agent killed',
  'answer lost',
  'commit late',
  'Node deleted',
  'slot deleted',
  'cordon by the administrator',
  'control-plane label',
  'selector left',
]

export function run(
  { nodes, budgets, maxFaults, faults, spec = interrupting, isControlPlane = false }: Search,
  rules: FleetRules = productRules,
): SearchResult {
  const world: World = {
    cores: new Cores(rules.decide, spec),
    rules,
    budgets,
    faults: new Set(faults),
    labels: { [poolLabel]: '', ...(isControlPlane && { [masterLabel]: '' }) },
  }
  return explore(world, nodes, maxFaults)
}
