/**
 * What waiting costs, and how soon a freed slot is taken. Requests travel 5 ms in each direction, and so do events of
 * watches.
 */
import { expect, test } from 'vitest'
import { lineLength } from '../../../src/lease/waiting.ts'
import { usualLatencyMs, observeHandOvers, observeIdleSlots, startWaitingNodes } from './waiting-nodes.ts'

/** One event to the node, a LIST there and back, a CREATE there. */
const apiTimeMs = 2 * usualLatencyMs
const atQuantile = (sorted: readonly number[], quantile: number): number =>
  sorted[Math.floor(sorted.length * quantile)] ?? 0
const aboutMs = (meanMs: number) => (random: () => number) => meanMs * (0.7 + 0.6 * random())

const nodes = 400
/** Those that one slot is handed to, one after another. */
const queue = 290

test('waiting of four hundred nodes for forty slots costs few requests', async () => {
  const budget = { count: nodes / 10 }
  const fleet = await startWaitingNodes({ nodes, budget, workMs: aboutMs(30_000), seed: 1 })
  await fleet.untilComplete(3_600_000)
  const figures = fleet.figures()
  console.log(`${nodes} nodes, ${budget.count} slots, per node:`, figures)
  fleet.stop()
  expect(figures.lists).toBeLessThanOrEqual(1.4)
  expect(figures.gets).toBeLessThanOrEqual(7)
  expect(figures.watchEvents).toBeLessThanOrEqual(100)
  expect(figures.waitingWrites).toBeLessThanOrEqual(3)
  expect(figures.seconds).toBeLessThan(1.1 * 300) // the slots are hardly ever idle
})

test('a slot goes to the next waiting node within 50 ms beside the API server', async () => {
  const fleet = await startWaitingNodes({ nodes: queue, budget: { count: 1 }, workMs: aboutMs(1_000), seed: 1 })
  const handOvers = observeHandOvers(fleet.server, () => fleet.clock.monotonicMs())
  await fleet.untilComplete(3_600_000)
  fleet.stop()
  const beside = handOvers.map((ms) => ms - apiTimeMs).toSorted((a, b) => a - b)
  const [median, p99] = [atQuantile(beside, 0.5), atQuantile(beside, 0.99)]
  console.log(
    `${queue} nodes, 1 slot, hand-over beside the API server: ${median.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`,
  )
  expect(beside.length).toBe(queue - 1)
  expect(median).toBeLessThanOrEqual(50)
  expect(p99).toBeLessThanOrEqual(400)
})

test('fifteen nodes wait with one LIST each and one for their slot', async () => {
  const fleet = await startWaitingNodes({ nodes: 15, budget: { count: 3 }, workMs: aboutMs(5_000), seed: 1 })
  await fleet.untilComplete(600_000)
  const figures = fleet.figures()
  console.log('15 nodes, 3 slots, per node:', figures)
  fleet.stop()
  expect(figures.lists).toBeLessThanOrEqual(3)
  expect(figures.watches).toBeLessThanOrEqual(1)
})

/** Some nodes are drained at once, others wait for pods that nobody may evict. */
const soonOrLateMs = (random: () => number): number => (random() < 0.6 ? 10_000 : 240_000)
/** Nobody gets ready for a while, then everybody is quick. */
const stalledMs = (random: () => number): number => (random() < 0.1 ? 600_000 : 3_000)

test.each([
  { nodes: 50, count: 10, some: 'many nodes take long', workMs: soonOrLateMs, seed: 1 },
  { nodes: 50, count: 10, some: 'many nodes take long', workMs: soonOrLateMs, seed: 2 },
  { nodes: 100, count: 3, some: 'few nodes take very long', workMs: stalledMs, seed: 1 },
])('none of $count slots is idle for a second while others of $nodes wait and $some (seed $seed)', async (fleetOf) => {
  const { nodes, count, workMs, seed } = fleetOf
  const fleet = await startWaitingNodes({ nodes, budget: { count }, workMs, seed })
  await fleet.clock.advance(10_000)
  const longestIdleMs = observeIdleSlots(fleet, count)
  await fleet.untilComplete(20_000_000)
  const figures = fleet.figures()
  fleet.stop()
  console.log(`${nodes} nodes, ${count} slots, idle for at most ${longestIdleMs().toFixed(0)} ms, per node:`, figures)
  expect(longestIdleMs()).toBeLessThan(1_000)
  expect(figures.lists).toBeLessThan(2) // not by polling
})

test('slots that those who come first cannot take go to others soon', async () => {
  const fleet = await startWaitingNodes({
    nodes: 100,
    budget: { count: 3 },
    workMs: aboutMs(5_000),
    unable: 15,
    seed: 1,
  })
  const longestIdleMs = observeIdleSlots(fleet, 3)
  await fleet.untilComplete(3_600_000)
  const { seconds } = fleet.figures()
  fleet.stop()
  console.log(`15 of 100 nodes cannot ask, 3 slots: idle for at most ${longestIdleMs().toFixed(0)} ms, ${seconds} s`)
  expect(longestIdleMs()).toBeLessThan(10_000)
  expect(seconds).toBeLessThan(3 * (85 / 3) * 5)
})

test('hundreds of nodes begin within seconds where there are slots for all of them', async () => {
  const fleet = await startWaitingNodes({ nodes: 1_000, budget: { count: 800 }, workMs: aboutMs(600_000), seed: 1 })
  await fleet.clock.advance(15_000)
  const [slots, { lists }] = [fleet.slots(), fleet.figures()]
  fleet.stop()
  console.log(`1000 nodes, 800 slots: ${slots} are held after 15 s, ${lists.toFixed(2)} LISTs per node`)
  expect(slots).toBe(800)
})

test('two hundred nodes that join at once see few events each', async () => {
  const fleet = await startWaitingNodes({
    nodes: 200,
    budget: { count: 1 },
    workMs: aboutMs(30_000),
    joining: 20,
    seed: 1,
  })
  await fleet.untilComplete(3_600_000)
  const figures = fleet.figures()
  fleet.stop()
  console.log('200 joining nodes, 20 slots, per node:', figures)
  expect(figures.watchEvents).toBeLessThan(600)
  expect(figures.seconds).toBeLessThan(1.2 * 300)
})

test('a fleet without a census still gets through', async () => {
  const fleet = await startWaitingNodes({
    nodes: 200,
    budget: { count: 2 },
    workMs: aboutMs(1_000),
    seed: 3,
    isWithoutCensus: true,
  })
  await fleet.untilComplete(7_200_000)
  const figures = fleet.figures()
  console.log('200 nodes, 2 slots, no census, per node:', figures)
  fleet.stop()
  expect(figures.seconds).toBeLessThan(2 * 100)
})

test('a raised budget is used at once', async () => {
  const fleet = await startWaitingNodes({ nodes: 300, budget: { count: 2 }, workMs: aboutMs(60_000), seed: 1 })
  await fleet.clock.advance(30_000)
  expect(fleet.slots()).toBe(2)
  await fleet.editBudget({ count: 50 })
  await fleet.clock.advance(3_000)
  expect(fleet.slots()).toBe(50)
  fleet.stop()
})

test('a percentage of more nodes is used soon', async () => {
  const fleet = await startWaitingNodes({ nodes: 30, budget: { percent: 10 }, workMs: aboutMs(600_000), seed: 1 })
  await fleet.clock.advance(30_000)
  expect(fleet.slots()).toBe(3)
  fleet.setMatched(60)
  await fleet.clock.advance(33_000) // the census believes in an increase after 30 s
  expect(fleet.slots()).toBe(6)
  fleet.stop()
})

test('nodes without a budget start at once and list nothing', async () => {
  const fleet = await startWaitingNodes({ nodes: 200, budget: {}, workMs: aboutMs(1_000), seed: 1 })
  await fleet.untilComplete(10_000)
  expect(fleet.figures()).toMatchObject({ watches: 0, creates: 1 })
  fleet.stop()
})

test('only the next few of 290 nodes fetch layers', async () => {
  const fleet = await startWaitingNodes({
    nodes: 290,
    budget: { count: 1 },
    workMs: aboutMs(5_000),
    fetchMs: 3_000,
    seed: 1,
  })
  await fleet.clock.advance(120_000)
  const { fetchesBeforeFirst } = fleet.figures()
  const [fetches, complete] = [fleet.fetches(), fleet.complete()]
  fleet.stop()
  const line = lineLength(1, 290)
  console.log(`290 nodes, 1 slot, line of ${line}: layers fetched by ${fetchesBeforeFirst} before the first was done,`)
  console.log(`by ${fetches} when ${complete} were done`)
  const threeDeviations = 3 * Math.sqrt(line) // of the number of hashes below a value
  expect(fetchesBeforeFirst).toBeGreaterThan(1)
  expect(fetchesBeforeFirst).toBeLessThanOrEqual(line + threeDeviations)
  expect(fetches).toBeLessThanOrEqual(complete + line + threeDeviations)
  expect(complete).toBeGreaterThan(0.85 * (120 / 5)) // the slot does not wait for layers
})

test('a small fleet fetches layers at once', async () => {
  const fleet = await startWaitingNodes({
    nodes: 15,
    budget: { count: 1 },
    workMs: aboutMs(5_000),
    fetchMs: 1_000,
    seed: 1,
  })
  await fleet.untilComplete(600_000)
  fleet.stop()
  expect(fleet.figures().fetchesBeforeFirst).toBe(15)
})
