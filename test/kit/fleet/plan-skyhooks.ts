/** The Skyhooks of a run: mostly two, one that interrupts its nodes and one that does not. */
import type { Interrupt, InterruptionBudget, PackageSpec } from '../../../src/schemas/skyhook.ts'
import type { Chance } from './chance.ts'
import type { SkyhookPlan } from './plan.ts'
import { protectedLabels } from './workload.ts'

export const packageSpec = (name: string, interrupt?: Interrupt): PackageSpec => ({
  version: '1.0.0',
  image: `registry.test/${name}`,
  uninstall: { enabled: true },
  ...(interrupt && { interrupt }),
})

/** Merged into what is there: each names both fields. */
export const paces = [
  { pauseSeconds: 5, minReadySeconds: 0 },
  { pauseSeconds: 20, minReadySeconds: 0 },
  { pauseSeconds: 0, minReadySeconds: 8 },
  { pauseSeconds: 3, minReadySeconds: 15 },
] as const

/** What the actions of a run need of its Skyhooks. */
export type SkyhookNeeds = {
  /** The first one reboots its nodes. */
  readonly reboots: boolean
  /** One of them restarts a service. */
  readonly restarts: boolean
  /** The last one has two packages. */
  readonly hasTwoPackages: boolean
  /** The first one drains its nodes before it runs anything. */
  readonly drains: boolean
}

const interrupts: readonly Interrupt[] = [
  { type: 'reboot' },
  { type: 'reboot' },
  { type: 'service', services: ['web.service'] },
]
const [reboot, , restart] = interrupts

export function planSkyhooks(chance: Chance, nodes: number, needs: SkyhookNeeds): readonly SkyhookPlan[] {
  const isPair = (needs.reboots && needs.restarts) || (needs.drains && needs.hasTwoPackages)
  const count = isPair ? 2 : chance.pick([1, 2, 2, 2])
  const hasSamePriority = chance.isHit(0.5)
  return Array.from({ length: count }, (_, index) => ({
    name: `s${index + 1}`,
    spec: {
      nodeSelectors: { matchLabels: { pool: 'a' } },
      interruptionBudget: planBudget(chance, nodes),
      podNonInterruptLabels: { matchLabels: protectedLabels },
      ...(!hasSamePriority && { priority: 100 + index * 100 }),
      ...(chance.isHit(0.15) && !needs.drains && { drain: { cordon: 'late' as const } }),
      ...(chance.isHit(0.25) && { pace: chance.pick(paces) }),
      ...(chance.isHit(0.25) && { runtimeRequired: true }),
      ...(chance.isHit(0.1) && { bootstrap: { count: chance.integer(1, 2) } }),
      packages: planPackages(chance, index, { ...needs, hasTwoPackages: needs.hasTwoPackages && index === count - 1 }),
    },
  }))
}

function planBudget(chance: Chance, nodes: number): InterruptionBudget {
  if (nodes > 10) return chance.pick([{ count: 10 }, { percent: 25 }])
  return chance.pick([{ count: 1 }, { count: 1 }, { count: 2 }, { percent: 34 }])
}

function planPackages(chance: Chance, skyhook: number, needs: SkyhookNeeds): Readonly<Record<string, PackageSpec>> {
  const count = chance.pick([1, 1, 2])
  const isDrainer = needs.drains && skyhook === 0
  const names = [`p${skyhook}a`, `p${skyhook}b`].slice(0, needs.hasTwoPackages ? 2 : isDrainer ? 1 : count)
  const interrupt = interruptOf(skyhook, needs, chance.pick(interrupts))
  return Object.fromEntries(names.map((name, index) => [name, packageSpec(name, index === 0 ? interrupt : undefined)]))
}

/** One that interrupts and one that does not are the rule. */
function interruptOf(skyhook: number, { reboots, restarts }: SkyhookNeeds, usual: Interrupt): Interrupt | undefined {
  if (skyhook > 0) return reboots && restarts ? restart : undefined
  return reboots ? reboot : restarts ? restart : usual
}
