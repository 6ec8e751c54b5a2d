/** What agents cost while they have nothing to do: for weeks, on every node. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isRenewal, requestsOf, sizeOfAudit, summaryOf } from './audit.ts'
import { electedNode, type BenchContext } from './context.ts'
import type { Figure, Measurement } from './figure.ts'

const settleMs = 10_000
const windowMs = 60_000

/** CPU time of the agent's container in ns: its children and the processes of probes included. cgroup v1 or v2. */
const cpuScript = `
  pid=$(pgrep -f '^/usr/bin/node .*skyhookd.cjs agent$')
  v1=$(sed -n 's/^[0-9]*:[^:]*cpuacct[^:]*://p' /proc/$pid/cgroup)
  if [ -n "$v1" ]; then cat "/sys/fs/cgroup/cpuacct$v1/cpuacct.usage"
  else awk '/^usage_usec/ { print $2 * 1000 }' "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/$pid/cgroup)/cpu.stat"; fi`

type Sample = { readonly atMs: number; readonly cpuNs: number }

async function sampleOf({ box }: BenchContext, node: string): Promise<Sample> {
  const cpuNs = Number(await box.must(['exec', node, '--', 'sh', '-c', cpuScript]))
  return { atMs: performance.now(), cpuNs }
}

const percentBetween = (before: Sample, after: Sample): number =>
  (after.cpuNs - before.cpuNs) / 1e4 / (after.atMs - before.atMs)

export const idleCost: Measurement = {
  title: `CPU and requests of the agents, idle for ${windowMs / 1000} s`,
  async run(bench) {
    const { nodes, auditLog } = bench
    await sleep(settleMs)
    const fromByte = sizeOfAudit(auditLog)
    const fromMs = Date.now()
    const before = await Promise.all(nodes.map(async (node) => sampleOf(bench, node)))
    await sleep(windowMs)
    const after = await Promise.all(nodes.map(async (node) => sampleOf(bench, node)))
    const toMs = Date.now()
    const elected = electedNode(bench)
    const percents = nodes.map((_, index) => percentBetween(before[index] as Sample, after[index] as Sample))
    const requests = nodes.map((node) => requestsOf(auditLog, fromByte, node, fromMs, toMs, { withElection: true }))
    const ofMembers = <T>(values: readonly T[]): T[] => values.filter((_, index) => nodes[index] !== elected)
    const ofElected = <T>(values: readonly T[]): T[] => values.filter((_, index) => nodes[index] === elected)
    const cpu = (what: string, samples: readonly number[], target: number): Figure => ({
      name: `${what}, CPU`,
      unit: '% of a core',
      target,
      measured: Math.max(...samples),
      detail: `per node ${samples.map((sample) => sample.toFixed(2)).join(' ')}`,
    })
    return [
      cpu('idle container', ofMembers(percents), 0.2),
      cpu('idle container with the census', ofElected(percents), 0.5),
      {
        name: 'idle agents, requests but renewals',
        unit: '',
        target: 0,
        measured: requests.flat().filter((request) => !isRenewal(request)).length,
        detail: nodes
          .map(
            (node, index) =>
              `${node}${node === elected ? ' (census)' : ''}: ${summaryOf(requests[index] ?? []) || 'none'}`,
          )
          .join('; '),
      },
    ]
  },
}
