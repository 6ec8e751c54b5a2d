/** What the agent promises to cost, one entry each: how it is measured and what it may come to. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { SkyhookSpec } from '../src/schemas/skyhook.ts'
import { paths } from '../test/e2e/kube.ts'
import { manifest } from '../test/e2e/skyhooks.ts'
import { requestsOf, sizeOfAudit, summaryOf } from './audit.ts'
import { medianOf, parseRollup, type Memory } from './memory.ts'
import {
  aftermathMs,
  noopPackage,
  quietNode,
  restartMs,
  rollOut,
  servicePackage,
  watchSlots,
  type SlotEvent,
  type Workbench,
} from './workbench.ts'

export type Figure = {
  readonly name: string
  readonly unit: string
  readonly promise: number
  readonly measured: number
  /** All samples, or what the figure is made of. */
  readonly detail: string
  /** The original operator, on real kubelets in its best case. */
  readonly original?: string
}

export type Measurement = { readonly title: string; readonly run: (bench: Workbench) => Promise<Figure[]> }

const settleMs = 10_000
const idleSkyhooks = 50
const touchesPerSecond = 5
const one = (value: number): string => value.toFixed(0)

async function memoryOfAgents({ box, nodes }: Workbench): Promise<Memory[]> {
  const script = "cat /proc/$(pgrep -f '^/usr/bin/node .*skyhookd.cjs agent$')/smaps_rollup"
  return await Promise.all(nodes.map(async (node) => parseRollup(await box.must(['exec', node, '--', 'sh', '-c', script]))))
}

/** The largest of the agents; the median would hide one that grows. */
function memoryFigures(what: string, memories: readonly Memory[]): Figure[] {
  const figure = (key: keyof Memory, kind: string, promise: number): Figure => ({
    name: `${what}, ${kind}`,
    unit: 'MiB',
    promise,
    measured: Math.max(...memories.map((memory) => memory[key])),
    detail: `per node ${memories.map((memory) => memory[key].toFixed(1)).join(' ')}`,
  })
  return [figure('rssMiB', 'RSS', 75), figure('privateMiB', 'private', 30)]
}

const idle: Measurement = {
  title: `memory of the agents, idle for ${settleMs / 1000} s`,
  async run(bench) {
    await sleep(settleMs)
    return memoryFigures('idle agent', await memoryOfAgents(bench))
  },
}

/** Skyhooks that select nobody, and someone who writes annotations on them all the time. */
const crowded: Measurement = {
  title: `memory with ${idleSkyhooks} Skyhooks and ${touchesPerSecond} changes of them a second`,
  async run(bench) {
    const { api } = bench
    const names = Array.from({ length: idleSkyhooks }, (_, index) => `bench-idle-${index}`)
    try {
      for (const name of names) await api.json('POST', paths.skyhooks, { body: manifest(name, noopPackage(bench)) })
      for (let touch = 0; touch < (settleMs / 1000) * touchesPerSecond; touch++) {
        const name = names[touch % names.length]
        const body = { metadata: { annotations: { 'example.com/touched': String(touch) } } }
        await api.json('PATCH', `${paths.skyhooks}/${name}`, { body, contentType: 'application/merge-patch+json' })
        await sleep(1000 / touchesPerSecond)
      }
      return memoryFigures(`agent among ${idleSkyhooks} Skyhooks`, await memoryOfAgents(bench))
    } finally {
      for (const name of names) await api.json('DELETE', `${paths.skyhooks}/${name}`).catch(() => undefined)
    }
  },
}

const start: Measurement = {
  title: 'start of the agent, again and again',
  async run({ box, history, nodes, runs }) {
    const node = nodes[0] ?? ''
    const samples: number[] = []
    for (let run = 0; run < runs; run++) {
      const pod = [...history.now.pods.values()].find(
        ({ metadata, spec }) => metadata.namespace === 'skyhook' && spec?.nodeName === node && metadata.deletionTimestamp === undefined,
      )
      await box.kubectl(['delete', 'pod', '-n', 'skyhook', pod?.metadata.name ?? '', '--wait=true'])
      await box.kubectl(['rollout', 'status', 'daemonset/skyhookd', '-n', 'skyhook', '--timeout=60s'])
      const synced = /"sinceStartMs":(\d+)[^\n]*"synced"/.exec(await box.must(['logs', node]))
      if (synced) samples.push(Number(synced[1]))
      await sleep(1_000)
    }
    return [
      {
        name: 'process start → synced',
        unit: 'ms',
        promise: 150,
        measured: medianOf(samples),
        detail: `median of ${samples.map(one).join(' ')}`,
      },
    ]
  },
}

/** One kind of work and what it promises, on one node and on all of them one by one. */
type Work = {
  readonly what: string
  readonly spec: (bench: Workbench) => SkyhookSpec
  readonly completeMs: number
  /** What the work waits for and is not ours, in ms; on top of `completeMs`, and of `threeMs` for each node. */
  readonly own?: (bench: Workbench) => Promise<number>
  readonly requests: number
  /** For all three nodes of the sandbox. */
  readonly threeMs: number
  readonly original: { readonly complete: string; readonly requests: string; readonly three: string }
}

const noop: Work = {
  what: 'no-op package',
  spec: noopPackage,
  completeMs: 600,
  requests: 12,
  threeMs: 2_400, // the first node's time, and hand-over and work of each further one
  original: { complete: '7,300 ms', requests: '135 with its kubelet', three: '10,200 ms, all at once' },
}

const service: Work = {
  what: 'the same with a service restart',
  spec: servicePackage,
  completeMs: 1_000,
  own: restartMs,
  requests: 20,
  threeMs: 4_000,
  original: { complete: '19,800 ms', requests: '244 with its kubelet', three: '52,700 ms' },
}

const onOneNode = ({ what, spec, completeMs, own, requests, original }: Work): Measurement => ({
  title: `${what} on one node, image cached`,
  async run(bench) {
    const { auditLog, runs } = bench
    const node = quietNode(bench)
    const times: number[] = []
    const asked: string[][] = []
    await rollOut(bench, spec(bench), [node]) // fetches the image
    for (let run = 0; run < runs; run++) {
      const from = sizeOfAudit(auditLog)
      const timed = await rollOut(bench, spec(bench), [node])
      times.push(timed.completeMs)
      asked.push(requestsOf(auditLog, from, node, timed.startedMs, timed.startedMs + timed.completeMs + aftermathMs))
    }
    const typical = asked.toSorted((a, b) => a.length - b.length)[Math.floor(asked.length / 2)] ?? []
    return [
      {
        name: `${what}: applied → complete`,
        unit: 'ms',
        promise: completeMs + ((await own?.(bench)) ?? 0),
        measured: medianOf(times),
        detail: `median of ${times.map(one).join(' ')}`,
        original: original.complete,
      },
      {
        name: `${what}: API requests, Events included`,
        unit: '',
        promise: requests,
        measured: medianOf(asked.map(({ length }) => length)),
        detail: summaryOf(typical),
        original: original.requests,
      },
    ]
  },
})

const oneByOne = ({ what, spec, threeMs, own, original }: Work): Measurement => ({
  title: `${what} on all nodes, one at a time`,
  async run(bench) {
    const { nodes, runs } = bench
    const stopping = new AbortController()
    const times: number[] = []
    const handOvers: number[] = []
    const budgeted = { ...spec(bench), interruptionBudget: { count: 1 } }
    await rollOut(bench, budgeted, nodes)
    try {
      const events = await watchSlots(bench, stopping.signal)
      for (let run = 0; run < runs; run++) {
        const seen = events.length
        times.push((await rollOut(bench, budgeted, nodes)).completeMs)
        handOvers.push(...gaps(events.slice(seen)))
      }
    } finally {
      stopping.abort()
    }
    return [
      {
        name: `${what}: ${nodes.length} nodes one by one`,
        unit: 'ms',
        promise: threeMs + nodes.length * ((await own?.(bench)) ?? 0),
        measured: medianOf(times),
        detail: `median of ${times.map(one).join(' ')}`,
        original: original.three,
      },
      {
        name: `${what}: slot given back → taken by the next`,
        unit: 'ms',
        promise: 300,
        measured: medianOf(handOvers),
        detail: `median of ${handOvers.map(one).join(' ')}`,
      },
    ]
  },
})

/** Times between a release and the next grant. */
function gaps(events: readonly SlotEvent[]): number[] {
  return events.flatMap((event, index) => {
    const before = events[index - 1]
    return event.type === 'ADDED' && before?.type === 'DELETED' ? [event.atMs - before.atMs] : []
  })
}

export const measurements: readonly Measurement[] = [
  idle,
  crowded,
  start,
  onOneNode(noop),
  oneByOne(noop),
  onOneNode(service),
  oneByOne(service),
]
