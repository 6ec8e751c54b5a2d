/**
 * Visits every interleaving of nodes that LIST, CREATE, confirm, work and release while the budget changes at any
 * moment, under the agent's rules. Judged is the first promise itself: when a node reads the Skyhook for the last time
 * before it goes out, fewer nodes are out, or may go out, than the budget of that moment allows, and it goes out for
 * the spec that it read then.
 */
import { describe, expect, test } from 'vitest'
import { admissibleIndices, isStillAdmissible } from '../../src/lease/rule.ts'
import { symmetricKey, search, type SearchResult, type Transition } from './breadth-first.ts'

type ModelNode =
  | { readonly is: 'idle' }
  /** Between its LIST and its CREATE. */
  | { readonly is: 'listed'; readonly index: number; readonly generation: number }
  /** Granted, not confirmed. */
  | { readonly is: 'holding'; readonly index: number; readonly generation: number }
  /** It has read the Skyhook again, and has to LIST. */
  | { readonly is: 'confirming'; readonly index: number; readonly limit: number; readonly generation: number }
  /** It may start, and something else on the node is in the way: `seen` is the spec that its watch has shown by now. */
  | { readonly is: 'confirmed'; readonly index: number; readonly generation: number; readonly seen: number }
  | { readonly is: 'out'; readonly index: number }

type State = { readonly nodes: readonly ModelNode[]; readonly limit: number; readonly generation: number }

type Rules = {
  /** Whether a confirmation takes a second LIST, by the generations that were admitted and that are read now. */
  readonly needsList: (admitted: number, current: number) => boolean
  readonly isStillAdmissible: typeof isStillAdmissible
  /** Whether work of a spec may start under the confirmation of another one, by their generations. */
  readonly mayStart: (confirmed: number, seen: number) => boolean
}
type Config = {
  readonly nodes: number
  readonly limits: readonly number[]
  readonly changes: number
  /** A percentage changes with the count of nodes, too, which is not a new generation. */
  readonly isCounted?: boolean
}

const agentRules: Rules = {
  needsList: (admitted, current) => admitted !== current,
  isStillAdmissible,
  mayStart: (confirmed, seen) => confirmed === seen,
}

const indexOf = (node: ModelNode): number[] => (node.is === 'idle' || node.is === 'listed' ? [] : [node.index])

const mayBeOut = ({ is }: ModelNode): boolean => is === 'confirmed' || is === 'out'

function* step(rules: Rules, config: Config, state: State): Generator<Transition<State>> {
  const { nodes, limit, generation } = state
  const held = nodes.flatMap(indexOf)
  const outCount = nodes.filter(mayBeOut).length
  for (const [who, node] of nodes.entries()) {
    const to = (changed: ModelNode): State => ({ ...state, nodes: nodes.with(who, changed) })
    const others = nodes.filter((_, other) => other !== who).flatMap(indexOf)
    switch (node.is) {
      case 'idle':
        for (const index of admissibleIndices(held, limit))
          yield { action: `lists {${held.join()}}, picks ${index}`, to: to({ is: 'listed', index, generation }) }
        break
      case 'listed':
        yield held.includes(node.index)
          ? { action: `creates ${node.index}: 409`, to: to({ is: 'idle' }) }
          : { action: `creates ${node.index}`, to: to({ ...node, is: 'holding' }) }
        break
      case 'holding': {
        const needsList = rules.needsList(node.generation, generation)
        if (needsList)
          yield { action: 'reads a new spec', to: to({ is: 'confirming', index: node.index, limit, generation }) }
        else
          yield {
            action: 'reads the same spec',
            to: to({ is: 'confirmed', index: node.index, generation, seen: generation }),
            violation: outCount < limit ? undefined : `${outCount + 1} nodes are out, the budget is ${limit}`,
          }
        break
      }
      case 'confirming':
        yield rules.isStillAdmissible(node.index, others, node.limit)
          ? {
              action: 'lists again',
              to: to({ is: 'confirmed', index: node.index, generation: node.generation, seen: node.generation }),
              violation:
                outCount < node.limit ? undefined : `${outCount + 1} nodes are out, the budget was ${node.limit}`,
            }
          : { action: 'lists again and yields', to: to({ is: 'idle' }) }
        break
      case 'confirmed':
        if (!rules.mayStart(node.generation, node.seen))
          yield { action: 'asks again', to: to({ is: 'holding', index: node.index, generation: node.generation }) }
        else
          yield {
            action: 'goes out',
            to: to({ is: 'out', index: node.index }),
            violation: node.generation === node.seen ? undefined : 'a node goes out for a spec that it did not read',
          }
        if (config.isCounted !== true && node.seen !== generation)
          yield { action: 'sees the new spec', to: to({ ...node, seen: generation }) }
        break
      case 'out':
        yield { action: `releases ${node.index}`, to: to({ is: 'idle' }) }
        break
    }
  }
  const changesSoFar = generation % 10
  if (changesSoFar < config.changes)
    for (const other of config.limits)
      if (other !== limit)
        yield { action: `the budget becomes ${other}`, to: { ...state, limit: other, generation: generation + 1 } }
}

function explore(rules: Rules, config: Config): SearchResult {
  const seen = config.isCounted ? { ...rules, needsList: () => rules.needsList(0, 0) } : rules
  return search<State>({
    initial: {
      nodes: Array.from({ length: config.nodes }, () => ({ is: 'idle' })),
      limit: Math.max(...config.limits),
      generation: 0,
    },
    next: (state) => step(seen, config, state),
    keyOf: symmetricKey,
  })
}

const oneChange: Config = { nodes: 4, limits: [0, 1, 2, 3], changes: 1 }

describe('what the agent asks before its first step', () => {
  test.each<[string, Config, states: number]>([
    ['one change of the budget', oneChange, 8048],
    ['two changes of the budget', { ...oneChange, nodes: 3, changes: 2 }, 17_554],
  ])('with %s, a node that goes out finds fewer nodes out than the budget allows', (_, config, states) => {
    expect(explore(agentRules, config)).toEqual({ outcome: 'holds', states })
  })

  test('a limit that changes without a new generation needs the second LIST', () => {
    const always: Rules = { ...agentRules, needsList: () => true }
    expect(explore(always, { ...oneChange, isCounted: true })).toEqual({ outcome: 'holds', states: 8466 })
    expect(explore(agentRules, { ...oneChange, isCounted: true })).toMatchObject({ outcome: 'violated' })
  })
})

describe('mutants', () => {
  test.each<[string, Partial<Rules>]>([
    ['never lists again', { needsList: () => false }],
    [
      'counts the holders below its index',
      { isStillAdmissible: (own, others, limit) => own + others.filter((other) => other < own).length < limit },
    ],
    ['looks at its own index alone', { isStillAdmissible: (own, _, limit) => own < limit }],
    ['starts other work than it confirmed', { mayStart: () => true }],
  ])('the search catches a node that %s', (_, rule) => {
    expect(explore({ ...agentRules, ...rule }, oneChange)).toMatchObject({ outcome: 'violated' })
  })
})
