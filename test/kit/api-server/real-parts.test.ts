/** Parts of the real agent on the simulated API server, under its faults. */
import { expect, test } from 'vitest'
import { runCensus } from '../../../src/census/census.ts'
import type { CensusLine } from '../../../src/census/model/messages.ts'
import type { KubeObject } from '../../../src/kube/objects.ts'
import { ledgerName, type Scope, skyhookScope } from '../../../src/lease/names.ts'
import { retryTransient } from '../../../src/kube/retry.ts'
import { type Leases, listScope } from '../../../src/lease/slot-reads.ts'
import { isHeldBy, type NodeIdentity, type Slot } from '../../../src/lease/slot.ts'
import { acquire, confirm, type SlotRequest } from '../../../src/lease/slot-acquisition.ts'
import { release, renew } from '../../../src/lease/slots.ts'
import { skyhooksPath, skyhookTypeMeta } from '../../../src/schemas/api.ts'
import { sleep } from '../../../src/schemas/clock.ts'
import { createSeededRandom } from '../virtual-clock.ts'
import { createNode, createPod, merge, namesOf, podsPath, type Sample, sampleServer } from './sample-server.ts'

const progress = { phase: 'working', generation: 1, packages: [] } as const

const lateMs = 400

async function ownSlots(leases: Leases, scope: Scope, node: NodeIdentity): Promise<readonly Slot[]> {
  const options = { clock: leases.clock, random: createSeededRandom(1), maxAttempts: 10 }
  const { slots } = await retryTransient(() => listScope(leases, scope), options)
  return slots.filter((slot) => isHeldBy(slot, node))
}

/** Twenty nodes work once each, at most three at a time; half of the seeds with faults. */
async function raceForSlots(seed: number): Promise<{ readonly most: number; readonly left: readonly string[] }> {
  const { clock, server, admin, connect } = sampleServer(seed)
  const random = createSeededRandom(seed)
  const scope = skyhookScope({ name: 'demo', uid: 'demo-uid' })
  let working = 0
  let most = 0

  const work = async (name: string): Promise<void> => {
    const { metadata } = await createNode(admin, name)
    const node: NodeIdentity = { name, uid: metadata.uid, bootId: name }
    const transport = connect({ name, latencyMs: (chance) => 5 + 20 * chance.number() })
    const leases: Leases = { transport, namespace: 'default', clock }
    const request: SlotRequest = { scope, node, progress, admissionFrom: () => ({ limit: 3 }) }
    const pause = async (): Promise<void> => await sleep(clock, 20 + 200 * random.number())
    const confirmed = async (): Promise<Slot> => {
      for (;;) {
        const acquired = await acquire(leases, request)
        if (acquired.outcome === 'held') {
          const answer = await confirm(leases, acquired.slot, request)
          if (answer.outcome === 'held') return answer.slot
          if (answer.outcome === 'yield') await release(leases, answer.slot, node)
        }
        await pause()
      }
    }
    const slot = await confirmed()
    most = Math.max(most, ++working)
    await pause()
    await renew(leases, slot, node, progress)
    working--
    while ((await release(leases, slot, node)).outcome === 'unknown') await pause()
    await sleep(clock, lateMs) // a creation of ours may still come through
    for (const late of await ownSlots(leases, scope, node))
      while ((await release(leases, late, node)).outcome === 'unknown') await pause()
  }

  const names = Array.from({ length: 20 }, (_, number) => `n${number}`)
  const all = Promise.all(names.map(work))
  if (seed % 2 === 0) {
    const matches = ({ client }: { readonly client: string }): boolean => client !== 'admin'
    server.faults.rules = [
      { name: 'lost answer', fault: { kind: 'lose-answer' }, probability: 0.1, matches },
      { name: 'late commit', fault: { kind: 'commit-late', afterMs: lateMs }, probability: 0.05, matches },
      { name: 'error after commit', fault: { kind: 'fail-after-commit', code: 500 }, probability: 0.05, matches },
      { name: 'overload', fault: { kind: 'refuse', code: 429, retryAfterSeconds: 1 }, probability: 0.05, matches },
    ]
  }
  await clock.advance(60_000)
  await all
  return { most, left: namesOf(server, 'leases') }
}

test('nodes that race for three slots never work more than three at a time, with answers lost and late', async () => {
  const results = []
  for (let seed = 1; seed <= 20; seed++) results.push(await raceForSlots(seed))
  expect(Math.max(...results.map(({ most }) => most))).toBe(3)
  expect(results.flatMap(({ left }) => left)).toEqual([])
})

async function startCensus({ clock, connect }: Sample): Promise<{ lines: CensusLine[]; stop: () => Promise<void> }> {
  const lines: CensusLine[] = []
  const abort = new AbortController()
  const settings = {
    v: 1,
    version: 'test',
    nodeName: 'n1',
    podName: 'agent-n1',
    namespace: 'default',
    agentPodSelector: 'app=cart',
    defaultBudget: {},
  } as const
  const ended = runCensus(
    settings,
    {
      clock,
      random: createSeededRandom(2),
      connectApi: (onRequest) => connect({ name: 'census', onRequest }),
      emit: (line) => void lines.push(line),
    },
    abort.signal,
  )
  await clock.advance(0)
  return {
    lines,
    stop: async () => {
      abort.abort(new Error('the test ends'))
      await clock.advance(10_000)
      await ended
    },
  }
}

test('the real census counts the Nodes of a simulated cluster into status and ledger, also after a restore', async () => {
  const sample = sampleServer()
  const { clock, server, admin } = sample
  for (const name of ['n1', 'n2', 'n3']) await createNode(admin, name)
  await createPod(admin, 'agent-n1')
  const spec = { packages: { tuning: { version: '1.0.0', image: 'registry.example.com/tuning' } } }
  const body = { ...skyhookTypeMeta, metadata: { name: 'demo' }, spec }
  const { metadata } = await admin.json<KubeObject>('POST', skyhooksPath, { body })
  const census = await startCensus(sample)
  await clock.advance(30_000)
  expect(server.object('skyhooks', '', 'demo')).toMatchObject({ status: { completeNodes: '0/3' } })
  expect(server.object('leases', 'default', ledgerName(metadata))).toBeDefined()
  const backup = server.backUp()
  await createNode(admin, 'n4')
  await clock.advance(30_000)
  expect(server.object('skyhooks', '', 'demo')).toMatchObject({ status: { completeNodes: '0/4' } })
  server.restore(backup)
  await admin.json('PATCH', `${podsPath}/agent-n1`, { body: { metadata: { labels: { a: 'b' } } }, contentType: merge })
  await clock.advance(400_000)
  expect(server.object('skyhooks', '', 'demo')).toMatchObject({ status: { completeNodes: '0/3' } })
  await census.stop()
  expect(census.lines.filter((line) => line.kind === 'log' && line.message === 'census: write failed')).toEqual([])
})
