/** Skyhooks that are new to their nodes: from applied to complete. */
import type { PackageSpec, SkyhookSpec } from '../src/schemas/skyhook.ts'
import { requestsOf, sizeOfAudit, summaryOf } from './audit.ts'
import { medianFigure, type Measurement } from './figure.ts'
import { medianOf } from './memory.ts'
import {
  electedNode,
  eventFlushMs,
  noopPackage,
  quietNode,
  restartMs,
  rollOut,
  servicePackage,
  watchSlots,
  type SlotEvent,
  type BenchContext,
} from './context.ts'

/** One kind of work and its promises, on one node and on all nodes one by one. */
type BenchWork = {
  readonly what: string
  readonly spec: (bench: BenchContext) => SkyhookSpec
  readonly completeMs: number
  /** Waiting time that is not ours, in ms, for each node; comes on top of `completeMs` and `furtherNodeMs`. */
  readonly baselineMs?: (bench: BenchContext) => Promise<number>
  readonly operator: { readonly complete: string }
}

/** Work with further promises. */
type FleetBenchWork = BenchWork & {
  readonly requests: number
  /** Of a node among others that work one at a time: it waits. */
  readonly requestsInTurn: number
  /** Of each node after the first: handover and work. */
  readonly furtherNodeMs: number
  readonly operator: { readonly complete: string; readonly requests: string; readonly three: string }
}

export const noop: FleetBenchWork = {
  what: 'no-op package',
  spec: noopPackage,
  completeMs: 600,
  requests: 12,
  requestsInTurn: 13,
  furtherNodeMs: 900,
  operator: { complete: '7,300 ms', requests: '135 with its kubelet', three: '10,200 ms, all at once' },
}

export const service: FleetBenchWork = {
  what: 'the same with a service restart',
  spec: servicePackage,
  completeMs: 1_000,
  baselineMs: restartMs,
  requests: 20,
  requestsInTurn: 21,
  furtherNodeMs: 1_500,
  operator: { complete: '19,800 ms', requests: '244 with its kubelet', three: '52,700 ms' },
}

export const independentPackages = (count: number, completeMs: number, operator = ''): BenchWork => ({
  what: `${count} independent packages`,
  spec: (bench) => packages(bench, count, () => ({})),
  completeMs,
  operator: { complete: operator },
})

export const packageChain = (count: number, completeMs: number, operator = ''): BenchWork => ({
  what: `a chain of ${count} packages`,
  spec: (bench) =>
    packages(bench, count, (before, version) => (before === undefined ? {} : { dependsOn: { [before]: version } })),
  completeMs,
  operator: { complete: operator },
})

/** Up to ten no-op packages, each with its own name. */
function packages(
  bench: BenchContext,
  count: number,
  more: (before: string | undefined, version: string) => Partial<PackageSpec>,
): SkyhookSpec {
  const { noop: one } = noopPackage(bench).packages
  const names = ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten'].slice(0, count)
  return {
    packages: Object.fromEntries(
      names.map((name, index) => [name, { ...one, ...more(names[index - 1], one.version) }]),
    ),
  }
}

export const onOneNode = (work: BenchWork | FleetBenchWork): Measurement => ({
  title: `${work.what} on one node, image cached`,
  async run(bench) {
    const { what, spec, completeMs, baselineMs } = work
    const { auditLog, runs } = bench
    const node = quietNode(bench)
    const times: number[] = []
    const requestLists: string[][] = []
    await rollOut(bench, spec(bench), [node]) // fetches the image
    for (let run = 0; run < runs; run++) {
      const from = sizeOfAudit(auditLog)
      const timing = await rollOut(bench, spec(bench), [node])
      times.push(timing.completeMs)
      requestLists.push(
        requestsOf(auditLog, from, node, timing.startedMs, timing.startedMs + timing.completeMs + eventFlushMs),
      )
    }
    const target = completeMs + ((await baselineMs?.(bench)) ?? 0)
    const complete = medianFigure(`${what}: applied → complete`, times, { target, operator: work.operator.complete })
    if (!('requests' in work)) return [complete]
    const typical = requestLists.toSorted((a, b) => a.length - b.length)[Math.floor(requestLists.length / 2)] ?? []
    return [
      complete,
      {
        name: `${what}: API requests, Events included`,
        unit: '',
        target: work.requests,
        measured: medianOf(requestLists.map(({ length }) => length)),
        detail: summaryOf(typical),
        operator: work.operator.requests,
      },
    ]
  },
})

export const onAllNodesSerially = (work: FleetBenchWork): Measurement => ({
  title: `${work.what} on all nodes, one at a time`,
  async run(bench) {
    const { what, spec, completeMs, furtherNodeMs, requestsInTurn, baselineMs, operator } = work
    const { auditLog, nodes, runs } = bench
    const stopping = new AbortController()
    const times: number[] = []
    const handoversMs: number[] = []
    const requestLists: string[][] = []
    const quiet = nodes.filter((node) => node !== electedNode(bench)) // counting is not the work of its node
    const budgeted = { ...spec(bench), interruptionBudget: { count: 1 } }
    await rollOut(bench, budgeted, nodes)
    try {
      const events = await watchSlots(bench, stopping.signal)
      for (let run = 0; run < runs; run++) {
        const eventCount = events.length
        const from = sizeOfAudit(auditLog)
        const timing = await rollOut(bench, budgeted, nodes)
        times.push(timing.completeMs)
        handoversMs.push(...handoverTimes(events.slice(eventCount)))
        const untilMs = timing.startedMs + timing.completeMs + eventFlushMs
        requestLists.push(quiet.flatMap((node) => requestsOf(auditLog, from, node, timing.startedMs, untilMs)))
      }
    } finally {
      stopping.abort()
    }
    const baseline = (await baselineMs?.(bench)) ?? 0
    const target = completeMs + (nodes.length - 1) * furtherNodeMs + nodes.length * baseline
    const typical = requestLists.toSorted((a, b) => a.length - b.length)[Math.floor(requestLists.length / 2)] ?? []
    return [
      medianFigure(`${what}: ${nodes.length} nodes one by one`, times, { target, operator: operator.three }),
      medianFigure(`${what}: slot given back → taken by the next`, handoversMs, { target: 300 }),
      {
        name: `${what}: API requests per node, one by one`,
        unit: '',
        target: requestsInTurn,
        measured: medianOf(requestLists.map(({ length }) => length / quiet.length)),
        detail: `${quiet.length} nodes: ${summaryOf(typical)}`,
      },
    ]
  },
})

/** Times from a release to the next grant. */
function handoverTimes(events: readonly SlotEvent[]): number[] {
  return events.flatMap((event, index) => {
    const before = events[index - 1]
    return event.type === 'ADDED' && before?.type === 'DELETED' ? [event.atMs - before.atMs] : []
  })
}
