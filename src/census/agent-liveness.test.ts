import { describe, expect, test } from 'vitest'
import type { AgentState } from './node-facts.ts'
import { createSilence, type AgentPod } from './agent-liveness.ts'

const afterMs = 600_000
const ready = (node: string): AgentPod => ({ node, isReady: true })
const notReady = (node: string): AgentPod => ({ node, isReady: false })

describe('an agent', () => {
  /** `[at ms, pods, state, dead]` of node `a`; pods undefined = they cannot be listed. */
  test.each<[string, string[], [number, AgentPod[] | undefined, AgentState, boolean][]]>([
    ['answers while a pod of it is Ready', [], [[0, [ready('a')], 'ready', false]]],
    ['answers while one of two pods is Ready', [], [[0, [notReady('a'), ready('a')], 'ready', false]]],
    [
      'is late, then silent without a pod',
      [],
      [
        [0, [], 'late', false],
        [afterMs - 1, [], 'late', false],
        [afterMs, [], 'silent', true],
      ],
    ],
    [
      'is silent with a pod that is not Ready',
      [],
      [
        [0, [notReady('a')], 'late', false],
        [afterMs, [notReady('a')], 'silent', true],
      ],
    ],
    [
      'begins anew after a sign of life',
      [],
      [
        [0, [], 'late', false],
        [500_000, [ready('a')], 'ready', false],
        [afterMs, [], 'late', false],
        [1_199_999, [], 'late', false],
        [1_200_000, [], 'silent', true],
      ],
    ],
    [
      'is not called silent for a time that nobody watched',
      [],
      [
        [0, [], 'late', false],
        [1_000, undefined, 'late', false],
        [700_000, [], 'late', false],
        [1_300_000, [], 'silent', true],
      ],
    ],
    [
      'stays what it was while the pods cannot be listed',
      [],
      [
        [0, [], 'late', false],
        [afterMs, [], 'silent', true],
        [afterMs + 1, undefined, 'silent', true],
        [afterMs + 2, [], 'silent', true],
      ],
    ],
    [
      'is unknown while the pods could not be listed yet',
      [],
      [
        [0, undefined, 'unknown', false],
        [1, [ready('a')], 'ready', false],
      ],
    ],
    [
      'that the census before called silent stays so, and is dead only after this one watched',
      ['a'],
      [
        [0, undefined, 'silent', false],
        [1, [], 'silent', false],
        [afterMs + 1, [], 'silent', true],
      ],
    ],
    [
      'that the census before called silent is believed when it is Ready',
      ['a'],
      [
        [0, [ready('a')], 'ready', false],
        [1, [], 'late', false],
      ],
    ],
  ])('%s', (_, knownSilent, steps) => {
    const silence = createSilence(new Set(knownSilent), afterMs)
    for (const [atMs, pods, state, dead] of steps) {
      const agents = silence.look(['a', 'b'], pods, atMs)
      expect([atMs, agents.of('a'), agents.isDead('a')]).toEqual([atMs, state, dead])
    }
  })

  test('of a node that went and came back is not silent', () => {
    const silence = createSilence(new Set(), afterMs)
    silence.look(['a'], [], 0)
    silence.look([], [], 1_000)
    expect(silence.look(['a'], [], afterMs).of('a')).toBe('late')
  })

  test('Ready ones are counted, and the next silence is foreseen', () => {
    const silence = createSilence(new Set(), afterMs)
    expect(silence.look(['a', 'b', 'c'], [ready('a'), ready('b')], 1_000).ready).toBe(2)
    expect(silence.nextMs()).toBe(1_000 + afterMs)
    expect(silence.look(['a', 'b', 'c'], undefined, 2_000).ready).toBe(2)
    expect(silence.look(['a', 'b', 'c'], [ready('a'), ready('b'), ready('c')], 3_000).ready).toBe(3)
    expect(silence.nextMs()).toBe(Infinity)
  })
})
