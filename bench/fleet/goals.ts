/** What 1,000 nodes may cost on two cores that the API server and etcd share, and what the Skyhook operator costs. */
import { limitOf, type FleetPlan } from './plan.ts'
import type { FleetResult } from './result.ts'

export type Row = {
  readonly name: string
  readonly unit: string
  readonly value: number
  readonly goal?: number
  /** The operator on the same number of nodes; times are normalized by the probe. */
  readonly operator?: string
}

/**
 * The operator's rollouts without work, by a bench of its own (docs of the figures: bench/README.md). `writeMs`: its
 * wall time for each of its writes, which it sends one after another.
 */
type OperatorRun = {
  readonly requestsPerNode: number
  readonly writesPerNode: number
  readonly writeMs: number
  readonly etcdKiBPerNode: number
}

const operatorRuns: Readonly<Record<string, OperatorRun>> = {
  'none none': { requestsPerNode: 27, writesPerNode: 22, writeMs: 5.9, etcdKiBPerNode: 98 },
  '10% service': { requestsPerNode: 45.1, writesPerNode: 37.1, writeMs: 6.9, etcdKiBPerNode: 190 },
}

type Goals = {
  readonly makespan: (nodes: number) => number
  readonly requestsPerNode: number
  readonly etcdKiBPerNode: number
}

const goalsOfBudget: Readonly<Record<string, Goals>> = {
  'none none': { makespan: (nodes) => (15 * nodes) / 1000, requestsPerNode: 12, etcdKiBPerNode: 25 },
  '10% service': { makespan: (nodes) => (45 * nodes) / 1000, requestsPerNode: 20, etcdKiBPerNode: 45 },
}

/** The goals of times are stated for this many nodes; fewer nodes have no time to show it. */
const fullSize = 1_000

/** The figures of a measurement, those with a goal beside it. */
export function rowsOf(plan: FleetPlan, result: FleetResult): Row[] {
  const { rollout, idle, restart, probeMs } = result
  const key = plan.strategy === 'none' ? `${plan.budget} ${plan.interrupt}` : plan.strategy
  const goals = plan.skyhooks === 1 ? goalsOfBudget[key] : undefined
  const operator = plan.skyhooks === 1 ? operatorRuns[key] : undefined
  const isFull = plan.nodes >= fullSize
  const row = (name: string, unit: string, value: number, goal?: number, operatorText?: string): Row => ({
    name,
    unit,
    value,
    ...(goal !== undefined && { goal }),
    ...(operatorText !== undefined && { operator: operatorText }),
  })
  const operatorSeconds = operator && (operator.writesPerNode * plan.nodes * Math.min(probeMs, operator.writeMs)) / 1000
  const { seconds, budget, handOverMs, requestsByVerb } = rollout
  const lists = Object.entries(requestsByVerb)
    .filter(([what]) => what.startsWith('list '))
    .reduce((sum, [, count]) => sum + count, 0)
  const countsOne = limitOf(plan) === 1
  return [
    row('API server: a small write', 'ms', probeMs),
    row('rollout on one node alone', 's', result.aloneSeconds),
    row(
      'rollout on all nodes',
      's',
      seconds.makespan,
      isFull ? goals?.makespan(plan.nodes) : undefined,
      operatorSeconds === undefined ? undefined : `${operatorSeconds.toFixed(0)} s`,
    ),
    row('  ideal: as many times the one alone as the budget asks for', 's', seconds.ideal),
    row('  first node complete', 's', seconds.firstNode, isFull && plan.budget === 'none' ? 1 : undefined),
    row('  median node complete', 's', seconds.medianNode),
    row('  status of the Skyhook complete', 's', seconds.status),
    row(
      'requests per node',
      '',
      rollout.requestsPerNode,
      goals?.requestsPerNode,
      operator && String(operator.requestsPerNode),
    ),
    row('  LISTs', '', Number(lists.toFixed(2)), countsOne ? 2 : undefined),
    row('watch events per node', '', rollout.watchEventsPerNode, countsOne ? 60 : undefined),
    row('watch KiB per node', 'KiB', rollout.watchKiBPerNode),
    row(
      'etcd per node',
      'KiB',
      rollout.etcdKiBPerNode,
      goals?.etcdKiBPerNode,
      operator && `${operator.etcdKiBPerNode} KiB`,
    ),
    row('conflicts (409)', '', rollout.conflicts),
    row('too many requests (429)', '', rollout.tooManyRequests, 0),
    row('CPU of the API server', 's', rollout.serverCpuSeconds),
    row('CPU of etcd', 's', rollout.etcdCpuSeconds),
    row('CPU of the agents, per node', 'ms', rollout.agentCpuMsPerNode),
    row('memory of the API server', 'MiB', rollout.serverRssMiB),
    row('memory of an agent in a shared process, with its host', 'MiB', rollout.agentRssMiB),
    ...(budget
      ? [
          row(`most slots held at once, budget ${budget.limit}`, '', budget.mostSlots, budget.limit),
          row('most hosts out at once', '', budget.mostHostsOut, budget.limit * plan.skyhooks),
          row('violations of the budget', '', budget.violations, 0),
        ]
      : []),
    ...(handOverMs
      ? [
          row('hand-over of a slot, median', 'ms', handOverMs.median, countsOne ? 300 : undefined),
          row('hand-over of a slot, worst', 'ms', handOverMs.worst),
        ]
      : []),
    row('longest wait without a reason', 's', rollout.longestSilentMs / 1000),
    ...(idle
      ? [
          row('idle: requests beside watch renewals', '/s', idle.requestsPerSecond, 2),
          row('idle: watch renewals', '/s', idle.watchRenewalsPerSecond),
          row('idle: CPU of the API server', '% of a core', idle.serverCpuPercent, isFull ? 3 : undefined),
          row('idle: CPU of etcd', '% of a core', idle.etcdCpuPercent),
        ]
      : []),
    ...(restart
      ? [
          row('restart of all agents', 's', restart.seconds, isFull ? 60 : undefined),
          // 6 and one for each Skyhook: that of the measurement, and the one before it
          row('restart: requests per node beside watches', '', restartRequests(restart), 6 + plan.skyhooks + 1),
          row('restart: too many requests (429)', '', restart.tooManyRequests, 0),
        ]
      : []),
  ]
}

const restartRequests = ({ requestsByVerb }: NonNullable<FleetResult['restart']>): number =>
  Number(
    Object.entries(requestsByVerb)
      .filter(([what]) => !what.startsWith('watch '))
      .reduce((sum, [, count]) => sum + count, 0)
      .toFixed(2),
  )

export const isMissed = ({ value, goal }: Row): boolean => goal !== undefined && !(value <= goal)
