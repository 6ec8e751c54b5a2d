/** A process that runs seeds one by one for a campaign: each message is a seed, each answer its result. */
import { invariants } from '../invariants/all.ts'
import { planRun } from './plan-run.ts'
import { runPlan } from './run-plan.ts'

process.on('message', (seed: number) => {
  void runPlan(planRun(seed), { invariants }).then(
    (result) => process.send?.({ seed, result }),
    (error: unknown) => {
      console.error(`seed ${seed}: the simulation itself failed:`, error)
      process.exit(1)
    },
  )
})
process.on('disconnect', () => process.exit(0))
