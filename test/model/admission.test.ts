/**
 * Walks every interleaving of nodes that LIST, CREATE and release slots while the budget changes and half-changed hosts take recovery
 * slots, with the rule the agent runs. The same walk must find the counterexample of each rule that looks right and is not: a search
 * that finds nothing anywhere would be worth nothing.
 */
import { describe, expect, test } from 'vitest'
import { admissible, type HeldSlots } from '../../src/lease/rule.ts'
import { search, type Searched, type Step } from './breadth-first.ts'

type Rule = (held: HeldSlots, limit: number) => number[]

/** Nodes are interchangeable, so a state is a multiset of what the nodes are doing. */
type Node =
  | { readonly is: 'idle' }
  /** Between LIST and CREATE. */
  | { readonly is: 'listed'; readonly index: number; readonly limit: number }
  | { readonly is: 'holding'; readonly index: number; readonly limit: number }

type State = {
  readonly nodes: readonly Node[]
  readonly limit: number
  readonly changesLeft: number
  readonly recoveriesLeft: number
  /** Recovery slots that somebody's LIST, in flight at that moment, has not seen. */
  readonly unseen: number
}

type World = {
  readonly nodes: number
  readonly limits: readonly number[]
  readonly changes: number
  readonly recoveries: number
  /** A change of the budget or a recovery waits until no LIST is in flight: then the limit of the list is the limit in force. */
  readonly quiet: boolean
  /** A recovery slot that a list in flight has not seen may come on top. */
  readonly allowsUnseen?: boolean
}

const heldBy = (nodes: readonly Node[]): number[] => nodes.flatMap((node) => (node.is === 'holding' ? [node.index] : []))

function* step(rule: Rule, world: World, state: State): Generator<Step<State>> {
  const { nodes, limit } = state
  const held = heldBy(nodes)
  const free = rule(held, limit)
  const isQuiet = !world.quiet || nodes.every(({ is }) => is !== 'listed')
  if (held.length < limit && held.length < nodes.length && free.length === 0) {
    yield { action: 'a node lists', to: state, violation: `only ${held.length} of ${limit} slots are held and nobody may take one` }
  }
  for (const [who, node] of nodes.entries()) {
    const become = (changed: Node, rest: Partial<State> = {}): State => ({ ...state, ...rest, nodes: nodes.with(who, changed) })
    switch (node.is) {
      case 'idle':
        for (const index of free)
          yield { action: `n${who} lists {${held.join()}} under ${limit}, picks ${index}`, to: become({ is: 'listed', index, limit }) }
        if (state.recoveriesLeft > 0 && isQuiet) {
          const unseen = state.unseen + (nodes.some(({ is }) => is === 'listed') ? 1 : 0)
          const recoveriesLeft = state.recoveriesLeft - 1
          yield {
            action: `n${who} was found half changed`,
            to: become({ is: 'holding', index: Infinity, limit: 0 }, { recoveriesLeft, unseen }),
          }
        }
        break
      case 'listed': {
        if (held.includes(node.index)) {
          yield { action: `n${who} creates ${node.index}: 409`, to: become({ is: 'idle' }) }
          break
        }
        const to = become({ is: 'holding', index: node.index, limit: node.limit })
        const holders = held.length + 1
        const inForce = world.quiet ? node.limit : Math.max(...to.nodes.map((other) => (other.is === 'holding' ? other.limit : 0)))
        const bound = inForce + (world.allowsUnseen === false ? 0 : state.unseen)
        const violation = holders > bound ? `${holders} holders, the budget allows ${bound}` : undefined
        yield { action: `n${who} creates ${node.index}`, to, violation }
        break
      }
      case 'holding':
        yield { action: `n${who} releases ${node.index}`, to: become({ is: 'idle' }) }
        break
    }
  }
  if (state.changesLeft > 0 && isQuiet) {
    for (const other of world.limits) {
      if (other !== limit)
        yield { action: `the budget becomes ${other}`, to: { ...state, limit: other, changesLeft: state.changesLeft - 1 } }
    }
  }
}

const doing = (node: Node): string => (node.is === 'idle' ? '-' : `${node.is[0]}${node.index}/${node.limit}`)

function walk(rule: Rule, world: World): Searched {
  return search<State>({
    initial: {
      nodes: Array.from({ length: world.nodes }, () => ({ is: 'idle' })),
      limit: Math.max(...world.limits),
      changesLeft: world.changes,
      recoveriesLeft: world.recoveries,
      unseen: 0,
    },
    next: (state) => step(rule, world, state),
    canonical: ({ nodes, limit, changesLeft, recoveriesLeft, unseen }) =>
      `${nodes.map(doing).toSorted().join(' ')}|${limit} ${changesLeft} ${recoveriesLeft} ${unseen}`,
  })
}

const shrinking: World = { nodes: 4, limits: [1, 2, 3, 4], changes: 1, recoveries: 0, quiet: true }
const recovering: World = { nodes: 4, limits: [0, 1, 2, 3], changes: 1, recoveries: 2, quiet: true }

describe('the rule the agent runs', () => {
  test.each<[string, World]>([
    ['one change of the budget', shrinking],
    ['two changes', { ...shrinking, changes: 2 }],
    ['five nodes, two changes', { ...shrinking, nodes: 5, limits: [1, 2, 3], changes: 2 }],
    ['two changes at any moment, against the largest budget in flight', { ...shrinking, changes: 2, quiet: false }],
    ['recovery slots and a budget down to 0', recovering],
    ['recovery slots, two changes', { ...recovering, changes: 2 }],
    [
      'recovery slots at any moment, each counted once where a list had not seen it',
      { ...recovering, limits: [3], changes: 0, quiet: false },
    ],
  ])('%s: never above the budget, never idle below it', (_, world) => {
    const result = walk(admissible, world)
    expect(result).toMatchObject({ outcome: 'holds' })
    expect(result.states).toBeGreaterThan(100)
  })
})

const indices = (limit: number): number[] => Array.from({ length: limit }, (_, index) => index)
const freeBelow = (held: HeldSlots, limit: number): number[] => indices(Math.max(0, limit)).filter((index) => !held.includes(index))

/** Each is what a careful person would write first. */
const WRONG_RULES: Record<string, { readonly rule: Rule; readonly world: World }> = {
  'any free index below the limit': { rule: freeBelow, world: shrinking },
  'count the holders, then any free index below the limit': {
    rule: (held, limit) => (held.length < limit ? freeBelow(held, limit) : []),
    world: shrinking,
  },
  'count the holders, then any free index at all': {
    rule: (held, limit) => (held.length < limit ? freeBelow(held, 5) : []),
    world: shrinking,
  },
  'the limit less the holders beyond it': {
    rule: (held, limit) => freeBelow(held, limit - held.filter((index) => index >= limit).length),
    world: shrinking,
  },
  'recovery slots left out': { rule: (held, limit) => admissible(held.filter(Number.isFinite), limit), world: recovering },
  'recovery slots counted as index 0': {
    rule: (held, limit) =>
      admissible(
        held.map((index) => (index === Infinity ? 0 : index)),
        limit,
      ),
    world: recovering,
  },
  'holders below the index instead of above': {
    rule: (held, limit) => freeBelow(held, limit).filter((index) => index + held.filter((other) => other < index).length < limit),
    world: shrinking,
  },
  'one too few': { rule: (held, limit) => admissible(held, limit - 1), world: shrinking },
}

describe('the search finds what is wrong with', () => {
  test.each(Object.entries(WRONG_RULES))('%s', (_, { rule, world }) => {
    const result = walk(rule, world)
    if (result.outcome !== 'violated') expect.unreachable(`held in all ${result.states} states`)
    expect(result.path.length).toBeLessThanOrEqual(9)
  })

  test('a promise without the exception for recovery slots that appear between LIST and CREATE', () => {
    const world: World = { ...recovering, limits: [1], changes: 0, quiet: false, allowsUnseen: false }
    expect(walk(admissible, world)).toMatchObject({ outcome: 'violated', violation: '2 holders, the budget allows 1' })
  })

  test('the first of them, by the known way', () => {
    expect(walk(freeBelow, { ...shrinking, limits: [1, 2] })).toMatchObject({
      violation: '2 holders, the budget allows 1',
      path: ['n0 lists {} under 2, picks 1', 'n0 creates 1', 'the budget becomes 1', 'n1 lists {1} under 1, picks 0', 'n1 creates 0'].map(
        (action) => expect.stringContaining(action.replace(/n\d /, '')) as string,
      ),
    })
  })
})

describe('with a constant budget and no recovery slots', () => {
  test('the names alone bound the holders, however old the lists are', () => {
    type Stale = { readonly held: readonly number[]; readonly past: readonly string[] }
    const limit = 2
    const keyOf = (held: readonly number[]): string => held.toSorted((a, b) => a - b).join()
    const result = search<Stale>({
      initial: { held: [], past: [''] },
      canonical: ({ held, past }) => `${keyOf(held)}|${past.toSorted().join(' ')}`,
      *next({ held, past }) {
        for (const seen of past) {
          const listed = seen === '' ? [] : seen.split(',').map(Number)
          for (const index of admissible(listed, limit)) {
            if (held.includes(index)) continue // 409
            const now = [...held, index]
            const violation = now.length > limit ? `${now.length} holders` : undefined
            yield { action: `lists {${seen}}, creates ${index}`, to: { held: now, past: [...new Set([...past, keyOf(now)])] }, violation }
          }
        }
        for (const index of held) {
          const now = held.filter((other) => other !== index)
          yield { action: `releases ${index}`, to: { held: now, past: [...new Set([...past, keyOf(now)])] } }
        }
      },
    })
    expect(result).toMatchObject({ outcome: 'holds' })
  })
})
