/** What a node does: LIST, CREATE, confirmation, work and release, by the product's own admission. */
import { admit, refusalOf } from '../../../src/lease/admission.ts'
import type { ScopeListing } from '../../../src/lease/slot-reads.ts'
import type { Transition } from '../breadth-first.ts'
import { lostResult, startViolation } from './judge.ts'
import {
  type BatchNode,
  hasReturned,
  type Holding,
  identityOf,
  policyOf,
  scope,
  slotsOf,
  spend,
  type State,
  type World,
} from './state.ts'

export function* nodeSteps(world: World, state: State, who: number, node: BatchNode): Generator<Transition<State>> {
  const { wanted, left } = state
  const to = (changed: BatchNode, rest: Partial<State> = {}): State => ({
    ...state,
    ...rest,
    nodes: state.nodes.with(who, changed),
  })
  switch (node.is) {
    case 'idle':
      return yield* listings(world, state, who, to)
    case 'listed': {
      const { index, epoch } = node
      const isTaken = slotsOf(world, state.nodes).some((slot) => slot.index === index)
      const granted: Holding = { is: 'granted', index, epoch, wasFailed: false, counted: 0, rollout: wanted.rollout }
      return yield isTaken
        ? { action: `n${who} creates ${index}: 409`, to: to({ is: 'idle' }) }
        : { action: `n${who} creates ${index}`, to: to(granted) }
    }
    case 'granted': {
      const refusal = world.rules.confirms ? refusalNow(world, state, who) : undefined
      return yield refusal === undefined
        ? start(world, state, who, node, 'confirms and starts')
        : { action: `n${who} yields: ${refusal}`, to: to({ is: 'idle' }) }
    }
    case 'working': {
      const finished: BatchNode = { ...node, is: 'finished', finished: wanted.rollout }
      yield { action: `n${who} finishes`, to: to(world.rules.keepsFinishedSlot ? finished : { is: 'done' }) }
      if (left.failures === 0) return
      const failed = to({ ...node, is: 'failed', wasFailed: true }, spend(state, 'failures'))
      return yield { action: `n${who} fails`, to: failed, isFault: true }
    }
    case 'failed':
      if (left.retries === 0) return
      return yield {
        action: `n${who} works again`,
        to: to({ ...node, is: 'working' }, spend(state, 'retries')),
        isFault: true,
      }
    case 'finished': {
      const isOver = state.ledger !== undefined && state.ledger.batch.epoch > node.epoch
      if (isOver)
        yield {
          action: `n${who} releases ${node.index}`,
          to: to({ is: 'done' }),
          violation: lostResult(world, state, node),
        }
      if (node.finished === wanted.rollout) return
      return yield world.rules.worksUnderFinishedSlot
        ? start(world, state, who, node, 'starts again')
        : { action: `n${who} has other work, releases ${node.index}`, to: to({ is: 'idle' }) }
    }
    case 'done':
      if (!hasReturned(node, state)) return
      return yield { action: `n${who} has other work`, to: to({ is: 'idle' }, spend(state, 'returns')) }
    case 'gone':
      return
  }
}

/** Every index that the admission may pick. */
function* listings(
  world: World,
  state: State,
  who: number,
  to: (changed: BatchNode) => State,
): Generator<Transition<State>> {
  const listing = listingOf(world, state)
  const asking = { scope, node: identityOf(who), admissionFrom: admissionFrom(world, state) }
  const epoch = state.ledger?.batch.epoch ?? 0
  for (const preferredIndex of state.nodes.keys()) {
    const verdict = admit(listing, { ...asking, preferredIndex })
    if (verdict.verdict !== 'create' || !('index' in verdict.target)) continue
    const { index } = verdict.target
    yield { action: `n${who} lists, picks ${index} in epoch ${epoch}`, to: to({ is: 'listed', index, epoch }) }
  }
}

function refusalNow(world: World, state: State, who: number): string | undefined {
  const listing = listingOf(world, state)
  const own = listing.slots.find(({ holder }) => holder === identityOf(who).name)
  if (!own) throw new Error(`n${who} holds no slot`)
  return refusalOf(listing, { own, duplicates: [] }, { scope, admissionFrom: admissionFrom(world, state) })
}

const listingOf = (world: World, { nodes }: State): ScopeListing => ({
  slots: slotsOf(world, nodes),
  ledgers: [],
  resourceVersion: '',
})

function admissionFrom(world: World, state: State) {
  const { ledger, wanted } = state
  return ({ slots }: ScopeListing) => {
    const isOld = ledger?.policy !== wanted.policy || ledger.rollout !== wanted.rollout
    if (ledger === undefined || (world.rules.comparesCount && isOld)) return { limit: { unknown: 'not counted' } }
    const { ceiling } = policyOf(world, state)
    const limit = world.rules.limit({ batch: ledger.batch, scope, slots, ceiling })
    return { limit, epoch: world.rules.comparesEpoch ? ledger.batch.epoch : undefined }
  }
}

function start(world: World, state: State, who: number, node: Holding, what: string): Transition<State> {
  const nodes = state.nodes.with(who, { ...node, is: 'working', wasFailed: false })
  return {
    action: `n${who} ${what}`,
    to: { ...state, nodes, starts: state.starts + 1 },
    violation: startViolation(world, state, who, node),
  }
}
