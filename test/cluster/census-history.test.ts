/**
 * Watches record every version of every Node and Skyhook while agents work, people interfere and the census is killed:
 * `Ready` is never true for a spec for which a selected node still has work.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { systemClock, systemRandom } from '../../src/daemon/platform/system-clock.ts'
import { conditionOf, type SkyhookStatus } from '../../src/census/model/skyhook-status.ts'
import type { KubeObject } from '../../src/kube/objects.ts'
import { startReflector } from '../../src/kube/reflector.ts'
import { ledgerName } from '../../src/lease/names.ts'
import { readLedger } from '../../src/lease/ledger.ts'
import type { Lease } from '../../src/lease/slot.ts'
import * as keys from '../../src/schemas/annotations.ts'
import type { Skyhook, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { appliedHash } from '../../src/stages/model/package-inputs.ts'
import { leasesPath, skyhooksPath, startCensusCluster, type CensusCluster } from './census-cluster.ts'
import { borrowChartCluster } from './shared-cluster.ts'
import { onThisMachine } from '../kit/machine-speed.ts'

const skyhookName = 'rollout'
const seed = Number(process.env['SEED'] ?? 7)
const durationMs = 40_000

let cluster: CensusCluster
beforeAll(async () => {
  cluster = await startCensusCluster(await borrowChartCluster())
})
afterAll(async () => await cluster?.stop())

type ObservedNode = {
  readonly atMs: number
  readonly version: bigint
  readonly kind: 'Node' | 'Skyhook'
  readonly name: string
  readonly object?: Skyhook & KubeObject
}

/** Starts to record, with the clock of the simulated agents and the order of the server's store. */
async function record(signal: AbortSignal): Promise<ObservedNode[]> {
  const seen: ObservedNode[] = []
  const follow = (kind: ObservedNode['kind'], path: string) =>
    startReflector<Skyhook & KubeObject>(cluster.admin, {
      clock: systemClock,
      random: systemRandom,
      path,
      onChange({ changes }) {
        for (const { type, key, object } of changes) {
          const version = BigInt(object.metadata.resourceVersion)
          seen.push({
            atMs: performance.now(),
            version,
            kind,
            name: key,
            ...(type !== 'deleted' && { object: structuredClone(object) }),
          })
        }
      },
      signal,
    })
  await Promise.all([follow('Node', '/api/v1/nodes').synced, follow('Skyhook', skyhooksPath).synced])
  return seen
}

/** A simulated agent, reduced to what matters here: it has work from its decision until it has published completion. */
function simulateAgent(name: string, random: () => number, skyhook: () => Skyhook | undefined, signal: AbortSignal) {
  const busy: { fromMs: number; toMs: number }[] = []
  const between = async (from: number, to: number): Promise<void> => await sleep(from + random() * (to - from))
  let done: string | undefined
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      await (random() < 0.2 ? between(500, 2_000) : between(5, 60)) // large fleets delay their look on purpose
      const spec = skyhook()?.spec
      if (spec === undefined || appliedHash(spec) === done) continue
      const work = { fromMs: performance.now(), toMs: Infinity }
      busy.push(work)
      done = undefined
      await (random() < 0.3 ? between(100, 500) : between(0, 40)) // a loaded API server
      await cluster.publish(name, skyhookName, { status: 'in_progress', entries: { tuning: 'apply/in_progress' } })
      await between(20, 300)
      const after = skyhook()?.spec ?? spec
      if (appliedHash(after) === appliedHash(spec)) {
        done = appliedHash(spec)
        await cluster.publish(name, skyhookName, {
          status: 'complete',
          entries: { tuning: 'config/complete' },
          applied: spec,
        })
      }
      work.toMs = performance.now()
    }
  }
  const ended = run().catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
  return {
    busy,
    ended,
    reset() {
      done = undefined
    },
  }
}

/** Which nodes have work left according to the record up to a version. */
function unfinished(skyhook: Skyhook, nodes: ReadonlyMap<string, ObservedNode>): ObservedNode[] {
  const hash = appliedHash(skyhook.spec)
  return [...nodes.values()].filter(({ object }) => {
    if (object?.metadata.labels?.['pool'] !== 'all') return false
    const {
      [keys.statusKey(skyhookName)]: status,
      [keys.journalKey(skyhookName)]: companion,
      [keys.nodeStateKey(skyhookName)]: state,
    } = object.metadata.annotations ?? {}
    const applied = companion === undefined ? undefined : (JSON.parse(companion) as { applied?: string }).applied
    return status !== 'complete' || applied !== hash || state === undefined
  })
}

test('the Ready condition of a Skyhook is true only while every selected node is complete', async () => {
  let state = seed
  const random = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
  const stop = new AbortController()
  const specAt = (version: string, more: SkyhookSpec = {}): SkyhookSpec => ({
    packages: { tuning: { version, image: 'registry.example.com/tuning' } },
    nodeSelectors: { matchLabels: { pool: 'all' } },
    ...more,
  })
  const agents = new Map<string, ReturnType<typeof simulateAgent>>()
  const stops = new Map<string, AbortController>()
  let skyhook: Skyhook | undefined
  const addNode = async (name: string): Promise<void> => {
    await cluster.createNode(name, { pool: 'all' })
    const ended = new AbortController()
    stops.set(name, ended)
    agents.set(
      name,
      simulateAgent(name, random, () => skyhook, AbortSignal.any([stop.signal, ended.signal])),
    )
  }
  for (let at = 1; at <= 6; at++) await addNode(`n${at}`)
  const seen = await record(stop.signal)
  const census = await cluster.census('n1')
  skyhook = await cluster.apply(skyhookName, specAt('1.0.0'))
  const edit = async (spec: SkyhookSpec): Promise<void> => {
    skyhook = await cluster.edit(skyhookName, { spec: { interruptionBudget: null, ...spec } })
  }

  let kills = 0
  let version = 0
  let killAtMs = performance.now() + 3_000
  const endMs = performance.now() + durationMs
  while (performance.now() < endMs) {
    await sleep(300 + random() * 1_800)
    const draw = random()
    if (performance.now() > killAtMs) {
      census.kill()
      kills++
      killAtMs = performance.now() + 4_000 + random() * 2_000
    }
    if (draw < 0.3) await edit(specAt(`1.0.${++version}`))
    else if (draw < 0.45) {
      const before = skyhook.spec
      await edit(specAt(`1.0.${++version}`))
      await sleep(random() * 150)
      await edit(before) // A → B → A
    } else if (draw < 0.55) await edit({ ...skyhook.spec, interruptionBudget: { count: 1 + Math.floor(random() * 5) } })
    else if (draw < 0.7) {
      const name = `n${1 + Math.floor(random() * 6)}`
      await cluster.label(name, { pool: 'none' })
      await sleep(random() * 500)
      await cluster.label(name, { pool: 'all' })
    } else if (draw < 0.8) {
      const name = `n${1 + Math.floor(random() * 6)}`
      await cluster.annotate(name, { [keys.nodeStateKey(skyhookName)]: null }) // a reset by an administrator
      agents.get(name)?.reset()
    } else if (draw < 0.9 && !agents.has('late')) await addNode('late')
    else if (agents.has('late')) {
      stops.get('late')?.abort(new Error('the node is removed'))
      await agents.get('late')?.ended
      agents.delete('late')
      await cluster.deleteNode('late')
    }
  }

  // Then the load ends: every node completes, and the test measures how long Ready takes.
  await vi.waitFor(async () => expect(conditionOf(await cluster.status(skyhookName), 'Ready')?.status).toBe('True'), {
    timeout: 20_000,
    interval: 50,
  })
  await edit(specAt('2.0.0'))
  await cluster.cluster.server.kubectl('wait', '--for=condition=Ready', `skyhook/${skyhookName}`, '--timeout=30s')
  const waitedMs = performance.now()
  const lastDoneMs = Math.max(...[...agents.values()].map(({ busy }) => busy.at(-1)?.toMs ?? 0))
  await sleep(500)
  stop.abort(new Error('the test is over'))
  await Promise.all([...agents.values()].map(({ ended }) => ended))

  const lies: string[] = []
  const slow: string[] = []
  const nodes = new Map<string, ObservedNode>()
  let shown: Skyhook | undefined
  let readyTimes = 0
  const isShownReady = (): boolean => {
    const ready = conditionOf(shown?.status as SkyhookStatus | undefined, 'Ready')
    return ready?.status === 'True' && ready.observedGeneration === shown?.metadata.generation
  }
  for (const event of seen.toSorted((a, b) => (a.version < b.version ? -1 : 1))) {
    if (event.kind === 'Skyhook') shown = event.object
    else if (event.object === undefined) nodes.delete(event.name)
    else nodes.set(event.name, event)
    if (shown === undefined || !isShownReady()) continue
    const left = unfinished(shown, nodes)
    if (event.kind === 'Skyhook') {
      readyTimes++
      // The census learns within a moment what a node has published; nothing can know what it has not published yet.
      const older = left.filter(({ atMs }) => event.atMs - atMs > 250)
      lies.push(
        ...older.map(
          ({ name }) =>
            `Ready at ${event.version} although ${name} had published at ${Math.round(event.atMs)} ms that it is ` +
            `not complete`,
        ),
      )
      for (const [name, { busy }] of agents) {
        const unpublished = busy.filter(({ fromMs, toMs }) => fromMs < event.atMs - 30 && toMs > event.atMs + 5)
        const isSelected = nodes.get(name)?.object?.metadata.labels?.['pool'] === 'all'
        if (isSelected) lies.push(...unpublished.map(() => `Ready at ${event.version} while ${name} was working`))
      }
    } else
      slow.push(
        ...left.filter(({ atMs }) => event.atMs - atMs > 4_000).map(({ name }) => `${name} at ${event.version}`),
      )
  }
  const ledger = readLedger(await cluster.admin.json<Lease>('GET', `${leasesPath}/${ledgerName(skyhook.metadata)}`))
  console.log(
    `recorded ${seen.length} versions, ${readyTimes} of them Ready, over ${kills} kills; last node done → Ready: ` +
      `${Math.round(waitedMs - lastDoneMs)} ms`,
  )
  expect(lies).toEqual([])
  expect(slow).toEqual([])
  expect(readyTimes).toBeGreaterThan(3)
  expect(kills).toBeGreaterThan(4)
  expect(census.deaths).toHaveLength(kills)
  expect(waitedMs - lastDoneMs).toBeLessThan(onThisMachine(1_500))
  expect(await cluster.status(skyhookName)).toMatchObject({
    status: 'complete',
    completeNodes: agents.has('late') ? '7/7' : '6/6',
  })
  expect(ledger).toMatchObject({
    outcome: 'read',
    ledger: { generation: (await cluster.get(skyhookName)).metadata.generation },
  })
})
