/**
 * Visits every interleaving of nodes that LIST, CREATE and release slots while the budget changes and half-changed
 * hosts take recovery slots, under the agent's rule. The same search must find a counterexample to each rule that looks
 * right and is not: a search that never finds anything proves nothing.
 */
import { describe, expect, test } from 'vitest'
import { admissibleIndices, type HeldIndices } from '../../src/lease/rule.ts'
import { symmetricKey, search, type SearchResult, type Transition } from './breadth-first.ts'

type Rule = (held: HeldIndices, limit: number) => number[]

/** Nodes are interchangeable, so a state is a multiset of what the nodes are doing. */
type ModelNode =
  | { readonly is: 'idle' }
  /** Between its LIST and its CREATE. */
  | { readonly is: 'listed'; readonly index: number; readonly limit: number }
  | { readonly is: 'holding'; readonly index: number; readonly limit: number }

type State = {
  readonly nodes: readonly ModelNode[]
  readonly limit: number
  readonly changesLeft: number
  readonly recoveriesLeft: number
  /** Recovery slots that were created while a LIST was in flight, which missed them. */
  readonly unseen: number
}

type ModelConfig = {
  readonly nodes: number
  readonly limits: readonly number[]
  readonly changes: number
  readonly recoveries: number
  /**
   * A change of the budget or a recovery waits until no LIST is in flight: then the limit of the list is the limit in
   * force.
   */
  readonly areChangesSerialized: boolean
  /** Recovery slots that a LIST in flight missed may exceed the budget. */
  readonly allowsUnseen?: boolean
}

const heldIndices = (nodes: readonly ModelNode[]): number[] =>
  nodes.flatMap((node) => (node.is === 'holding' ? [node.index] : []))

function* step(rule: Rule, config: ModelConfig, state: State): Generator<Transition<State>> {
  const { nodes, limit } = state
  const held = heldIndices(nodes)
  const free = rule(held, limit)
  const isChangeAllowed = !config.areChangesSerialized || nodes.every(({ is }) => is !== 'listed')
  if (held.length < limit && held.length < nodes.length && free.length === 0) {
    yield {
      action: 'a node lists',
      to: state,
      violation: `only ${held.length} of ${limit} slots are held and no node may take one`,
    }
  }
  for (const [who, node] of nodes.entries()) {
    const withNode = (changed: ModelNode, rest: Partial<State> = {}): State => ({
      ...state,
      ...rest,
      nodes: nodes.with(who, changed),
    })
    switch (node.is) {
      case 'idle':
        for (const index of free)
          yield {
            action: `n${who} lists {${held.join()}} under ${limit}, picks ${index}`,
            to: withNode({ is: 'listed', index, limit }),
          }
        if (state.recoveriesLeft > 0 && isChangeAllowed) {
          const unseen = state.unseen + (nodes.some(({ is }) => is === 'listed') ? 1 : 0)
          const recoveriesLeft = state.recoveriesLeft - 1
          yield {
            action: `n${who} is found half changed`,
            to: withNode({ is: 'holding', index: Infinity, limit: 0 }, { recoveriesLeft, unseen }),
          }
        }
        break
      case 'listed': {
        if (held.includes(node.index)) {
          yield { action: `n${who} creates ${node.index}: 409`, to: withNode({ is: 'idle' }) }
          break
        }
        const to = withNode({ is: 'holding', index: node.index, limit: node.limit })
        const holders = held.length + 1
        const limitInForce = config.areChangesSerialized
          ? node.limit
          : Math.max(...to.nodes.map((other) => (other.is === 'holding' ? other.limit : 0)))
        const bound = limitInForce + (config.allowsUnseen === false ? 0 : state.unseen)
        const violation = holders > bound ? `${holders} holders, the budget allows ${bound}` : undefined
        yield { action: `n${who} creates ${node.index}`, to, violation }
        break
      }
      case 'holding':
        yield { action: `n${who} releases ${node.index}`, to: withNode({ is: 'idle' }) }
        break
    }
  }
  if (state.changesLeft > 0 && isChangeAllowed) {
    for (const other of config.limits) {
      if (other !== limit)
        yield {
          action: `the budget becomes ${other}`,
          to: { ...state, limit: other, changesLeft: state.changesLeft - 1 },
        }
    }
  }
}

function explore(rule: Rule, config: ModelConfig): SearchResult {
  return search<State>({
    initial: {
      nodes: Array.from({ length: config.nodes }, () => ({ is: 'idle' })),
      limit: Math.max(...config.limits),
      changesLeft: config.changes,
      recoveriesLeft: config.recoveries,
      unseen: 0,
    },
    next: (state) => step(rule, config, state),
    keyOf: symmetricKey,
  })
}

const shrinking: ModelConfig = { nodes: 4, limits: [1, 2, 3, 4], changes: 1, recoveries: 0, areChangesSerialized: true }
const recovering: ModelConfig = {
  nodes: 4,
  limits: [0, 1, 2, 3],
  changes: 1,
  recoveries: 2,
  areChangesSerialized: true,
}

describe('the rule the agent runs', () => {
  test.each<[string, ModelConfig, states: number]>([
    ['one change of the budget', shrinking, 689],
    ['two changes', { ...shrinking, changes: 2 }, 1993],
    ['five nodes, two changes', { ...shrinking, nodes: 5, limits: [1, 2, 3], changes: 2 }, 827],
    [
      'two changes at any moment and the largest budget in flight as the bound',
      { ...shrinking, changes: 2, areChangesSerialized: false },
      22_942,
    ],
    ['recovery slots and a budget down to 0', recovering, 831],
    ['recovery slots and two changes', { ...recovering, changes: 2 }, 2063],
    [
      'recovery slots at any moment, counted once where a list missed them',
      { ...recovering, limits: [3], changes: 0, areChangesSerialized: false },
      1079,
    ],
  ])('with %s, the holders never exceed the budget and no slot below it stays unusable', (_, config, states) => {
    expect(explore(admissibleIndices, config)).toEqual({ outcome: 'holds', states })
  })
})

const indices = (limit: number): number[] => Array.from({ length: limit }, (_, index) => index)
const freeBelow = (held: HeldIndices, limit: number): number[] =>
  indices(Math.max(0, limit)).filter((index) => !held.includes(index))

/** Each is what a careful engineer would write first. */
const mutants: Record<string, { readonly rule: Rule; readonly config: ModelConfig }> = {
  'takes any free index below the limit': { rule: freeBelow, config: shrinking },
  'counts the holders, then takes any free index below the limit': {
    rule: (held, limit) => (held.length < limit ? freeBelow(held, limit) : []),
    config: shrinking,
  },
  'counts the holders, then takes any free index at all': {
    rule: (held, limit) => (held.length < limit ? freeBelow(held, 5) : []),
    config: shrinking,
  },
  'lowers the limit by the holders beyond it': {
    rule: (held, limit) => freeBelow(held, limit - held.filter((index) => index >= limit).length),
    config: shrinking,
  },
  'leaves recovery slots out': {
    rule: (held, limit) => admissibleIndices(held.filter(Number.isFinite), limit),
    config: recovering,
  },
  'counts recovery slots as index 0': {
    rule: (held, limit) =>
      admissibleIndices(
        held.map((index) => (index === Infinity ? 0 : index)),
        limit,
      ),
    config: recovering,
  },
  'counts the holders below the index instead of above': {
    rule: (held, limit) =>
      freeBelow(held, limit).filter((index) => index + held.filter((other) => other < index).length < limit),
    config: shrinking,
  },
  'allows one too few': { rule: (held, limit) => admissibleIndices(held, limit - 1), config: shrinking },
}

describe('mutants', () => {
  test.each(Object.entries(mutants))('the search catches a rule that %s', (_, { rule, config }) => {
    const result = explore(rule, config)
    if (result.outcome !== 'violated') expect.unreachable(`held in all ${result.states} states`)
    expect(result.path.length).toBeLessThanOrEqual(9)
  })

  test('the search catches a bound that ignores recovery slots created between LIST and CREATE', () => {
    const config: ModelConfig = {
      ...recovering,
      limits: [1],
      changes: 0,
      areChangesSerialized: false,
      allowsUnseen: false,
    }
    expect(explore(admissibleIndices, config)).toMatchObject({
      outcome: 'violated',
      violation: '2 holders, the budget allows 1',
    })
  })

  test('the shortest counterexample to taking any free index is the known one', () => {
    expect(explore(freeBelow, { ...shrinking, limits: [1, 2] })).toMatchObject({
      violation: '2 holders, the budget allows 1',
      path: [
        'n0 lists {} under 2, picks 1',
        'n0 creates 1',
        'the budget becomes 1',
        'n1 lists {1} under 1, picks 0',
        'n1 creates 0',
      ].map((action) => expect.stringContaining(action.replace(/n\d /, '')) as string),
    })
  })
})

describe('a constant budget', () => {
  test('without recovery slots, the names alone bound the holders, however old the lists are', () => {
    type Stale = { readonly held: readonly number[]; readonly staleLists: readonly string[] }
    const limit = 2
    const keyOf = (held: readonly number[]): string => held.toSorted((a, b) => a - b).join()
    const result = search<Stale>({
      initial: { held: [], staleLists: [''] },
      keyOf: ({ held, staleLists }) => `${keyOf(held)}|${staleLists.toSorted().join(' ')}`,
      *next({ held, staleLists }) {
        for (const listedText of staleLists) {
          const listed = listedText === '' ? [] : listedText.split(',').map(Number)
          for (const index of admissibleIndices(listed, limit)) {
            if (held.includes(index)) continue // 409
            const now = [...held, index]
            const violation = now.length > limit ? `${now.length} holders` : undefined
            yield {
              action: `lists {${listedText}}, creates ${index}`,
              to: { held: now, staleLists: [...new Set([...staleLists, keyOf(now)])] },
              violation,
            }
          }
        }
        for (const index of held) {
          const now = held.filter((other) => other !== index)
          yield {
            action: `releases ${index}`,
            to: { held: now, staleLists: [...new Set([...staleLists, keyOf(now)])] },
          }
        }
      },
    })
    expect(result).toMatchObject({ outcome: 'holds' })
  })
})
