/** What batches promise. Where a person took a Node or the ledger away, results and barriers are not promised. */
import {
  type BatchNode,
  type Holding,
  isHolding,
  type Ledger,
  policyOf,
  type State,
  type World,
  type Writing,
} from './state.ts'

const isUnruly = ({ config: { disturbances } }: World, { left }: State): boolean =>
  left.nodeDeletions < disturbances.nodeDeletions || left.ledgerDeletions < disturbances.ledgerDeletions

/** Why the node must not start now. */
export function startViolation(world: World, state: State, who: number, node: Holding): string | undefined {
  const { ledger, wanted } = state
  const { ceiling } = policyOf(world, state)
  const others = state.nodes.filter((_, other) => other !== who)
  const outCount = others.filter(({ is }) => is === 'working' || is === 'failed').length
  if (outCount >= ceiling) return `${outCount + 1} nodes are out under a ceiling of ${ceiling}`
  if (ledger?.batch.stopped === true) return 'a node starts in spite of the stop'
  if (node.is === 'finished') return 'work starts without an admission'
  if (isUnruly(world, state)) return undefined
  const isEarly = others.some(
    (other) =>
      other.is === 'working' && !other.wasFailed && other.epoch !== node.epoch && other.rollout === wanted.rollout,
  )
  if (isEarly) return 'a node of another batch is still at work'
  const starts = state.starts + 1
  const bound = world.config.disturbances.edits > 0 ? Infinity : (ledger?.batch.size ?? 0)
  return starts > bound ? `${starts} nodes start in a batch of ${bound}` : undefined
}

/** Why a node that finished in an earlier batch must not release its slot. */
export function lostResult(world: World, state: State, node: Holding): string | undefined {
  const isResult = !node.wasFailed && node.rollout === state.ledger?.rollout
  return isResult && node.counted === 0 && !isUnruly(world, state) ? 'a result is lost' : undefined
}

/** Why the ledger must not be written. `nodes`: with what the write counts. */
export function writeViolation(
  world: World,
  state: State,
  nodes: readonly BatchNode[],
  { ledger, counts, rest }: Writing,
): string | undefined {
  const before = state.ledger
  const hasResults = counts.length + (rest?.counts.length ?? 0) > 0
  if (isPassed(before, ledger) && !hasResults && ledger.rollout === before?.rollout)
    return 'a batch without a node is over'
  if (isUnruly(world, state)) return undefined
  const holding = nodes.filter(isHolding)
  if (holding.some(({ counted }) => counted > 1)) return 'a result is counted twice'
  if (before && isPassed(before, ledger) && ledger.batch.epoch !== before.batch.epoch + 1)
    return `epoch ${ledger.batch.epoch} follows ${before.batch.epoch}`
  const isOfOtherWork = nodes.some(
    (node, who) => counts.includes(who) && isHolding(node) && node.rollout < ledger.rollout,
  )
  return isOfOtherWork ? 'a result of the work before is counted' : undefined
}

/** Whether the write opens another batch. */
export const isPassed = (before: Ledger | undefined, { batch }: Ledger): boolean =>
  before !== undefined && batch.epoch !== before.batch.epoch

/** Nobody can start any more, and nothing is left that a batch has to count. */
export function isEnd(world: World, state: State): boolean {
  const { nodes, ledger, wanted } = state
  const isFinished = nodes.every(({ is }) => is === 'done' || is === 'gone' || is === 'failed')
  const isFull = nodes.filter(({ is }) => is === 'failed').length >= policyOf(world, state).ceiling
  const isCounted = !nodes.some((node) => node.is === 'failed' && node.counted === 0 && node.rollout === wanted.rollout)
  return (isFinished || isFull || ledger?.batch.stopped === true) && (isCounted || isUnruly(world, state))
}
