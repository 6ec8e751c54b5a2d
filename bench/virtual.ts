/**
 * `node bench/virtual.ts`: fleets of thousands of whole agents in one process, on virtual time, through what happens to
 * a fleet at once. Prints counts per node and virtual times; bench/README.md says what they mean.
 */
import { parseArgs } from 'node:util'
import { table } from '../demo/screen.ts'
import { limitOf } from './fleet/plan.ts'
import { startWaitingNodes } from '../test/fleet/waiting/waiting-nodes.ts'
import { medianOf } from './memory.ts'
import { startVirtualFleet, type VirtualFleet, type VirtualPlan } from './virtual/virtual-fleet.ts'

const usage = `usage: node bench/virtual.ts [--nodes N] [--scenario NAME]... [--budget none|N|N%]
                             [--strategy none|exponential] [--step-ms N] [--work-ms N] [--latency-ms N]
                             [--count-lag-ms N] [--seed N] [--json]

  --nodes N        whole agents (default 1000)
  --scenario NAME  rollout, partition, away or restart (default: all four, each on a new fleet); waiting: only the
                   agents' code for slots, without hosts, for many more nodes
  --budget X       (default 10%)
  --strategy X     exponential: a DeploymentPolicy with batches of 1, 2, 4 … nodes, up to the budget (default none)
  --step-ms N      how long each step and the restart of the service take (default 1000)
  --work-ms N      waiting: how long a node keeps its slot (default 7400, as with the default of --step-ms)
  --latency-ms N   from a request to its answer (default 5, a small write on a real API server: make bench)
  --count-lag-ms N waiting: how late the census hears what nodes do (default 3000)
  --seed N         (default 1)
`

const partitionMs = 120_000
const awayMs = 600_000
const withinMs = 4 * 3_600_000
/** Of the rollout that is under way. */
const beforeMs = 20_000

type Figures = Record<string, number | string>

/** From its start to its end, with what befell it in between. */
async function rolledOut(fleet: VirtualFleet, { nodes }: VirtualPlan, during: () => Promise<void>): Promise<Figures> {
  fleet.takeCounts()
  const startMs = fleet.clock.monotonicMs()
  await fleet.apply()
  await during()
  await fleet.until(() => fleet.complete() >= nodes, withinMs)
  await fleet.clock.advance(5_000)
  const times = fleet.completionTimes().map((atMs) => (atMs - startMs) / 1000)
  const { perNode, busiest } = fleet.takeCounts()
  return {
    'all complete after, s': times.at(-1) ?? Number.NaN,
    'median node after, s': medianOf(times),
    'most slots at once': fleet.most().slots,
    'most hosts out at once': fleet.most().out,
    'requests per node': Object.values(perNode).reduce((sum, count) => sum + count, 0),
    'requests in the busiest second': busiest,
    'by kind': textOf(perNode),
  }
}

const scenarios: Readonly<Record<string, (fleet: VirtualFleet, plan: VirtualPlan) => Promise<Figures>>> = {
  rollout: async (fleet, plan) => await rolledOut(fleet, plan, () => Promise.resolve()),
  /** A third of the agents reach nothing, each network as if behind one switch. */
  partition: async (fleet, plan) =>
    await rolledOut(fleet, plan, async () => {
      await fleet.clock.advance(beforeMs)
      const third = fleet.members.filter((_, index) => index % 3 === 0)
      for (const { client } of third) client()?.cut()
      await fleet.clock.advance(partitionMs)
      for (const { client } of third) client()?.heal('reset')
    }),
  away: async (fleet, plan) =>
    await rolledOut(fleet, plan, async () => {
      await fleet.clock.advance(beforeMs)
      fleet.server.stop()
      await fleet.clock.advance(awayMs)
      fleet.server.start({ hasEmptyCache: true })
    }),
  /** As a DaemonSet is rolled with maxUnavailable 100 %, while nothing else happens. */
  async restart(fleet, plan) {
    await rolledOut(fleet, plan, () => Promise.resolve())
    const before = fleet.synced()
    for (const { kill, start } of fleet.members) {
      kill()
      start()
    }
    const backMs = await fleet.until(() => fleet.synced() >= before + plan.nodes, 600_000)
    await fleet.clock.advance(5_000)
    const { perNode, busiest } = fleet.takeCounts()
    return {
      'all back after, s': backMs / 1000,
      'requests per node': Object.values(perNode).reduce((sum, count) => sum + count, 0),
      'requests in the busiest second': busiest,
      'by kind': textOf(perNode),
    }
  },
}

type WaitingPlan = { readonly workMs: number; readonly countLagMs: number }

/** The requests about slots, to be compared with those of whole agents. */
async function waiting(
  { nodes, budget, latencyMs, seed }: VirtualPlan,
  { workMs, countLagMs }: WaitingPlan,
): Promise<Figures> {
  const count = limitOf({ nodes, budget }) ?? nodes
  const fleet = await startWaitingNodes({ nodes, budget: { count }, workMs: () => workMs, latencyMs, countLagMs, seed })
  await fleet.untilComplete(withinMs)
  const { lists, watches, gets, creates, puts, watchEvents, seconds, busiestSecondLists } = fleet.figures()
  fleet.stop()
  return {
    'all complete after, s': seconds,
    'list leases': lists,
    'watch leases': watches,
    'get leases': gets,
    'create leases': creates,
    'update leases': puts,
    'watch events per node': watchEvents,
    'LISTs in the busiest second': busiestSecondLists,
  }
}

const textOf = (perNode: Readonly<Record<string, number>>): string =>
  Object.entries(perNode)
    .toSorted(([, a], [, b]) => b - a)
    .map(([what, count]) => `${count.toFixed(2)} ${what}`)
    .join(', ')

const rounded = (value: number | string): string =>
  typeof value === 'string' ? value : String(Number(value.toFixed(2)))

async function run(name: string, plan: VirtualPlan, waits: WaitingPlan): Promise<Figures> {
  const cpu = process.cpuUsage()
  let figures: Figures = {}
  if (name === 'waiting') figures = await waiting(plan, waits)
  else {
    const fleet = await startVirtualFleet(plan)
    figures = (await scenarios[name]?.(fleet, plan)) ?? {}
    const { out } = fleet.most()
    fleet.stop()
    if (out > (limitOf(plan) ?? Infinity)) throw new Error(`${out} hosts were out at once: more than the budget`)
  }
  const { user, system } = process.cpuUsage(cpu)
  return {
    ...figures,
    'CPU of this run, s': (user + system) / 1e6,
    'memory of this process, MiB': process.memoryUsage.rss() / 2 ** 20,
  }
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      nodes: { type: 'string', default: '1000' },
      scenario: { type: 'string', multiple: true, default: Object.keys(scenarios) },
      budget: { type: 'string', default: '10%' },
      strategy: { type: 'string', default: 'none' },
      'step-ms': { type: 'string', default: '1000' },
      'work-ms': { type: 'string', default: '7400' },
      'latency-ms': { type: 'string', default: '5' },
      'count-lag-ms': { type: 'string', default: '3000' },
      seed: { type: 'string', default: '1' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  const plan: VirtualPlan = {
    nodes: Number(values.nodes),
    budget: values.budget,
    strategy: values.strategy === 'exponential' ? 'exponential' : 'none',
    stepMs: Number(values['step-ms']),
    latencyMs: Number(values['latency-ms']),
    seed: Number(values.seed),
  }
  const areNumbers = [plan.nodes, plan.seed].every((one) => Number.isInteger(one) && one > 0)
  const areKnown = values.scenario.every((name) => name === 'waiting' || Object.hasOwn(scenarios, name))
  const isStrategy = values.strategy === 'none' || (values.strategy === 'exponential' && plan.budget !== 'none')
  if (values.help || !areNumbers || !areKnown || !isStrategy) {
    process.stderr.write(usage)
    return values.help ? 0 : 2
  }
  const waits: WaitingPlan = { workMs: Number(values['work-ms']), countLagMs: Number(values['count-lag-ms']) }
  for (const name of values.scenario) {
    const figures = await run(name, plan, waits)
    if (values.json) console.log(JSON.stringify({ scenario: name, plan, figures }))
    else {
      const rows = Object.entries(figures).map(([what, value]) => [what, rounded(value)])
      console.log(`${name}, ${plan.nodes} nodes, budget ${plan.budget}\n${table(rows).join('\n')}\n`)
    }
  }
  return 0
}

try {
  process.exitCode = await main()
} catch (error) {
  console.error(`measuring failed: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}
