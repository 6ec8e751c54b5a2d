import { expect, test } from 'vitest'
import { initialWait, nextWait, type Outlook, type WaitState } from './wait-state.ts'

const lookMs = 60_000
const some = [3, 17]
const far: Outlook = { is: 'far', lookMs, isFull: false }
const uncounted: Outlook = { is: 'uncounted', lookMs, isFull: false }
const closed: Outlook = { is: 'closed', lookMs, isFull: true }
const inLine: Outlook = { is: 'in-line', watched: some, lookMs, isFull: false }
const full: Outlook = { ...inLine, isFull: true }
const free: Outlook = { is: 'free', askMs: 40 }
const unlimited: Outlook = { is: 'unlimited' }

const waitingAt = (at: 'far' | 'in-line', refusals = 0): WaitState => ({
  at,
  timerAtMs: 5_000,
  watched: at === 'far' ? 'nothing' : some,
  refusals,
})
const turn: WaitState = { at: 'turn', timerAtMs: 1_100, watched: some, refusals: 0 }
const askedOf = (watched: WaitState['watched'], refusals = 0): WaitState => ({
  at: 'asked',
  timerAtMs: Infinity,
  watched,
  refusals,
})

test.each<[string, WaitState, Outlook, string]>([
  ['knows that many come first', initialWait, far, 'far, watches nothing, timer 61000'],
  ['continues to sleep', waitingAt('far'), far, 'far, watches nothing, timer 5000'],
  ['looks sooner', waitingAt('in-line'), { ...inLine, lookMs: 2_000 }, 'in-line, watches 3,17, timer 3000'],
  ['moves into the line', waitingAt('far'), inLine, 'in-line, watches 3,17, timer 61000'],
  ['watches all', waitingAt('in-line'), { ...inLine, watched: 'all' }, 'in-line, watches all, timer 5000'],
  ['leaves the line', waitingAt('in-line'), far, 'far, watches nothing, timer 61000'],
  ['sees a free slot', waitingAt('in-line'), free, 'turn, watches 3,17, timer 1040'],
  ['does not draw again', turn, { ...free, askMs: 10 }, 'turn, watches 3,17, timer 1100'],
  ['sees one again after a refusal', waitingAt('in-line', 1), free, 'turn, watches 3,17, timer 1200'],
  ['sees that others were faster', turn, full, 'in-line, watches 3,17, timer 61000'],
  ['sees it before its request', askedOf(some), full, 'in-line, watches 3,17, timer 61000'],
  ['sees nothing else during its request', askedOf(some), free, 'asked, watches 3,17, timer Infinity'],
  ['sees another line during its request', askedOf(some), inLine, 'asked, watches 3,17, timer Infinity'],
  ['sees that the budget is 0 during its request', askedOf(some), closed, 'closed, watches nothing, timer 61000'],
  ['waits for an edit', turn, closed, 'closed, watches nothing, timer 61000'],
  ['waits for a count', waitingAt('in-line'), uncounted, 'uncounted, watches ledger, timer 61000'],
  ['is not held back any more', waitingAt('far'), unlimited, 'asked, watches nothing, timer Infinity, ask'],
])('a node %s', (_, state, outlook, expected) => {
  expect(textOf(nextWait(state, { event: 'seen', outlook }, 1_000, 0))).toBe(expected)
})

test.each<[string, WaitState, string]>([
  ['reads the ledger', waitingAt('far'), 'far, watches nothing, timer Infinity, read-ledger'],
  ['asks', turn, 'asked, watches 3,17, timer Infinity, ask'],
  [
    'looks for a census',
    { at: 'uncounted', timerAtMs: 1_000, watched: 'ledger', refusals: 0 },
    'uncounted, watches ledger, timer Infinity, read-ledger, count-missing',
  ],
])('a node %s when its timer is due', (_, state, expected) => {
  expect(textOf(nextWait(state, { event: 'timer' }, 1_000, 0))).toBe(expected)
})

test('a node looks again after a read that shows nothing new', () => {
  const { state } = nextWait(waitingAt('far'), { event: 'timer' }, 5_000, 0)
  expect(nextWait(state, { event: 'seen', outlook: far }, 5_100, 0).state.timerAtMs).toBe(5_100 + lookMs)
})

test('refusals are counted until the node sees that no slot is free', () => {
  const seenBy = (state: WaitState, outlook: Outlook): WaitState =>
    nextWait(state, { event: 'seen', outlook }, 1_000, 0).state
  const refused = (refusals: number): WaitState =>
    nextWait(askedOf(some, refusals), { event: 'denied' }, 1_000, 0).state
  expect([0, 1].map((before) => seenBy(refused(before), free).timerAtMs)).toEqual([1_200, 1_400])
  expect([inLine, full].map((outlook) => seenBy(refused(1), outlook).refusals)).toEqual([2, 0])
})

const textOf = ({ state, effects }: ReturnType<typeof nextWait>): string =>
  [state.at, `watches ${String(state.watched)}`, `timer ${state.timerAtMs}`, ...effects].join(', ')
