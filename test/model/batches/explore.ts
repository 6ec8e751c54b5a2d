/**
 * A compartment whose nodes LIST, CREATE, confirm, work, fail and finish, and whose batches censuses close, in every
 * order. Each state leads to an end without a further failure or a deed of a person.
 */
import { search, type SearchResult, type Transition } from '../breadth-first.ts'
import { censusSteps, withLedger } from './census.ts'
import { isEnd } from './judge.ts'
import { nodeSteps } from './node.ts'
import type { Rules } from './rules.ts'
import { type Config, type Disturbances, isHolding, spend, type State, type World } from './state.ts'

export function explore(rules: Rules, config: Config): SearchResult {
  const world: World = { rules, config }
  return search<State>({
    initial: {
      nodes: Array.from({ length: config.nodes }, () => ({ is: 'idle' })),
      ledger: undefined,
      censuses: Array.from({ length: config.censuses }, () => ({ is: 'idle' })),
      wanted: { policy: 0, rollout: 0, resets: 0 },
      starts: 0,
      left: config.disturbances,
    },
    next: (state) => stepsOf(world, state),
    // results name nodes: they are not interchangeable while a census has them
    keyOf: ({ censuses, ...state }) =>
      JSON.stringify([state, censuses.map((census) => JSON.stringify(census)).toSorted()]),
    isEnd: (state) => isEnd(world, state),
  })
}

function* stepsOf(world: World, state: State): Generator<Transition<State>> {
  for (const [who, node] of state.nodes.entries()) yield* nodeSteps(world, state, who, node)
  for (const [who, census] of state.censuses.entries()) yield* censusSteps(world, state, who, census)
  for (const [what, action, to] of deeds(world, state))
    if (state.left[what] > 0) yield { action, to: { ...to, ...spend(state, what) }, isFault: true }
}

/** What people may do. */
function* deeds({ config }: World, state: State): Generator<[what: keyof Disturbances, action: string, to: State]> {
  const { nodes, ledger, wanted } = state
  const want = (change: Partial<State['wanted']>): State => ({ ...state, wanted: { ...wanted, ...change } })
  for (const [who, node] of nodes.entries())
    if (isHolding(node))
      yield ['nodeDeletions', `Node n${who} is deleted`, { ...state, nodes: nodes.with(who, { is: 'gone' }) }]
  if (ledger) yield ['ledgerDeletions', 'the ledger is deleted', { ...withLedger(state, undefined), starts: 0 }]
  yield ['rollouts', 'there is other work', want({ rollout: wanted.rollout + 1 })]
  yield ['resets', 'the batches are to start over', want({ resets: wanted.resets + 1 })]
  if (wanted.policy + 1 < config.policies.length)
    yield ['edits', 'the policy is edited', want({ policy: wanted.policy + 1 })]
}
