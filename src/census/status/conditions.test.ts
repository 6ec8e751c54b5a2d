import { describe, expect, test } from 'vitest'
import { allAgents, countsOf, entry, nodeReporting, skyhookWith } from '../../../test/kit/objects/census-objects.ts'
import type { NodeStateEntry } from '../../schemas/annotations.ts'
import { problemConditions } from './conditions.ts'
import type { CensusNode } from '../model/node-facts.ts'

const conditionOf = (name: string, nodes: readonly CensusNode[], agents = allAgents()): string[] =>
  problemConditions(countsOf(skyhookWith(), nodes, agents))
    .filter(({ type }) => type === `skyhook.nvidia.com/${name}`)
    .map(({ status, reason, message }) => `${status} ${reason}: ${message}`)

const reasonAt = (since: unknown, message: string, reason = 'DrainBlocked') => ({
  annotations: { 'skyhook.nvidia.com/reason_demo': JSON.stringify({ reason, message, since }) },
})
const blocked = (name: string, since: unknown, message = 'pod shop/cart-7d: PDB shop/cart allows 0'): CensusNode =>
  nodeReporting(name, { status: 'in_progress', ...reasonAt(since, message) })

describe('DrainBlocked', () => {
  test.each<[string, CensusNode[], string]>([
    ['no node', [], 'False NotBlocked: no drain is blocked'],
    [
      'a node with pods that nobody may evict',
      [nodeReporting('a', { status: 'in_progress', ...reasonAt('2026-11-20T13:00:00Z', 'x', 'ProtectedPods') })],
      'False NotBlocked: no drain is blocked',
    ],
    [
      'the node blocked for the longest time before the others',
      [
        blocked('a', '2026-11-20T13:30:00Z'),
        blocked('b', '2026-11-20T13:00:00.250Z', 'pod shop/db-0'),
        nodeReporting('c', { status: 'in_progress' }),
      ],
      'True DrainBlocked: blocked drains: 2, the longest first: b since 2026-11-20T13:00:00Z (pod shop/db-0), ' +
        'a since 2026-11-20T13:30:00Z (pod shop/cart-7d: PDB shop/cart allows 0)',
    ],
    [
      'a node that does not say since when after those that do',
      [blocked('a', 'yesterday'), blocked('b', '2026-11-20T13:00:00Z'), blocked('c', 7)],
      'True DrainBlocked: blocked drains: 3, the longest first: b since 2026-11-20T13:00:00Z (pod shop/cart-7d: ' +
        'PDB shop/cart allows 0), a (pod shop/cart-7d: PDB shop/cart allows 0), c (pod shop/cart-7d: PDB shop/cart ' +
        'allows 0)',
    ],
  ])('DrainBlocked names %s', (_, nodes, expected) => {
    expect(conditionOf('DrainBlocked', nodes)).toEqual([expected])
  })

  test('DrainBlocked names five nodes at most and counts the others', () => {
    const nodes = Array.from({ length: 40 }, (_, at) => blocked(`n${at + 10}`, `2026-11-20T13:00:${59 - at}Z`))
    const [text = ''] = conditionOf('DrainBlocked', nodes)
    expect(text.match(/n\d\d since/g)).toEqual(['n49 since', 'n48 since', 'n47 since', 'n46 since', 'n45 since'])
    expect(text).toMatch(/ and 35 more$/)
  })

  test('DrainBlocked does not name the node of a silent agent: its last report may be old', () => {
    expect(conditionOf('DrainBlocked', [blocked('a', '2026-11-20T13:00:00Z')], allAgents('silent'))).toEqual([
      'False NotBlocked: no drain is blocked',
    ])
  })
})

describe('UninstallFailed', () => {
  const uninstall = (state: NodeStateEntry['state'], restarts = 0): NodeStateEntry =>
    entry({ name: 'dogs', version: '1.2.6', stage: 'uninstall', ...(state && { state }), restarts })
  const node = (name: string, ...entries: NodeStateEntry[]): CensusNode =>
    nodeReporting(name, { status: 'in_progress', entries: [entry(), ...entries] })

  test.each<[string, CensusNode[], string]>([
    ['nothing', [node('a')], 'False NotFailed: no uninstall has failed'],
    [
      'no uninstall that is in progress',
      [node('a', uninstall('in_progress'))],
      'False NotFailed: no uninstall has failed',
    ],
    [
      'no apply that fails',
      [node('a', entry({ stage: 'apply', state: 'erroring', restarts: 2 }))],
      'False NotFailed: no uninstall has failed',
    ],
    [
      'an uninstall that was given up, also on a node that is complete',
      [nodeReporting('a', { entries: [entry(), uninstall('unknown', 3)] })],
      'True UninstallFailed: given up: a (dogs 1.2.6)',
    ],
    [
      'an uninstall that is tried again, also during an attempt',
      [node('a', uninstall('erroring', 1)), node('b', uninstall('in_progress', 4))],
      'True UninstallFailed: tried again: a (dogs 1.2.6), b (dogs 1.2.6)',
    ],
    [
      'what was given up before what is tried again',
      [node('a', uninstall('erroring', 1)), node('b', uninstall('unknown', 3))],
      'True UninstallFailed: given up: b (dogs 1.2.6); tried again: a (dogs 1.2.6)',
    ],
  ])('UninstallFailed names %s', (_, nodes, expected) => {
    expect(conditionOf('UninstallFailed', nodes)).toEqual([expected])
  })
})
