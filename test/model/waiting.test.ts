/**
 * No node sleeps while a slot stays free, few ask for the same one, and every wait ends: in every order of what happens
 * to a small fleet. The same search finds the fault of each rule that looks right.
 */
import { expect, test } from 'vitest'
import type { Outlook } from '../../src/lease/wait-state.ts'
import { searchWaits, type WaitModelConfig, type WaitRules, waitRules } from './waiting.ts'

/** 260 ms, and no request in vain of nodes that draw different times. */
const strict = { edits: 0, counts: 1, maxIdleHalfSteps: 13, maxVainAsks: 0 }

test.each<[string, WaitModelConfig]>([
  ['three nodes for one slot', { ...strict, nodes: 3, limits: [1], counts: 2 }],
  ['three nodes, the first of which cannot ask', { ...strict, nodes: 3, limits: [1], isFirstUnable: true }],
  [
    'two nodes while the budget changes',
    { ...strict, nodes: 2, limits: [1, 2, 0], edits: 2, counts: 2, maxVainAsks: 1 },
  ],
  ['three nodes without a census', { ...strict, nodes: 3, limits: [1], isUncounted: true }],
])('no slot stays free, and hardly a request is in vain: %s', (_, config) => {
  const result = searchWaits(waitRules, config)
  expect(result).toMatchObject({ outcome: 'holds' })
})

test('three nodes for two slots are as soon, but for pauses after refusals', () => {
  const rules: WaitRules = {
    ...waitRules,
    // they would grow in the order of events that is worst
    nextWait: (state, ...rest) => waitRules.nextWait({ ...state, refusals: Math.min(1, state.refusals) }, ...rest),
  }
  const result = searchWaits(rules, { ...strict, nodes: 3, limits: [2], maxVainAsks: 1, maxIdleHalfSteps: 50 })
  expect(result).toMatchObject({ outcome: 'holds' })
})

const wrong = (changes: Partial<WaitRules>): WaitRules => ({ ...waitRules, ...changes })
const notFor: Outlook = { is: 'in-line', watched: 'all', lookMs: Infinity, isFull: true }
const three = { ...strict, nodes: 3, limits: [1] }

test.each<[string, WaitRules, WaitModelConfig, RegExp]>([
  [
    'all who see a free slot ask at once',
    wrong({
      outlookOf(known, random) {
        const outlook = waitRules.outlookOf(known, random)
        return outlook.is === 'free' ? { ...outlook, askMs: 0 } : outlook
      },
    }),
    three,
    /nodes ask at once/,
  ],
  [
    'a slot that others took is asked for all the same',
    wrong({
      nextWait(state, event, nowMs, random) {
        const isTaken = event.event === 'seen' && event.outlook.is === 'in-line' && event.outlook.isFull
        if (state.at === 'turn' && isTaken) return { state, effects: [] }
        return waitRules.nextWait(state, event, nowMs, random)
      },
    }),
    three,
    /nodes ask at once/,
  ],
  [
    'only those for whom there are slots ask',
    wrong({
      outlookOf(known, random) {
        const outlook = waitRules.outlookOf(known, random)
        return outlook.is === 'free' && outlook.askMs > 25 ? notFor : outlook
      },
    }),
    { ...three, isFirstUnable: true },
    /wait for nothing|is free for more/,
  ],
  [
    'a refusal is not heard of',
    wrong({
      nextWait(state, event, nowMs, random) {
        if (event.event === 'denied') return { state, effects: [] }
        return waitRules.nextWait(state, event, nowMs, random)
      },
    }),
    { ...strict, nodes: 2, limits: [1, 0], edits: 2, maxVainAsks: 1 },
    /wait for nothing|is free for more/,
  ],
  [
    'a node in line watches one of two slots',
    wrong({
      outlookOf(known, random) {
        const outlook = waitRules.outlookOf(known, random)
        return outlook.is === 'in-line' ? { ...outlook, watched: [0] } : outlook
      },
    }),
    { ...three, limits: [2] },
    /wait for nothing|is free for more/,
  ],
])('the search finds the fault: %s', (_, rules, config, violation) => {
  const result = searchWaits(rules, config)
  expect(result).toMatchObject({ outcome: 'violated', violation: expect.stringMatching(violation) })
})
