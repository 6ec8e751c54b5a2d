import { expect, test } from 'vitest'
import { initialWait, nextWait, type Outlook, timerOf, type WaitState } from './wait-state.ts'

const lookMs = 60_000
const far: Outlook = { is: 'far', lookMs, rank: 500 }
const uncounted: Outlook = { is: 'uncounted', lookMs }
const closed: Outlook = { is: 'closed', lookMs, dependsOnLedger: true }
const inLine: Outlook = { is: 'in-line', lookMs, isFull: false }
const near: Outlook = { is: 'near', lookMs, isFull: false }
const full: Outlook = { is: 'near', lookMs, isFull: true }
const due: Outlook = { is: 'due', lookMs, askMs: 40 }
const free: Outlook = { is: 'free', askMs: 40 }
const unlimited: Outlook = { is: 'unlimited' }

const waitingAt = (at: 'far' | 'in-line' | 'near', refusals = 0): WaitState => ({
  at,
  lookAtMs: 5_000,
  watched: at === 'far' ? 'nothing' : at === 'near' ? 'slots' : 'ledger',
  refusals,
})
const turn: WaitState = { at: 'turn', askAtMs: 1_100, watched: 'slots', refusals: 0 }
const askedOf = (watched: 'slots' | 'ledger'): WaitState => ({ at: 'asked', watched, refusals: 0 })

test.each<[string, WaitState, Outlook, string]>([
  ['knows that many come first', initialWait, far, 'far, watches nothing, timer 61000'],
  ['sleeps on while it sleeps', waitingAt('far'), far, 'far, watches nothing, timer 5000'],
  ['moves into the line', waitingAt('far'), inLine, 'in-line, watches ledger, timer 61000'],
  ['moves to the front', waitingAt('in-line'), near, 'near, watches slots, timer 61000'],
  ['goes on to watch where others come before it again', waitingAt('near'), inLine, 'near, watches slots, timer 5000'],
  ['goes away from the front', waitingAt('near'), far, 'far, watches nothing, timer 61000'],
  ['has a slot by the count', waitingAt('in-line'), due, 'turn, watches ledger, timer 1040'],
  ['wakes to a slot by the count', waitingAt('far'), due, 'turn, watches nothing, timer 1040'],
  ['goes by what it sees, not by the count', waitingAt('near'), due, 'near, watches slots, timer 5000'],
  ['was refused a slot of the count', waitingAt('in-line', 1), due, 'near, watches slots, timer 61000'],
  ['sees a free slot', waitingAt('near'), free, 'turn, watches slots, timer 1040'],
  ['sees one more', turn, free, 'turn, watches slots, timer 1040'],
  ['sees one again after a refusal', waitingAt('near', 1), free, 'turn, watches slots, timer 1200'],
  ['sees that others were faster', turn, full, 'near, watches slots, timer 61000'],
  ['sees it before its request', askedOf('slots'), full, 'near, watches slots, timer 61000'],
  ['sees nothing else during its request', askedOf('slots'), free, 'asked, watches slots, timer Infinity'],
  ['hears of other turns during its request', askedOf('ledger'), inLine, 'asked, watches ledger, timer Infinity'],
  ['waits for the budget', waitingAt('near'), closed, 'closed, watches ledger, timer 61000'],
  ['waits for an edit', turn, { ...closed, dependsOnLedger: false }, 'closed, watches nothing, timer 61000'],
  ['waits for a count', waitingAt('near'), uncounted, 'uncounted, watches ledger, timer 61000'],
  ['is not held back any more', waitingAt('far'), unlimited, 'asked, watches nothing, timer Infinity, ask'],
])('a node %s', (_, state, outlook, expected) => {
  expect(textOf(nextWait(state, { event: 'seen', outlook }, 1_000, 0))).toBe(expected)
})

test.each<[string, WaitState, string]>([
  ['reads the ledger', waitingAt('far'), 'far, watches nothing, timer Infinity, read-ledger'],
  ['asks', turn, 'asked, watches slots, timer Infinity, ask'],
  [
    'looks for a census',
    { at: 'uncounted', lookAtMs: 1_000, watched: 'ledger', refusals: 0 },
    'uncounted, watches ledger, timer Infinity, read-ledger, count-missing',
  ],
])('a node %s when its timer is due', (_, state, expected) => {
  expect(textOf(nextWait(state, { event: 'timer' }, 1_000, 0))).toBe(expected)
})

test('a node looks again after a read that shows nothing new', () => {
  const { state } = nextWait(waitingAt('far'), { event: 'timer' }, 5_000, 0)
  expect(timerOf(nextWait(state, { event: 'seen', outlook: far }, 5_100, 0).state)).toBe(5_100 + lookMs)
})

test('refusals are counted until the node sees that no slot is free', () => {
  const refused = nextWait(askedOf('slots'), { event: 'denied', outlook: free }, 1_000, 0).state
  expect([refused.refusals, timerOf(refused)]).toEqual([1, 1_200])
  const again = nextWait({ at: 'asked', watched: 'slots', refusals: 1 }, { event: 'denied', outlook: free }, 1_000, 0)
  expect([again.state.refusals, timerOf(again.state)]).toEqual([2, 1_400])
  expect(nextWait(again.state, { event: 'seen', outlook: near }, 1_000, 0).state.refusals).toBe(2)
  expect(nextWait(again.state, { event: 'seen', outlook: full }, 1_000, 0).state.refusals).toBe(0)
})

const textOf = ({ state, effects }: ReturnType<typeof nextWait>): string =>
  [state.at, `watches ${state.watched}`, `timer ${timerOf(state)}`, ...effects].join(', ')
