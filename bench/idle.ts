/** What agents cost while they have nothing to do: for weeks, on every node. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isRenewal, requestsOf, sizeOfAudit, summaryOf } from './audit.ts'
import { type CpuSample, cpuOf, percentBetween } from './container-cpu.ts'
import { electedNode } from './context.ts'
import type { Figure, Measurement } from './figure.ts'

const settleMs = 10_000
const windowMs = 60_000

export const idleCost: Measurement = {
  title: `CPU and requests of the agents, idle for ${windowMs / 1000} s`,
  async run(bench) {
    const { nodes, auditLog } = bench
    await sleep(settleMs)
    const fromByte = sizeOfAudit(auditLog)
    const fromMs = Date.now()
    const before = await Promise.all(nodes.map(async (node) => cpuOf(bench, node)))
    await sleep(windowMs)
    const after = await Promise.all(nodes.map(async (node) => cpuOf(bench, node)))
    const toMs = Date.now()
    const elected = electedNode(bench)
    const percents = nodes.map((_, index) => percentBetween(before[index] as CpuSample, after[index] as CpuSample))
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
