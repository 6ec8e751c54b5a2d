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

const interrupts: readonly Interrupt[] = [
  { type: 'reboot' },
  { type: 'reboot' },
  { type: 'service', services: ['web.service'] },
]

export function planSkyhooks(chance: Chance, nodes: number): readonly SkyhookPlan[] {
  const count = chance.pick([1, 2, 2, 2])
  const hasSamePriority = chance.isHit(0.5)
  return Array.from({ length: count }, (_, index) => ({
    name: `s${index + 1}`,
    spec: {
      nodeSelectors: { matchLabels: { pool: 'a' } },
      interruptionBudget: planBudget(chance, nodes),
      podNonInterruptLabels: { matchLabels: protectedLabels },
      ...(!hasSamePriority && { priority: 100 + index * 100 }),
      ...(chance.isHit(0.15) && { drain: { cordon: 'late' as const } }),
      packages: planPackages(chance, index === 0, index),
    },
  }))
}

function planBudget(chance: Chance, nodes: number): InterruptionBudget {
  if (nodes > 10) return chance.pick([{ count: 10 }, { percent: 25 }])
  return chance.pick([{ count: 1 }, { count: 1 }, { count: 2 }, { percent: 34 }])
}

function planPackages(chance: Chance, isInterrupting: boolean, skyhook: number): Readonly<Record<string, PackageSpec>> {
  const names = [`p${skyhook}a`, `p${skyhook}b`].slice(0, chance.pick([1, 1, 2]))
  return Object.fromEntries(
    names.map((name, index) => [
      name,
      packageSpec(name, isInterrupting && index === 0 ? chance.pick(interrupts) : undefined),
    ]),
  )
}
