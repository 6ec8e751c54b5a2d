/**
 * `make measure`: the costs of the agent on the sandbox, each figure beside its promise. Uses the running sandbox
 * (SANDBOX=name for another than `default`) or boots one. Exits with 1 if a promise is not met.
 */
import { existsSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { readySandbox } from '../demo/ready-sandbox.ts'
import { createScreen } from '../demo/screen.ts'
import { record } from '../test/kit/history.ts'
import { adminTransport } from '../test/kit/cluster/kube.ts'
import { idleMemory } from './idle-memory.ts'
import { meetsTarget, reportOf, type Figure } from './figure.ts'
import { measurements } from './measurements.ts'
import { emptyNodes, pushShellscript, cleanUpHosts, type BenchContext } from './context.ts'

const usage = `usage: node bench/agent.ts [--runs N] [--only TEXT] [--idle MINUTES] [--json]

  --runs N        samples of what varies; the median counts (default 5)
  --only TEXT     only what has TEXT in its title, as it is printed while it is measured
  --idle MINUTES  nothing but the memory of idle agents, every minute for so long
  --json          figures as JSON on standard output, progress on standard error
`

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      runs: { type: 'string', default: '5' },
      only: { type: 'string', default: '' },
      idle: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h' },
    },
  })
  const runs = Number(values.runs)
  const minutes = values.idle === undefined ? undefined : Number(values.idle)
  const all = minutes === undefined ? measurements : [idleMemory(minutes)]
  const selected = all.filter(({ title }) => title.includes(values.only))
  const isCount = (value: number): boolean => Number.isInteger(value) && value >= 1
  if (values.help || !isCount(runs) || !isCount(minutes ?? 1) || selected.length === 0) {
    process.stderr.write(usage)
    return values.help ? 0 : 2
  }
  const screen = createScreen(process.stderr, () => performance.now())
  const box = await readySandbox(screen)
  const { KUBECONFIG = '', REGISTRY = '' } = box.env()
  const api = adminTransport(KUBECONFIG)
  const history = await record(api)
  const auditLog = join(box.folder, 'control-plane', 'audit.log')
  if (!existsSync(auditLog)) throw new Error(`${auditLog} is missing: the API server of the sandbox writes it`)
  const bench: BenchContext = {
    box,
    api,
    history,
    nodes: [...history.now.nodes.keys()].sort(),
    runs,
    registry: REGISTRY,
    auditLog,
  }
  const figures: Figure[] = []
  try {
    await pushShellscript(bench)
    await emptyNodes(bench)
    for (const { title, run } of selected) {
      screen.line(title)
      figures.push(...(await run(bench)))
    }
  } finally {
    await cleanUpHosts(bench)
    history.stop()
    api.close()
  }
  const machine = {
    cores: cpus().length,
    load: loadavg().map((load) => Number(load.toFixed(1))),
    node: process.version,
  }
  if (values.json)
    console.log(
      JSON.stringify({ machine, figures: figures.map((figure) => ({ ...figure, met: meetsTarget(figure) })) }, null, 2),
    )
  else console.log(`\n${reportOf(figures)}\n\nmachine: ${machine.cores} cores, load ${machine.load.join(' ')}`)
  return figures.every(meetsTarget) ? 0 : 1
}

try {
  process.exitCode = await main()
} catch (error) {
  console.error(`measuring failed: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}
