import { describe, expect, test } from 'vitest'
import type { AgentState } from '../../stages/skyhook/gates.ts'
import { createAgentLiveness, type AgentPod } from './agent-liveness.ts'

const afterMs = 600_000
const ready = (node: string): AgentPod => ({ node, isReady: true })
const notReady = (node: string): AgentPod => ({ node, isReady: false })

describe('agent liveness', () => {
  /** `[at ms, pods, state, dead]` of node `a`; pods undefined = they cannot be listed. */
  test.each<[string, string[], [number, AgentPod[] | undefined, AgentState, boolean][]]>([
    ['answers while a pod of it is Ready', [], [[0, [ready('a')], 'ready', false]]],
    ['answers while one of two pods is Ready', [], [[0, [notReady('a'), ready('a')], 'ready', false]]],
    [
      'is unready, then silent without a pod',
      [],
      [
        [0, [], 'unready', false],
        [afterMs - 1, [], 'unready', false],
        [afterMs, [], 'silent', true],
      ],
    ],
    [
      'is silent with a pod that is not Ready',
      [],
      [
        [0, [notReady('a')], 'unready', false],
        [afterMs, [notReady('a')], 'silent', true],
      ],
    ],
    [
      'has another ten minutes after a sign of life',
      [],
      [
        [0, [], 'unready', false],
        [500_000, [ready('a')], 'ready', false],
        [afterMs, [], 'unready', false],
        [1_199_999, [], 'unready', false],
        [1_200_000, [], 'silent', true],
      ],
    ],
    [
      'is not silent because of a time without observation',
      [],
      [
        [0, [], 'unready', false],
        [1_000, undefined, 'unready', false],
        [700_000, [], 'unready', false],
        [1_300_000, [], 'silent', true],
      ],
    ],
    [
      'stays what it was while the pods cannot be listed',
      [],
      [
        [0, [], 'unready', false],
        [afterMs, [], 'silent', true],
        [afterMs + 1, undefined, 'silent', true],
        [afterMs + 2, [], 'silent', true],
      ],
    ],
    [
      'is unknown before the pods were listed',
      [],
      [
        [0, undefined, 'unknown', false],
        [1, [ready('a')], 'ready', false],
      ],
    ],
    [
      'that was silent for the previous census stays silent, and is dead only after this one has watched',
      ['a'],
      [
        [0, undefined, 'silent', false],
        [1, [], 'silent', false],
        [afterMs + 1, [], 'silent', true],
      ],
    ],
    [
      'that was silent for the previous census is ready as soon as its pod is',
      ['a'],
      [
        [0, [ready('a')], 'ready', false],
        [1, [], 'unready', false],
      ],
    ],
  ])('an agent %s', (_, initiallySilent, steps) => {
    const liveness = createAgentLiveness(new Set(initiallySilent), afterMs)
    for (const [atMs, pods, state, dead] of steps) {
      const agents = liveness.observe(['a', 'b'], pods, atMs)
      expect([atMs, agents.of('a'), agents.isDead('a')]).toEqual([atMs, state, dead])
    }
  })

  test('the agent of a node that left and came back is not silent', () => {
    const liveness = createAgentLiveness(new Set(), afterMs)
    liveness.observe(['a'], [], 0)
    liveness.observe([], [], 1_000)
    expect(liveness.observe(['a'], [], afterMs).of('a')).toBe('unready')
  })

  test('the agent of a node that joins while the pods cannot be listed is unknown', () => {
    const liveness = createAgentLiveness(new Set(), afterMs)
    liveness.observe(['a'], [ready('a')], 0)
    const agents = liveness.observe(['a', 'b'], undefined, 1_000)
    expect([agents.of('a'), agents.of('b')]).toEqual(['ready', 'unknown'])
    expect(liveness.observe(['a', 'b'], [ready('a')], 2_000).of('b')).toBe('unready')
  })

  test('agent liveness counts Ready agents and knows when the next one becomes silent', () => {
    const liveness = createAgentLiveness(new Set(), afterMs)
    expect(liveness.observe(['a', 'b', 'c'], [ready('a'), ready('b')], 1_000).ready).toBe(2)
    expect(liveness.nextChangeAtMs()).toBe(1_000 + afterMs)
    expect(liveness.observe(['a', 'b', 'c'], undefined, 2_000).ready).toBe(2)
    expect(liveness.observe(['a', 'b', 'c'], [ready('a'), ready('b'), ready('c')], 3_000).ready).toBe(3)
    expect(liveness.nextChangeAtMs()).toBe(Infinity)
  })
})
