/** A process that runs fleets one by one: each message is a seed or a plan, each answer the result. */
import { invariants } from '../../promises/all.ts'
import type { Plan } from '../../kit/fleet/plan.ts'
import { planRun } from './plan-run.ts'
import { runPlan } from '../../kit/fleet/run-plan.ts'

process.on('message', (job: number | Plan) => {
  const plan = typeof job === 'number' ? planRun(job) : job
  void runPlan(plan, { invariants }).then(
    (result) => process.send?.({ result }),
    (error: unknown) => {
      console.error(`seed ${plan.seed}: the simulation itself failed:`, error)
      process.exit(1)
    },
  )
})
process.on('disconnect', () => process.exit(0))
