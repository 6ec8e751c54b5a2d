/**
 * A compartment whose nodes LIST, CREATE, confirm, work, fail and finish, and whose batches two censuses close, in
 * every order. The rules are the product's; a variant replaces one of them.
 */
import { admit, refusalOf } from '../../src/lease/admission.ts'
import { skyhookScope } from '../../src/lease/names.ts'
import { batchLimit, type BatchVerdict, judgeBatch, type OpenBatch } from '../../src/lease/policy/batch.ts'
import { batchOfNextRollout, batchUnder, firstBatch } from '../../src/lease/policy/batch-state.ts'
import type { Strategy } from '../../src/lease/policy/strategy.ts'
import type { ScopeListing } from '../../src/lease/slot-reads.ts'
import type { Slot } from '../../src/lease/slot.ts'
import type { BatchState } from '../../src/schemas/batch-state.ts'
import { search, type SearchResult, type Transition } from './breadth-first.ts'

type Holding = {
  readonly is: 'granted' | 'working' | 'failed' | 'finished'
  readonly index: number
  readonly epoch: number
  /** It has failed before: a batch does not wait for it any more. */
  readonly wasFailed: boolean
  /** In how many batches it was a result. */
  readonly counted: number
  /** When it was admitted. */
  readonly rollout: number
  /** Of the work that it has finished; work that changes while it is under way is the new one at its end. */
  readonly finished?: number
}
type ModelNode =
  | { readonly is: 'idle' | 'done' | 'gone' }
  /** Between its LIST and its CREATE, which may be answered late or never. */
  | { readonly is: 'listed'; readonly index: number; readonly epoch: number }
  | Holding

/** What it is about to write, between its LIST and its PUT. */
type Plan = {
  readonly version: number
  readonly ledger: Ledger
  /** Nodes whose results this write counts. */
  readonly counts: readonly number[]
  /** Written after it, by a census that does not write everything at once. */
  readonly rest?: Pick<Plan, 'ledger' | 'counts'>
}
type Census = Plan | { readonly listed: readonly ModelNode[] } | undefined
type Ledger =
  | { readonly batch: BatchState; readonly policy: number; readonly rollout: number; readonly resets: number }
  | undefined

type State = {
  readonly nodes: readonly ModelNode[]
  readonly ledger: Ledger
  readonly version: number
  readonly censuses: readonly Census[]
  /** Generation of the policy. */
  readonly policy: number
  /** What the nodes have to do. */
  readonly rollout: number
  /** How often a person has asked for the batches to start over. */
  readonly resets: number
  /** Nodes that started in the open batch. */
  readonly starts: number
  readonly left: Readonly<Record<Disturbance, number>>
}

export type Disturbance =
  | 'failures'
  | 'retries'
  | 'nodeDeletions'
  | 'ledgerDeletions'
  | 'edits'
  | 'rollouts'
  | 'returns'
  | 'resets'

export type Rules = {
  readonly judge: (open: OpenBatch, strategy: Strategy, matched: number, isNobodyWaiting: boolean) => BatchVerdict
  readonly limit: (open: OpenBatch) => number
  readonly comparesEpoch: boolean
  /** A ledger of another policy, or of other work, admits nobody. */
  readonly comparesCount: boolean
  readonly comparesVersion: boolean
  readonly keepsFinishedSlot: boolean
  readonly worksUnderFinishedSlot: boolean
  readonly keepsFailedSlot: boolean
  /** Reads ledger and slots again before its first step. */
  readonly confirms: boolean
  /** The census takes ledger and slots from one LIST. */
  readonly listsTogether: boolean
  /** Results and epoch go out in one PUT. */
  readonly writesTogether: boolean
  /** Other work opens another batch beside a reset, too. */
  readonly passesAtReset: boolean
}

export const productRules: Rules = {
  judge: (open, strategy, matched, isNobodyWaiting) => judgeBatch(open, { strategy, matched, isNobodyWaiting }),
  limit: batchLimit,
  comparesEpoch: true,
  comparesCount: true,
  comparesVersion: true,
  keepsFinishedSlot: true,
  worksUnderFinishedSlot: false,
  keepsFailedSlot: true,
  confirms: true,
  listsTogether: true,
  writesTogether: true,
  passesAtReset: true,
}

export type Config = {
  readonly nodes: number
  readonly censuses: number
  /** Strategy and ceiling of each generation of the policy. */
  readonly policies: readonly { readonly strategy: Strategy; readonly ceiling: number }[]
  readonly disturbances?: Partial<Record<Disturbance, number>>
}

const scope = skyhookScope({ name: 's', uid: 'u' }, 'c')
const phaseOf = { granted: 'working', working: 'working', failed: 'failed', finished: 'finished' } as const
const identityOf = (who: number) => ({ name: `n${who}`, uid: `n${who}`, bootId: '' })

const isHolding = (node: ModelNode): node is Holding =>
  node.is === 'granted' || node.is === 'working' || node.is === 'failed' || node.is === 'finished'
const isOut = (node: ModelNode): boolean => node.is === 'working' || node.is === 'failed'

/** Complete, and not for the work of now. */
const hasReturned = (node: ModelNode, { rollout, left }: State): boolean =>
  node.is === 'done' && rollout > 0 && left.returns > 0

const slotsOf = (nodes: readonly ModelNode[]): Slot[] =>
  nodes.flatMap((node, who) =>
    isHolding(node)
      ? [
          {
            name: `slot-${node.index}`,
            uid: `n${who}`,
            resourceVersion: '',
            kind: 'slot',
            scope: scope.hash,
            compartment: scope.labels.compartment,
            compartmentName: 'c',
            index: node.index,
            holder: `n${who}`,
            nodeUid: `n${who}`,
            phase: phaseOf[node.is],
            generation: 1,
            epoch: node.epoch,
            bootId: '',
          } as unknown as Slot,
        ]
      : [],
  )

class Model {
  readonly rules: Rules
  readonly config: Config

  constructor(rules: Rules, config: Config) {
    this.rules = rules
    this.config = config
  }

  policyOf({ policy }: Pick<State, 'policy'>): Config['policies'][number] {
    return this.config.policies[policy] as Config['policies'][number]
  }

  *next(state: State): Generator<Transition<State>> {
    let isAlive = false
    for (const transition of this.#all(state)) {
      isAlive = true
      yield transition
    }
    const { ceiling } = this.policyOf(state)
    const isFinished = state.nodes.every(({ is }) => is === 'done' || is === 'gone' || is === 'failed')
    const isStopped = state.ledger?.batch.stopped === true
    const isFull = state.nodes.filter(({ is }) => is === 'failed').length >= ceiling
    const hasOldCount = state.nodes.some(
      (node) => isHolding(node) && node.is === 'failed' && node.counted === 0 && node.rollout === state.rollout,
    )
    if (!isAlive && !isFinished && !isStopped && !isFull)
      yield { action: 'nothing', to: state, violation: 'nobody can go on' }
    if (!isAlive && hasOldCount && !this.#isUnruly(state))
      yield { action: 'nothing', to: state, violation: 'the last batch is never evaluated' }
  }

  *#all(state: State): Generator<Transition<State>> {
    for (const [who, node] of state.nodes.entries()) yield* this.#node(state, who, node)
    for (let census = 0; census < this.config.censuses; census++) yield* this.#census(state, census)
    yield* this.#world(state)
  }

  #admission(state: State, listing: ScopeListing) {
    const { ledger } = state
    const isOld = ledger?.policy !== state.policy || ledger.rollout !== state.rollout
    if (ledger === undefined || (this.rules.comparesCount && isOld)) return { limit: { unknown: 'not counted' } }
    const { ceiling } = this.policyOf(state)
    const limit = this.rules.limit({ batch: ledger.batch, scope, slots: listing.slots, ceiling })
    return { limit, epoch: this.rules.comparesEpoch ? ledger.batch.epoch : undefined }
  }

  *#node(state: State, who: number, node: ModelNode): Generator<Transition<State>> {
    const withNode = (changed: ModelNode, rest: Partial<State> = {}): State => ({
      ...state,
      ...rest,
      nodes: state.nodes.with(who, changed),
    })
    const slots = this.#slotsOf(state.nodes)
    const listing: ScopeListing = { slots, ledgers: [], resourceVersion: '' }
    const admissionFrom = (now: ScopeListing) => this.#admission(state, now)
    const spend = (what: Disturbance): State['left'] => ({ ...state.left, [what]: state.left[what] - 1 })
    switch (node.is) {
      case 'idle':
        for (let preferredIndex = 0; preferredIndex < this.config.nodes; preferredIndex++) {
          const verdict = admit(listing, { scope, node: identityOf(who), admissionFrom, preferredIndex })
          if (verdict.verdict !== 'create' || !('index' in verdict.target)) continue
          const epoch = state.ledger?.batch.epoch ?? 0
          yield {
            action: `n${who} lists, picks ${verdict.target.index} in epoch ${epoch}`,
            to: withNode({ is: 'listed', index: verdict.target.index, epoch }),
          }
        }
        return
      case 'listed': {
        const { index, epoch } = node
        const isTaken = slots.some((slot) => slot.index === index)
        yield isTaken
          ? { action: `n${who} creates ${index}: 409`, to: withNode({ is: 'idle' }) }
          : {
              action: `n${who} creates ${index}`,
              to: withNode({ is: 'granted', index, epoch, wasFailed: false, counted: 0, rollout: state.rollout }),
            }
        return
      }
      case 'granted': {
        const own = slots.find(({ holder }) => holder === `n${who}`) as Slot
        const refusal = this.rules.confirms && refusalOf(listing, { own, duplicates: [] }, { scope, admissionFrom })
        if (typeof refusal === 'string') yield { action: `n${who} yields: ${refusal}`, to: withNode({ is: 'idle' }) }
        else yield this.#start(state, who, node, 'confirms and starts')
        return
      }
      case 'working':
        yield {
          action: `n${who} finishes`,
          to: withNode(
            this.rules.keepsFinishedSlot ? { ...node, is: 'finished', finished: state.rollout } : { is: 'done' },
          ),
        }
        if (state.left.failures > 0)
          yield {
            action: `n${who} fails`,
            to: withNode({ ...node, is: 'failed', wasFailed: true }, { left: spend('failures') }),
          }
        return
      case 'failed':
        if (state.left.retries > 0)
          yield { action: `n${who} works again`, to: withNode({ ...node, is: 'working' }, { left: spend('retries') }) }
        return
      case 'finished': {
        if (state.ledger !== undefined && state.ledger.batch.epoch > node.epoch) {
          const isResult = !node.wasFailed && node.rollout === state.ledger.rollout
          const violation = isResult && node.counted === 0 && !this.#isUnruly(state) ? 'a result is lost' : undefined
          yield { action: `n${who} releases ${node.index}`, to: withNode({ is: 'done' }), violation }
        }
        if (node.finished !== state.rollout)
          yield this.rules.worksUnderFinishedSlot
            ? this.#start(state, who, node, 'starts again')
            : { action: `n${who} has other work, releases ${node.index}`, to: withNode({ is: 'idle' }) }
        return
      }
      case 'done':
        if (hasReturned(node, state))
          yield { action: `n${who} has other work`, to: withNode({ is: 'idle' }, { left: spend('returns') }) }
        return
      case 'gone':
        return
    }
  }

  /** Where a person took a Node or the ledger away, results and barriers are not promised. */
  #isUnruly({ left }: State): boolean {
    const { nodeDeletions = 0, ledgerDeletions = 0 } = this.config.disturbances ?? {}
    return left.nodeDeletions < nodeDeletions || left.ledgerDeletions < ledgerDeletions
  }

  #start(state: State, who: number, node: Holding, what: string): Transition<State> {
    const starts = state.starts + 1
    const nodes = state.nodes.with(who, { ...node, is: 'working', wasFailed: false })
    const others = state.nodes.filter((_, other) => other !== who)
    const outCount = others.filter(isOut).length
    const { ceiling } = this.policyOf(state)
    const early = others.find(
      (other) =>
        other.is === 'working' && !other.wasFailed && other.epoch !== node.epoch && other.rollout === state.rollout,
    )
    const hasEdits = (this.config.disturbances?.edits ?? 0) > 0
    const bound = hasEdits ? Infinity : (state.ledger?.batch.size ?? 0)
    const violation =
      outCount >= ceiling
        ? `${outCount + 1} nodes are out under a ceiling of ${ceiling}`
        : state.ledger?.batch.stopped === true
          ? 'a node starts in spite of the stop'
          : early !== undefined && !this.#isUnruly(state)
            ? 'a node of another batch is still at work'
            : starts > bound && !this.#isUnruly(state)
              ? `${starts} nodes start in a batch of ${bound}`
              : node.is === 'finished'
                ? 'work starts without an admission'
                : undefined
    return { action: `n${who} ${what}`, to: { ...state, nodes, starts }, violation }
  }

  *#census(state: State, who: number): Generator<Transition<State>> {
    const planned = state.censuses[who]
    const withCensus = (census: Census): readonly Census[] => state.censuses.with(who, census)
    if (planned === undefined && !this.rules.listsTogether) {
      yield { action: `census ${who} lists slots`, to: { ...state, censuses: withCensus({ listed: state.nodes }) } }
      return
    }
    if (planned === undefined || 'listed' in planned) {
      const plan = this.#plan(state, planned?.listed)
      const isKept = plan === undefined && planned === undefined
      if (!isKept) yield { action: `census ${who} lists`, to: { ...state, censuses: withCensus(plan) } }
      return
    }
    yield { action: `census ${who} is killed`, to: { ...state, censuses: withCensus(undefined) } }
    const isConflict = this.rules.comparesVersion && planned.version !== state.version
    if (isConflict) return // killed or not, it lists again
    const nodes = state.nodes.map((node, index) =>
      planned.counts.includes(index) && isHolding(node) ? { ...node, counted: node.counted + 1 } : node,
    )
    const [before, after] = [state.ledger?.batch, planned.ledger?.batch]
    const isPassed = before !== undefined && after !== undefined && after.epoch !== before.epoch
    const isOfOtherWork = state.nodes.some(
      (node, index) =>
        planned.counts.includes(index) && isHolding(node) && node.rollout < (planned.ledger?.rollout ?? 0),
    )
    const results = [...planned.counts, ...(planned.rest?.counts ?? [])]
    const violation =
      nodes.some((node) => isHolding(node) && node.counted > 1) && !this.#isUnruly(state)
        ? 'a result is counted twice'
        : isPassed && after.epoch !== before.epoch + 1 && !this.#isUnruly(state)
          ? `epoch ${after.epoch} follows ${before.epoch}`
          : results.length === 0 && isPassed && planned.ledger?.rollout === state.ledger?.rollout
            ? 'a batch without a node is over'
            : isOfOtherWork && !this.#isUnruly(state)
              ? 'a result of the work before is counted'
              : undefined
    yield {
      action: `census ${who} writes epoch ${after?.epoch}`,
      to: {
        ...state,
        nodes,
        ledger: planned.ledger,
        version: state.version + 1,
        starts: isPassed ? 0 : state.starts,
        censuses: withCensus(planned.rest && { ...planned.rest, version: state.version + 1 }),
      },
      violation,
    }
  }

  #slotsOf(nodes: readonly ModelNode[]): readonly Slot[] {
    return slotsOf(nodes).filter(({ phase }) => this.rules.keepsFailedSlot || phase !== 'failed')
  }

  #plan(state: State, listed: readonly ModelNode[] = state.nodes): Plan | undefined {
    const { strategy, ceiling } = this.policyOf(state)
    const slots = this.#slotsOf(listed)
    const { ledger, version, policy, rollout, resets } = state
    if (ledger === undefined) {
      return { version, ledger: { batch: firstBatch(strategy, 1), policy, rollout, resets }, counts: [] }
    }
    const isReset = ledger.resets !== resets
    if (ledger.policy !== policy)
      return { version, ledger: { ...ledger, batch: batchUnder(strategy, ledger.batch), policy }, counts: [] }
    if (ledger.rollout !== rollout && (this.rules.passesAtReset || !isReset))
      return {
        version,
        ledger: { batch: batchOfNextRollout(ledger.batch, strategy, isReset), policy, rollout, resets },
        counts: [],
      }
    if (isReset)
      return {
        version,
        ledger: { batch: firstBatch(strategy, ledger.batch.epoch), policy, rollout, resets },
        counts: [],
      }
    // a Node tells of which work it is complete
    const isWaiting = (node: ModelNode): boolean =>
      node.is === 'finished' ? node.finished !== rollout : ['idle', 'listed', 'granted'].includes(node.is)
    const isNobodyWaiting = !state.nodes.some((node) => isWaiting(node) || hasReturned(node, state))
    const matched = state.nodes.filter(({ is }) => is !== 'gone').length
    const verdict = this.rules.judge({ batch: ledger.batch, scope, slots, ceiling }, strategy, matched, isNobodyWaiting)
    if (verdict.verdict === 'open') return undefined
    const counts = listed.flatMap((node, who) =>
      isHolding(node) && node.epoch >= ledger.batch.epoch && (node.is === 'failed' || node.is === 'finished')
        ? [who]
        : [],
    )
    const next = { batch: verdict.next, policy, rollout, resets }
    if (this.rules.writesTogether) return { version, ledger: next, counts }
    const passed = { ...next, batch: { ...ledger.batch, epoch: verdict.next.epoch } }
    return { version, ledger: passed, counts: [], rest: { ledger: next, counts } }
  }

  *#world(state: State): Generator<Transition<State>> {
    const { left, policy } = state
    if (left.nodeDeletions > 0)
      for (const [who, node] of state.nodes.entries())
        if (isHolding(node))
          yield {
            action: `Node n${who} is deleted`,
            to: {
              ...state,
              nodes: state.nodes.with(who, { is: 'gone' }),
              left: { ...left, nodeDeletions: left.nodeDeletions - 1 },
            },
          }
    if (left.ledgerDeletions > 0 && state.ledger !== undefined)
      yield {
        action: 'the ledger is deleted',
        to: {
          ...state,
          ledger: undefined,
          version: state.version + 1,
          starts: 0,
          left: { ...left, ledgerDeletions: left.ledgerDeletions - 1 },
        },
      }
    if (left.rollouts > 0)
      yield {
        action: 'there is other work',
        to: { ...state, rollout: state.rollout + 1, left: { ...left, rollouts: left.rollouts - 1 } },
      }
    if (left.resets > 0)
      yield {
        action: 'the batches are to start over',
        to: { ...state, resets: state.resets + 1, left: { ...left, resets: left.resets - 1 } },
      }
    if (left.edits > 0 && policy + 1 < this.config.policies.length)
      yield {
        action: 'the policy is edited',
        to: { ...state, policy: policy + 1, left: { ...left, edits: left.edits - 1 } },
      }
  }
}

const text = (node: ModelNode): string =>
  isHolding(node)
    ? `${node.is} ${node.index} ${node.epoch} ${node.wasFailed} ${node.counted} ${node.rollout} ${node.finished}`
    : node.is === 'listed'
      ? `listed ${node.index} ${node.epoch}`
      : node.is

/** Versions matter only to those who compare with them. */
function censusText({ version }: State, census: Census): string {
  if (census === undefined) return '-'
  if ('listed' in census) return census.listed.map(text).join()
  return JSON.stringify([version === census.version, census.ledger, census.counts, census.rest])
}

const noDisturbances = {
  failures: 0,
  retries: 0,
  nodeDeletions: 0,
  ledgerDeletions: 0,
  edits: 0,
  rollouts: 0,
  returns: 0,
  resets: 0,
}

export function explore(rules: Rules, config: Config): SearchResult {
  const model = new Model(rules, config)
  return search<State>({
    initial: {
      nodes: Array.from({ length: config.nodes }, () => ({ is: 'idle' })),
      ledger: undefined,
      version: 0,
      censuses: Array.from({ length: config.censuses }, () => undefined),
      policy: 0,
      rollout: 0,
      resets: 0,
      starts: 0,
      left: { ...noDisturbances, ...config.disturbances },
    },
    next: (state) => model.next(state),
    keyOf: (state) =>
      JSON.stringify([
        state.nodes.map(text), // results name nodes: they are not interchangeable while a census has them
        state.ledger,
        state.censuses.map((census) => censusText(state, census)).toSorted(),
        state.policy,
        state.rollout,
        state.resets,
        state.starts,
        Object.values(state.left),
      ]),
  })
}
