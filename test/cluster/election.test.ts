/** The election with its real times and candidates as processes, on a real API server that also crashes. */
import { spawn, type ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test, vi, type TestContext } from 'vitest'
import { readLines } from '../../src/kube/watch.ts'
import type { Lease } from '../../src/lease/slot.ts'
import type { ApiServer } from './api-server.ts'
import { borrowChartCluster } from './shared-cluster.ts'
import { onThisMachine } from '../kit/machine-speed.ts'

const leasePath = (namespace: string): string =>
  `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/skyhookd-census`

type Candidate = {
  readonly namespace: string
  readonly name: string
  readonly process: ChildProcess
  readonly reports: { what: string; why: string; atMs: number }[]
  isGone: boolean
}

let cluster: ApiServer
const candidates: Candidate[] = []

beforeAll(async () => {
  cluster = (await borrowChartCluster()).server
})
afterAll(async () => await cluster?.stop())

async function campaign(namespace: string, name: string): Promise<Candidate> {
  const { tlsRevision: _, ...identity } = await cluster.credentials.current()
  const given = JSON.stringify({ namespace, identity: name, agents: 5, server: cluster.url, ...identity })
  const child = spawn(
    'setpriv',
    ['--pdeathsig', 'KILL', process.execPath, fileURLToPath(new URL('./election-child.ts', import.meta.url))],
    {
      env: { ...process.env, CANDIDATE: given },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const candidate: Candidate = { namespace, name, process: child, reports: [], isGone: false }
  child.on('exit', () => {
    candidate.isGone = true
  })
  void (async () => {
    for await (const line of readLines(child.stdout))
      candidate.reports.push(JSON.parse(line) as Candidate['reports'][number])
  })().catch(() => {})
  candidates.push(candidate)
  await vi.waitFor(() => expect(candidate.reports).not.toEqual([]), { timeout: 10_000, interval: 20 })
  return candidate
}

const isLeading = ({ reports, isGone }: Candidate): boolean => !isGone && reports.at(-1)?.what === 'elected'
const leading = (namespace: string): Candidate[] =>
  candidates.filter((candidate) => candidate.namespace === namespace && isLeading(candidate))
async function leader(namespace: string): Promise<Candidate> {
  await vi.waitFor(() => expect(leading(namespace)).toHaveLength(1), { timeout: 30_000, interval: 20 })
  return leading(namespace)[0] as Candidate
}
/** In a namespace of the test's own; returns the leader. */
const fiveCandidates = async ({ task, onTestFinished }: TestContext): Promise<Candidate> => {
  const namespace = `election-${task.id.replaceAll('_', '-')}`.toLowerCase()
  await cluster.admin.json('POST', '/api/v1/namespaces', { body: { metadata: { name: namespace } } })
  onTestFinished(() => {
    for (const one of candidates) if (one.namespace === namespace) one.process.kill('SIGKILL')
  })
  for (const name of ['a', 'b', 'c', 'd', 'e']) await campaign(namespace, name)
  return await leader(namespace)
}
/** The next leader, and the time until it leads. */
async function takeover(from: Candidate, sinceMs: number): Promise<{ next: Candidate; tookMs: number }> {
  const next = await vi.waitFor(
    () => {
      const others = leading(from.namespace).filter((candidate) => candidate !== from)
      expect(others).toHaveLength(1)
      return others[0] as Candidate
    },
    { timeout: 60_000, interval: 10 },
  )
  return { next, tookMs: (next.reports.at(-1)?.atMs ?? 0) - sinceMs }
}

// Each waits most of the time, for its own Lease.
describe.concurrent('an API server that answers', () => {
  test('another candidate leads within its next look after a SIGTERM of the leader', async (context) => {
    const first = await fiveCandidates(context)
    const startedMs = Date.now()
    first.process.kill('SIGTERM')
    const { tookMs } = await takeover(first, startedMs)
    console.log(`takeover after SIGTERM among five candidates: ${tookMs} ms`)
    expect(tookMs).toBeLessThan(onThisMachine(10_500)) // the longest interval between two looks
    expect(first.reports.at(-1)).toMatchObject({ what: 'lost', why: 'SIGTERM' })
  })

  test('exactly one candidate leads after the lease duration when the leader is killed', async (context) => {
    const first = await fiveCandidates(context)
    await sleep(1_000)
    const startedMs = Date.now()
    first.process.kill('SIGKILL')
    const { next, tookMs } = await takeover(first, startedMs)
    console.log(`takeover after SIGKILL among five candidates: ${tookMs} ms`)
    expect(tookMs).toBeGreaterThan(9_000) // up to 5 s of its 15 s have passed since its last renewal
    expect(tookMs).toBeLessThan(onThisMachine(20_000))
    await sleep(3_000)
    expect(leading(first.namespace)).toEqual([next])
    const lease = await cluster.admin.json<Lease & { spec: { leaseTransitions: number } }>(
      'GET',
      leasePath(first.namespace),
    )
    expect(lease.spec).toMatchObject({ holderIdentity: next.name, leaseTransitions: 1, leaseDurationSeconds: 15 })
  })

  test('a killed leader that restarts under its name leads again at once', async (context) => {
    const first = await fiveCandidates(context)
    first.process.kill('SIGKILL')
    const startedMs = Date.now()
    const again = await campaign(first.namespace, first.name)
    await vi.waitFor(() => expect(isLeading(again)).toBe(true), { timeout: 5_000, interval: 10 })
    console.log(`restarted leader under the same name leads after ${(again.reports.at(-1)?.atMs ?? 0) - startedMs} ms`)
  })

  test('a frozen leader resigns as soon as it wakes', async (context) => {
    const first = await fiveCandidates(context)
    first.process.kill('SIGSTOP')
    const { next } = await takeover(first, Date.now())
    const wokenMs = Date.now()
    first.process.kill('SIGCONT')
    await vi.waitFor(() => expect(first.reports.at(-1)?.what).toBe('lost'), { timeout: 10_000, interval: 10 })
    const tookMs = (first.reports.at(-1)?.atMs ?? 0) - wokenMs
    console.log(`frozen leader resigned ${tookMs} ms after it woke: ${first.reports.at(-1)?.why}`)
    expect(tookMs).toBeLessThan(onThisMachine(1_000))
    await sleep(1_000)
    expect(leading(first.namespace)).toEqual([next])
  })
})

test('the leader stops in time when the API server is away for 20 s, and one candidate leads afterwards', async (context) => {
  const first = await fiveCandidates(context)
  await cluster.crash()
  const awayMs = Date.now()
  await vi.waitFor(() => expect(first.reports.at(-1)?.what).toBe('lost'), { timeout: 20_000, interval: 10 })
  const tookMs = (first.reports.at(-1)?.atMs ?? 0) - awayMs
  expect(tookMs).toBeLessThan(onThisMachine(10_500))
  expect(leading(first.namespace)).toEqual([])
  await sleep(Math.max(0, 20_000 - (Date.now() - awayMs)))
  await cluster.restart()
  const backMs = Date.now()
  await leader(first.namespace)
  console.log(
    `API server away: leader resigned after ${tookMs} ms; API server back: new leader after ${Date.now() - backMs} ms`,
  )
  await sleep(4_000)
  expect(leading(first.namespace)).toHaveLength(1)
})
