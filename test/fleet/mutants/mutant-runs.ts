/** Runs plans with a deliberate bug, and on the sources as they are. */
import { join } from 'node:path'
import { copyTree, repository } from '../../../build/mutant-tree.ts'
import type { Plan } from '../../kit/fleet/plan.ts'
import { createRunner, type Runner } from '../run/runner.ts'
import type { Violation } from '../../kit/fleet/run-plan.ts'
import type { FleetMutant } from './mutant.ts'

export type MutantRuns = {
  /** How the plan fails with the bug; undefined if it passes. */
  withBug(mutant: FleetMutant, plan: Plan): Promise<Violation | undefined>
  withoutBug(plan: Plan): Promise<Violation | undefined>
  close(): void
}

const worker = 'test/fleet/run/worker.ts'
const copied = [
  'src',
  'test/fleet',
  'test/promises',
  'test/kit',
  'test/monitoring',
  'crds',
  'package.json',
  'tsconfig.json',
]
/** A run of a small fleet takes a tenth of a second; with a bug it may be busy for many seconds, or never end. */
const maxRunMs = 40_000

/** One plan at a time. */
export function openMutantRuns(): MutantRuns {
  const tree = copyTree(copied)
  const good = createRunner(join(repository, worker), { maxRunMs })
  let bad: { readonly mutant: FleetMutant; readonly runner: Runner; readonly takeOut: () => void } | undefined

  function endBad(): void {
    bad?.runner.close()
    bad?.takeOut()
    bad = undefined
  }

  return {
    async withBug(mutant, plan) {
      if (bad?.mutant !== mutant) {
        endBad()
        const takeOut = tree.put(mutant.name, mutant.changes)
        bad = {
          mutant,
          takeOut,
          runner: createRunner(join(tree.path, worker), { maxRunMs, cacheFolder: join(tree.path, '.cache') }),
        }
      }
      return (await bad.runner.run(plan)).violation
    },
    withoutBug: async (plan) => (await good.run(plan)).violation,
    close() {
      endBad()
      good.close()
      tree.remove()
    },
  }
}
