/** Measures one fleet of real agents against a real API server, from nothing to the end of all phases. */
import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { maxNodesWithoutSpread } from '../../src/daemon/state/fleet-size.ts'
import { policiesPath, skyhooksPath, skyhookTypeMeta } from '../../src/schemas/api.ts'
import { defaultTiming } from '../../src/lease/election-rule.ts'
import { skyhookScope } from '../../src/lease/names.ts'
import { statusKey } from '../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import type { Skyhook } from '../../src/schemas/skyhook.ts'
import { startApiServer } from '../../test/cluster/api-server.ts'
import { installChart, namespace, startChartCluster, type ChartCluster } from '../../test/cluster/chart-cluster.ts'
import { medianOf } from '../memory.ts'
import { countsOf, readAuditLog, sizeOf, type AuditedRequest } from './audit-log.ts'
import { handOvers, mostAtOnce, mostSlots } from './budget-check.ts'
import type { WorkerReport, WorkerTask } from './messages.ts'
import {
  aloneLabel,
  compartmentOf,
  limitOf,
  planName,
  policyName,
  policyOf,
  poolLabel,
  specOf,
  turnsOf,
  type FleetPlan,
} from './plan.ts'
import { probeServer } from './probe.ts'
import { processorTimes, serverCosts, type ServerCosts } from './server-costs.ts'
import { createWorkers, type Workers } from './workers.ts'
import type { FleetResult, IdleResult, RestartResult, RolloutResult } from './result.ts'

const agentUser = `system:serviceaccount:${namespace}:skyhookd`
const timeoutMs = 900_000
/** After a phase, for what its end brings about: ledgers, Events, the status. */
const settleMs = 5_000
const alone = 'alone'
const serverProfileSeconds = 20

type Fleet = {
  readonly plan: FleetPlan
  readonly cluster: ChartCluster
  readonly workers: Workers
  readonly say: (text: string) => void
  /** Where profiles of the rollout are written; undefined: nowhere. */
  readonly profileDir: string | undefined
}

/** Throws when a node does not complete, or when the API server says otherwise than the agents. */
export async function measureFleet(
  plan: FleetPlan,
  say: (text: string) => void,
  profileDir?: string,
): Promise<FleetResult> {
  say('starting etcd and an API server')
  const cluster = await startChartCluster(
    await startApiServer({ audited: [agentUser], profiling: profileDir !== undefined }),
  )
  const workers = createWorkers(plan.workers)
  try {
    await installChart(cluster)
    const probeMs = await probeServer(cluster.server.admin)
    say(`a small write takes ${probeMs.toFixed(1)} ms; starting ${plan.nodes} agents in ${plan.workers} processes`)
    const fleet: Fleet = { plan, cluster, workers, say, profileDir }
    const startSeconds = await startAgents(fleet)
    if (plan.nodes > maxNodesWithoutSpread) await untilAgentsAreCounted(fleet)
    say('rolling out on one node alone')
    const aloneSeconds = await rollOutAlone(fleet)
    await sleep(settleMs)
    say(`${aloneSeconds.toFixed(2)} s alone; rolling out on all`)
    const rollout = await profiled(fleet, async () => await rollOut(fleet, aloneSeconds))
    const idle = plan.idleSeconds > 0 ? await stayIdle(fleet) : undefined
    const restart = plan.restart ? await restartAgents(fleet) : undefined
    return {
      name: planName(plan),
      probeMs,
      startSeconds,
      aloneSeconds,
      rollout,
      ...(idle && { idle }),
      ...(restart && { restart }),
    }
  } finally {
    workers.stop()
    await cluster.stop()
  }
}

/** An agent that has just been installed learns within two minutes how many there are (src/lease/election-rule.ts). */
async function untilAgentsAreCounted({ say }: Fleet): Promise<void> {
  say('waiting until each agent knows how many they are')
  await sleep(defaultTiming.secondLookDelayMs)
}

/** Writes CPU profiles of what runs meanwhile, and the log of its requests, where they are asked for. */
async function profiled<T>({ profileDir: dir, cluster, workers }: Fleet, run: () => Promise<T>): Promise<T> {
  if (dir === undefined) return await run()
  await mkdir(dir, { recursive: true })
  await workers.startProfiles()
  const ofServer = profileOfServer(cluster)
  const [result, profile] = await Promise.all([run(), ofServer])
  await workers.writeProfiles(dir)
  await writeFile(join(dir, 'kube-apiserver.pprof'), profile)
  await copyFile(cluster.server.auditLog, join(dir, 'audit.log'))
  return result
}

async function profileOfServer({ server }: ChartCluster): Promise<Uint8Array> {
  const query = { seconds: serverProfileSeconds }
  const timeoutMs = 2 * serverProfileSeconds * 1000 // nothing comes until it is complete
  const chunks: Uint8Array[] = []
  for await (const chunk of await server.admin.stream('/debug/pprof/profile', { query, timeoutMs })) chunks.push(chunk)
  return Buffer.concat(chunks)
}

async function startAgents({ plan, cluster, workers, say }: Fleet): Promise<number> {
  const { url, credentials } = cluster.server
  const { ca = '', cert = '', key = '' } = await credentials.current()
  const startedMs = performance.now()
  const perWorker = Math.ceil(plan.nodes / plan.workers)
  const tasks = Array.from({ length: plan.workers }, (_, index): WorkerTask => {
    const firstNode = index * perWorker
    const nodes = Math.max(0, Math.min(perWorker, plan.nodes - firstNode))
    return { server: url, ca, cert, key, namespace, firstNode, nodes, plan }
  })
  let nextSaid = 100
  await workers.start(tasks, (agents) => {
    if (agents < nextSaid) return
    nextSaid += 100
    say(`${agents} agents`)
  })
  return (performance.now() - startedMs) / 1000
}

const createSkyhook = async ({ cluster }: Fleet, name: string, spec: unknown): Promise<Skyhook> =>
  await cluster.server.admin.json<Skyhook>('POST', skyhooksPath, {
    body: { ...skyhookTypeMeta, metadata: { name }, spec },
  })

async function rollOutAlone(fleet: Fleet): Promise<number> {
  const { plan, workers } = fleet
  await workers.mark([alone], Date.now())
  const createdMs = Date.now()
  await createSkyhook(fleet, alone, specOf({ ...plan, strategy: 'none' }, { [aloneLabel]: 'yes' }))
  const [completedMs = Number.NaN] = await workers.completed(1, timeoutMs, () => undefined)
  return (completedMs - createdMs) / 1000
}

/** What a phase cost: the log's new requests, and what was used between its ends. */
async function during<T>(
  { cluster: { server }, workers }: Fleet,
  phase: () => Promise<T>,
): Promise<{
  readonly result: T
  readonly requests: readonly AuditedRequest[]
  readonly before: ServerCosts
  readonly after: ServerCosts
  readonly reports: readonly WorkerReport[]
  readonly busy: number
}> {
  const [before, busyBefore] = [await serverCosts(server), await processorTimes()]
  const [fromByte, sinceMs] = [await sizeOf(server.auditLog), Date.now()]
  const result = await phase()
  const [after, busyAfter] = [await serverCosts(server), await processorTimes()]
  const reports = await workers.report()
  const requests = await readAuditLog(server.auditLog, { fromByte, toByte: await sizeOf(server.auditLog), sinceMs })
  const busy = (busyAfter.busy - busyBefore.busy) / (busyAfter.all - busyBefore.all)
  return { result, requests, before, after, reports, busy }
}

const perNodeOf = (requests: readonly AuditedRequest[], nodes: number): Record<string, number> =>
  Object.fromEntries([...countsOf(requests)].map(([what, count]) => [what, rounded(count / nodes, 3)]))

const withCode = (requests: readonly AuditedRequest[], wanted: number): number =>
  requests.filter(({ code }) => code === wanted).length

export const rounded = (value: number, digits: number): number => Number(value.toFixed(digits))
const sum = (values: readonly number[]): number => values.reduce((total, one) => total + one, 0)

async function rollOut(fleet: Fleet, aloneSeconds: number): Promise<RolloutResult> {
  const { plan, workers, say } = fleet
  const { nodes } = plan
  const limit = limitOf(plan)
  const names = Array.from({ length: plan.skyhooks }, (_, at) => (plan.skyhooks === 1 ? 'fleet' : `fleet-${at}`))
  const created: Skyhook[] = []
  const policy = policyOf(plan)
  if (policy !== undefined)
    await fleet.cluster.server.admin.json('POST', policiesPath, {
      body: { ...skyhookTypeMeta, kind: 'DeploymentPolicy', metadata: { name: policyName }, spec: policy },
    })
  const cpuBefore = sum((await workers.report()).map(({ cpuMs }) => cpuMs))
  const { result, requests, before, after, reports, busy } = await during(fleet, async () => {
    await workers.mark(names, Date.now())
    const startMs = Date.now()
    for (const name of names) created.push(await createSkyhook(fleet, name, specOf(plan, { [poolLabel]: 'all' })))
    let nextSaid = nodes / 4
    const times = await workers.completed(nodes, timeoutMs, (complete) => {
      if (complete < nextSaid) return
      nextSaid += nodes / 4
      say(`${complete} nodes are complete`)
    })
    const statusMs = await untilStatusComplete(fleet, names)
    await sleep(settleMs)
    return { times: times.map((atMs) => (atMs - startMs) / 1000), statusSeconds: (statusMs - startMs) / 1000 }
  })
  await confirmComplete(fleet, names)
  const { times, statusSeconds } = result
  const makespan = times.at(-1) ?? Number.NaN
  const ideal = aloneSeconds * turnsOf(plan) * plan.skyhooks
  const scopes = created.map(({ metadata }) => skyhookScope(metadata, compartmentOf(plan)).namePrefix)
  const slotsHeld = scopes.map((scope) => mostSlots(requests, scope))
  const hostsOut = mostAtOnce(reports.flatMap(({ outs }) => outs))
  const taken =
    limit === undefined || plan.strategy !== 'none' // a slot goes back with its batch
      ? []
      : scopes.flatMap((scope) => handOvers(requests, scope, limit))
  const silent = reports.flatMap(({ silentMs }) => silentMs)
  return {
    seconds: {
      makespan: rounded(makespan, 2),
      ideal: rounded(ideal, 2),
      firstNode: rounded(times[0] ?? Number.NaN, 2),
      medianNode: rounded(medianOf(times), 2),
      status: rounded(statusSeconds, 2),
    },
    requestsPerNode: rounded(requests.length / nodes, 2),
    requestsByVerb: perNodeOf(requests, nodes),
    conflicts: withCode(requests, 409),
    tooManyRequests: withCode(requests, 429),
    watchEventsPerNode: rounded(sum(reports.map(({ watchEvents }) => watchEvents)) / nodes, 1),
    watchKiBPerNode: rounded(sum(reports.map(({ watchBytes }) => watchBytes)) / nodes / 1024, 1),
    etcdKiBPerNode: rounded((after.walBytes - before.walBytes) / nodes / 1024, 1),
    serverCpuSeconds: rounded(after.serverCpuSeconds - before.serverCpuSeconds, 2),
    etcdCpuSeconds: rounded(after.etcdCpuSeconds - before.etcdCpuSeconds, 2),
    agentCpuMsPerNode: rounded((sum(reports.map(({ cpuMs }) => cpuMs)) - cpuBefore) / nodes, 1),
    serverRssMiB: Math.round(after.serverRssMiB),
    agentRssMiB: rounded(sum(reports.map(({ rssMiB }) => rssMiB)) / nodes, 1),
    machineBusy: rounded(busy, 2),
    ...(limit !== undefined && {
      budget: {
        limit,
        mostSlots: Math.max(...slotsHeld),
        mostHostsOut: hostsOut,
        violations: slotsHeld.filter((held) => held > limit).length + (hostsOut > limit * plan.skyhooks ? 1 : 0),
      },
    }),
    ...(taken.length > 0 && {
      handOverMs: { median: Math.round(medianOf(taken)), worst: Math.round(Math.max(...taken)) },
    }),
    longestSilentMs: Math.round(Math.max(...silent)),
    warnings: warningsOf(reports),
  }
}

/** Resolves with the time at which the status of all said complete. */
async function untilStatusComplete({ cluster }: Fleet, names: readonly string[]): Promise<number> {
  const deadline = Date.now() + timeoutMs
  for (const name of names)
    for (;;) {
      const { status } = await cluster.server.admin.json<Skyhook>('GET', `${skyhooksPath}/${name}`)
      if ((status as { readonly status?: string } | undefined)?.status === 'complete') break
      if (Date.now() > deadline) throw new Error(`the status of ${name} is not complete`)
      await sleep(100)
    }
  return Date.now()
}

/** The API server has the last word: each Node says complete. */
async function confirmComplete({ plan, cluster }: Fleet, names: readonly string[]): Promise<void> {
  const { items } = await cluster.server.admin.json<{ readonly items: readonly KubernetesNode[] }>(
    'GET',
    '/api/v1/nodes',
  )
  for (const name of names) {
    const complete = items.filter(({ metadata }) => metadata.annotations?.[statusKey(name)] === 'complete').length
    if (complete !== plan.nodes) throw new Error(`${complete} of ${plan.nodes} Nodes say that ${name} is complete`)
  }
}

function warningsOf(reports: readonly WorkerReport[]): Record<string, number> {
  const all = new Map<string, number>()
  for (const { warnings } of reports)
    for (const [message, count] of Object.entries(warnings)) all.set(message, (all.get(message) ?? 0) + count)
  return Object.fromEntries([...all].sort(([, x], [, y]) => y - x).slice(0, 10))
}

async function stayIdle(fleet: Fleet): Promise<IdleResult> {
  const { plan, workers, say } = fleet
  say(`idle for ${plan.idleSeconds} s`)
  const { requests, before, after } = await during(fleet, async () => {
    await workers.mark([], Date.now())
    await sleep(plan.idleSeconds * 1000)
  })
  const seconds = (after.atMs - before.atMs) / 1000
  const renewals = requests.filter(({ verb }) => verb === 'watch').length
  return {
    seconds: plan.idleSeconds,
    requestsPerSecond: rounded((requests.length - renewals) / seconds, 2),
    watchRenewalsPerSecond: rounded(renewals / seconds, 2),
    serverCpuPercent: rounded((100 * (after.serverCpuSeconds - before.serverCpuSeconds)) / seconds, 1),
    etcdCpuPercent: rounded((100 * (after.etcdCpuSeconds - before.etcdCpuSeconds)) / seconds, 1),
    etcdBytesPerSecond: Math.round((after.walBytes - before.walBytes) / seconds),
  }
}

async function restartAgents(fleet: Fleet): Promise<RestartResult> {
  const { plan, workers, say } = fleet
  say('killing all agents and starting them again')
  const { result, requests, before, after, reports } = await during(fleet, async () => {
    await workers.mark([], Date.now())
    const startedMs = performance.now()
    await workers.restart()
    return (performance.now() - startedMs) / 1000
  })
  return {
    seconds: rounded(result, 2),
    requestsPerNode: rounded(requests.length / plan.nodes, 2),
    requestsByVerb: perNodeOf(requests, plan.nodes),
    tooManyRequests: withCode(requests, 429),
    serverCpuSeconds: rounded(after.serverCpuSeconds - before.serverCpuSeconds, 2),
    warnings: warningsOf(reports),
  }
}
