/**
 * `make bench`: real agents, each with its own connections, on simulated hosts, against one real API server and etcd.
 * Prints the figures beside those committed last, and writes the new ones. bench/README.md says what each figure is.
 * Exits with 1 if a goal is missed.
 */
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { createScreen } from '../demo/screen.ts'
import { isMissed, rowsOf } from './fleet/goals.ts'
import { measureFleet } from './fleet/measure.ts'
import { budgetOf, planName, type FleetPlan } from './fleet/plan.ts'
import { fleetReport } from './fleet/report.ts'
import { readCommitted, writeResult } from './fleet/result-file.ts'

const usage = `usage: node bench/fleet.ts [--nodes N] [--budget none|N|N%] [--strategy none|exponential] [--interrupt none|service]
                           [--skyhooks N] [--step-ms N] [--workers N] [--idle SECONDS] [--no-restart] [--keep]
                           [--profile DIR] [--json]

  --nodes N      agents (default 100)
  --budget X     none, a count or a percentage (default 10%)
  --strategy X   exponential: a DeploymentPolicy with batches of 1, 2, 4 … nodes, up to the budget (default none)
  --interrupt X  whether the package restarts a service (default: service with a budget, none without)
  --skyhooks N   Skyhooks that select all nodes (default 1)
  --step-ms N    how long each step of the package takes (default 0: only what the agents add is measured)
  --workers N    processes that the agents are divided among (default 2)
  --idle N       how long the complete fleet is measured (default 30)
  --no-restart   without the restart of all agents at the end
  --keep         writes the figures over the committed ones, in bench/results
  --profile DIR  writes there what the rollout is made of: CPU profiles of the API server (its first 20 s, for go tool
                 pprof) and of each process with agents, and the audit log. Profiles cost time of their own
  --json         prints the figures as JSON
`

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      nodes: { type: 'string', default: '100' },
      budget: { type: 'string', default: '10%' },
      strategy: { type: 'string', default: 'none' },
      interrupt: { type: 'string' },
      skyhooks: { type: 'string', default: '1' },
      'step-ms': { type: 'string', default: '0' },
      workers: { type: 'string', default: '2' },
      idle: { type: 'string', default: '30' },
      'no-restart': { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
      profile: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h' },
    },
  })
  const { nodes, budget, strategy, skyhooks, workers, idle } = values
  const interrupt = values.interrupt ?? (budget === 'none' ? 'none' : 'service')
  const isCount = (text: string, least: number): boolean => Number.isInteger(Number(text)) && Number(text) >= least
  const areNumbers =
    [nodes, skyhooks, workers].every((text) => isCount(text, 1)) &&
    [values['step-ms'], idle].every((text) => isCount(text, 0))
  const isStrategy = strategy === 'none' || (strategy === 'exponential' && budget !== 'none')
  if (values.help || !areNumbers || !isStrategy || (interrupt !== 'none' && interrupt !== 'service')) {
    process.stderr.write(usage)
    return values.help ? 0 : 2
  }
  budgetOf(budget)
  const plan: FleetPlan = {
    nodes: Number(nodes),
    budget,
    strategy,
    interrupt,
    skyhooks: Number(skyhooks),
    stepMs: Number(values['step-ms']),
    workers: Math.min(Number(workers), Number(nodes)),
    idleSeconds: Number(idle),
    restart: !values['no-restart'],
  }
  const screen = createScreen(process.stderr, () => performance.now())
  const committed = readCommitted(planName(plan))
  const profileDir = values.profile === undefined ? undefined : resolve(values.profile)
  const result = await measureFleet(plan, (text) => screen.line(text), profileDir)
  if (values.json) console.log(JSON.stringify(result, null, 2))
  else console.log(`\n${fleetReport(plan, result, committed?.result)}`)
  screen.line(`figures are in ${writeResult(plan, result, { isKept: values.keep })}`)
  return rowsOf(plan, result).some(isMissed) ? 1 : 0
}

try {
  process.exitCode = await main()
} catch (error) {
  console.error(`measuring failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
  process.exitCode = 1
}
