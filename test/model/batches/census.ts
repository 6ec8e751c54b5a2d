/** What a census does: it LISTs ledger and slots, judges the open batch, and writes the ledger if nobody else has. */
import { batchOfNextRollout, batchUnder, firstBatch } from '../../../src/lease/policy/batch.ts'
import type { BatchState } from '../../../src/schemas/deployment-policy.ts'
import type { Transition } from '../breadth-first.ts'
import { isPassed, writeViolation } from './judge.ts'
import {
  type BatchNode,
  type Census,
  hasReturned,
  isHolding,
  type Ledger,
  policyOf,
  scope,
  slotsOf,
  type State,
  type Wanted,
  type World,
  type Writing,
} from './state.ts'

export function* censusSteps(world: World, state: State, who: number, census: Census): Generator<Transition<State>> {
  const to = (next: Census): State => ({ ...state, censuses: state.censuses.with(who, next) })
  switch (census.is) {
    case 'idle':
    case 'listed': {
      if (census.is === 'idle' && !world.rules.listsTogether)
        return yield { action: `census ${who} lists slots`, to: to({ is: 'listed', nodes: state.nodes }) }
      const listed = census.is === 'listed' ? census.nodes : state.nodes
      return yield { action: `census ${who} lists`, to: to(judged(world, state, listed) ?? { is: 'idle' }) }
    }
    case 'writing':
      yield { action: `census ${who} is killed`, to: to({ is: 'idle' }) }
      if (census.isOutdated && world.rules.comparesVersion) return // killed or not, it lists again
      return yield write(world, state, who, census)
  }
}

function write(world: World, state: State, who: number, census: Writing): Transition<State> {
  const { ledger, counts, rest } = census
  const nodes = state.nodes.map((node, index) =>
    counts.includes(index) && isHolding(node) ? { ...node, counted: node.counted + 1 } : node,
  )
  const written = withLedger({ ...state, nodes }, ledger)
  const next: Census = rest ? { is: 'writing', isOutdated: false, ...rest } : { is: 'idle' }
  const starts = isPassed(state.ledger, ledger) ? 0 : state.starts
  return {
    action: `census ${who} writes epoch ${ledger.batch.epoch}`,
    to: { ...written, starts, censuses: written.censuses.with(who, next) },
    violation: writeViolation(world, state, nodes, census),
  }
}

/** Whoever is about to write the ledger has read another one. */
export const withLedger = (state: State, ledger: Ledger | undefined): State => ({
  ...state,
  ledger,
  censuses: state.censuses.map((census) => (census.is === 'writing' ? { ...census, isOutdated: true } : census)),
})

/** What is to be written, by the nodes of a LIST; undefined while the batch is open. */
function judged(world: World, state: State, listed: readonly BatchNode[]): Writing | undefined {
  const { ledger, wanted } = state
  const { strategy, ceiling } = policyOf(world, state)
  if (ledger === undefined) return writing(firstBatch(strategy, 1), wanted)
  const { batch, policy, rollout, resets } = ledger
  const isReset = resets !== wanted.resets
  if (policy !== wanted.policy) return writing(batchUnder(strategy, batch), { ...wanted, rollout, resets })
  if (rollout !== wanted.rollout && (world.rules.passesAtReset || !isReset))
    return writing(batchOfNextRollout(batch, strategy, isReset), wanted)
  if (isReset) return writing(firstBatch(strategy, batch.epoch), wanted)

  const open = { batch, scope, slots: slotsOf(world, listed), ceiling }
  const matched = state.nodes.filter(({ is }) => is !== 'gone').length
  const isNobodyWaiting = !state.nodes.some((node) => isWaiting(node, state))
  const verdict = world.rules.judge(open, { strategy, matched, isNobodyWaiting })
  if (verdict.verdict === 'open') return undefined
  const counts = listed.flatMap((node, who) => {
    const isResult = (node.is === 'failed' || node.is === 'finished') && node.epoch >= batch.epoch
    return isResult ? [who] : []
  })
  const { next } = verdict
  if (world.rules.writesTogether) return writing(next, wanted, counts)
  const rest = { ledger: { batch: next, ...wanted }, counts }
  return { ...writing({ ...batch, epoch: next.epoch }, wanted), rest }
}

const writing = (batch: BatchState, of: Wanted, counts: readonly number[] = []): Writing => ({
  is: 'writing',
  isOutdated: false,
  ledger: { batch, ...of },
  counts,
})

/** It could ask for a slot now. A Node tells of which work it is complete. */
const isWaiting = (node: BatchNode, state: State): boolean =>
  node.is === 'finished'
    ? node.finished !== state.wanted.rollout
    : ['idle', 'listed', 'granted'].includes(node.is) || hasReturned(node, state)
