/**
 * A small fleet in line for slots, by the agent's own transition and outlook. Time goes by in half steps of a hand-over
 * (src/lease/waiting.ts). Within one, what can happen happens in any order: events reach nodes, requests are answered,
 * nodes are done, the census writes its ledger, a person edits the budget.
 */
import { admissibleIndices } from '../../src/lease/rule.ts'
import { outlookOf } from '../../src/lease/outlook.ts'
import { initialWait, nextWait, type WaitEvent, type WaitState } from '../../src/lease/wait-state.ts'
import { handOverStepMs, hashFraction } from '../../src/lease/waiting.ts'
import { search, type SearchResult, type Transition } from './breadth-first.ts'

/** What a node goes by, all of it as it was at some moment. */
type Seen = {
  readonly limit: number
  /** As the ledger says; undefined without one. */
  readonly waiters: number | undefined
  /** Of all slots. */
  readonly held: readonly number[]
  readonly areSlotsShown: boolean
}

type Life =
  | { readonly is: 'waiting' }
  /** Between its LIST and its CREATE. */
  | { readonly is: 'listed'; readonly index: number }
  | { readonly is: 'holding'; readonly index: number }
  | { readonly is: 'done' }

type ModelNode = {
  readonly life: Life
  readonly wait: WaitState
  readonly seen: Seen
  /** Something happened that it has not seen. */
  readonly hasNews: boolean
  /** It asks, and has no answer. */
  readonly isAsking: boolean
}

type State = {
  readonly nodes: readonly ModelNode[]
  readonly limit: number
  readonly waiters: number | undefined
  readonly editsLeft: number
  readonly countsLeft: number
  /** For how many half steps a slot was free while somebody waited. */
  readonly idle: number
  /** Requests that began in this half step, and slots that were free at some moment of it. */
  readonly asks: number
  readonly freed: number
}

export type WaitRules = {
  readonly nextWait: typeof nextWait
  readonly outlookOf: typeof outlookOf
}

export const waitRules: WaitRules = { nextWait, outlookOf }

export type WaitModelConfig = {
  readonly nodes: number
  readonly limits: readonly number[]
  readonly edits: number
  /** How often the census writes; the first time at the start. */
  readonly counts: number
  /** The node that comes first waits and never asks. */
  readonly isFirstUnable?: boolean
  /** Without a census. */
  readonly isUncounted?: boolean
  readonly maxIdleHalfSteps: number
  /** Requests beyond the slots that are free, in one half step. */
  readonly maxVainAsks: number
}

const halfStepMs = handOverStepMs(0) / 2
const uids = Array.from({ length: 8 }, (_, index) => `node-${index}`).toSorted((a, b) =>
  Math.sign(hashFraction(a) - hashFraction(b)),
)
const uidOf = (who: number): string => uids[who] as string

const indicesOf = (nodes: readonly ModelNode[]): number[] =>
  nodes.flatMap(({ life }) => (life.is === 'holding' ? [life.index] : []))

class WaitModel {
  readonly rules: WaitRules
  readonly config: WaitModelConfig

  constructor(rules: WaitRules, config: WaitModelConfig) {
    this.rules = rules
    this.config = config
  }

  initial(): State {
    const { config } = this
    const limit = config.limits[0] as number
    const seen: Seen = { limit, waiters: undefined, held: [], areSlotsShown: false }
    const node: ModelNode = { life: { is: 'waiting' }, wait: initialWait, seen, hasNews: true, isAsking: false }
    const nodes = Array.from({ length: config.nodes }, () => node)
    const empty = { nodes, limit, waiters: undefined }
    const state = { ...empty, editsLeft: config.edits, countsLeft: config.counts, idle: 0, asks: 0, freed: limit }
    return config.isUncounted ? state : this.#counted(state)
  }

  *next(state: State): Generator<Transition<State>> {
    const waiting = state.nodes.filter((node, who) => node.life.is === 'waiting' && this.#isAble(who))
    let isQuiet = true
    for (const [who, node] of state.nodes.entries()) {
      for (const transition of this.#node(state, who, node)) {
        isQuiet = false
        yield transition
      }
      if (node.life.is === 'holding') yield { action: `n${who} is done`, to: this.#released(state, who) }
    }
    if (state.countsLeft > 0 && !this.config.isUncounted)
      yield { action: 'the census counts', to: this.#counted(state) }
    if (state.editsLeft > 0)
      for (const limit of this.config.limits)
        if (limit !== state.limit)
          yield {
            action: `the budget becomes ${limit}`,
            to: this.#news({ ...state, limit, editsLeft: state.editsLeft - 1, freed: state.freed + limit }),
          }
    if (!isQuiet) return
    const hasTimer = state.nodes.some(({ life, wait }) => life.is === 'waiting' && wait.timerAtMs < Infinity)
    if (hasTimer) yield this.#timePasses(state, waiting.length)
    else if (waiting.length > 0 && admissibleIndices(indicesOf(state.nodes), state.limit).length > 0)
      yield { action: 'nothing', to: state, violation: `${waiting.length} nodes wait for nothing` }
  }

  #isAble(who: number): boolean {
    return !(this.config.isFirstUnable && who === 0)
  }

  *#node(state: State, who: number, node: ModelNode): Generator<Transition<State>> {
    const { life, wait } = node
    if (life.is === 'done' || life.is === 'holding') return
    if (node.hasNews && life.is === 'waiting') {
      const { limit, waiters } = state
      const seen = { limit, waiters, held: indicesOf(state.nodes), areSlotsShown: areSlotsWatched(wait) }
      const informed = { ...node, seen, hasNews: false }
      yield { action: `n${who} sees`, to: this.#dispatch(state, who, informed, 'seen') }
    }
    const admissible = admissibleIndices(indicesOf(state.nodes), state.limit)
    if (life.is === 'waiting' && node.isAsking) {
      if (admissible.length === 0)
        yield { action: `n${who} lists: full`, to: this.#dispatch(state, who, { ...node, isAsking: false }, 'denied') }
      for (const index of admissible)
        yield {
          action: `n${who} lists, picks ${index}`,
          to: { ...state, nodes: state.nodes.with(who, { ...node, life: { is: 'listed', index }, isAsking: false }) },
        }
    }
    if (life.is === 'listed') {
      if (indicesOf(state.nodes).includes(life.index)) {
        const lost: ModelNode = { ...node, life: { is: 'waiting' } }
        yield { action: `n${who} creates: 409`, to: this.#dispatch(state, who, lost, 'denied') }
      } else {
        const holding: ModelNode = { ...node, life: { is: 'holding', index: life.index }, wait: initialWait }
        const granted = { ...state, nodes: state.nodes.with(who, holding) }
        yield { action: `n${who} creates ${life.index}`, to: this.#news(granted) }
      }
    }
    if (life.is === 'waiting' && !node.hasNews && wait.timerAtMs <= 0)
      yield { action: `n${who}: timer`, ...this.#withAsks(this.#dispatch(state, who, node, 'timer')) }
  }

  /** Other nodes hear of it. */
  #news(state: State): State {
    return {
      ...state,
      nodes: state.nodes.map((node) => ({ ...node, hasNews: node.life.is === 'waiting' || node.hasNews })),
    }
  }

  #released(state: State, who: number): State {
    const node = state.nodes[who] as ModelNode
    const nodes = state.nodes.with(who, { ...node, life: { is: 'done' }, hasNews: false })
    return this.#news({ ...state, nodes, freed: state.freed + 1 })
  }

  #counted(state: State): State {
    const inLine = state.nodes.filter(({ life }) => life.is === 'waiting' || life.is === 'listed')
    return this.#news({ ...state, waiters: inLine.length, countsLeft: state.countsLeft - 1 })
  }

  #dispatch(state: State, who: number, node: ModelNode, event: WaitEvent['event']): State {
    if (event === 'denied') {
      const { state: wait } = this.rules.nextWait(node.wait, { event }, 0, 0)
      return this.#dispatch(state, who, { ...node, wait }, 'seen')
    }
    const step = this.rules.nextWait(node.wait, event === 'timer' ? { event } : this.#seen(node, who), 0, 0)
    const isSlotsWatchNew = areSlotsWatched(step.state) && !areSlotsWatched(node.wait)
    const isAsking = node.isAsking || (step.effects.includes('ask') && this.#isAble(who))
    const asks = state.asks + (isAsking && !node.isAsking ? 1 : 0)
    const next: ModelNode = { ...node, wait: step.state, isAsking, hasNews: node.hasNews || isSlotsWatchNew }
    return { ...state, asks, nodes: state.nodes.with(who, next) }
  }

  #withAsks(to: State): Pick<Transition<State>, 'to' | 'violation'> {
    if (to.asks <= to.freed + this.config.maxVainAsks) return { to }
    return { to, violation: `${to.asks} nodes ask at once for ${to.freed} slots` }
  }

  #seen({ seen, wait }: ModelNode, who: number): WaitEvent {
    const { watched } = wait
    const free = admissibleIndices(seen.held, seen.limit).filter(
      (one) => typeof watched === 'string' || watched.includes(one),
    )
    const matched = this.config.nodes
    const outlook = this.rules.outlookOf(
      {
        nodeUid: uidOf(who),
        limit: seen.limit,
        dependsOnLedger: false,
        queue: seen.waiters === undefined ? undefined : { matched, waiters: seen.waiters },
        unchangedMs: 0,
        hasLine: true,
        others: matched,
        isCountAwaited: false,
        needsAllSlots: false,
        free: seen.areSlotsShown && areSlotsWatched(wait) ? free.length : undefined,
        asleep: { ms: 0, done: 0 },
        answerMs: 0,
        lot: 0,
      },
      who / matched,
    )
    // no look is needed
    return { event: 'seen', outlook: 'lookMs' in outlook ? { ...outlook, lookMs: Infinity } : outlook }
  }

  #timePasses(state: State, waiting: number): Transition<State> {
    const free = admissibleIndices(indicesOf(state.nodes), state.limit).length
    const idle = free > 0 && waiting > 0 ? state.idle + 1 : 0
    const nodes = state.nodes.map((node) => ({ ...node, wait: earlier(node.wait) }))
    const to = { ...state, nodes, idle, asks: 0, freed: free }
    if (idle <= this.config.maxIdleHalfSteps) return { action: 'time passes', to }
    return { action: 'time passes', to, violation: `a slot is free for more than ${(idle - 1) * halfStepMs} ms` }
  }
}

const areSlotsWatched = ({ watched }: WaitState): boolean => watched !== 'nothing' && watched !== 'ledger'

const earlier = (wait: WaitState): WaitState => ({ ...wait, timerAtMs: Math.max(0, wait.timerAtMs - halfStepMs) })

export function searchWaits(rules: WaitRules, config: WaitModelConfig): SearchResult {
  const model = new WaitModel(rules, config)
  return search({
    initial: model.initial(),
    next: (state) => model.next(state),
    keyOf: (state) => JSON.stringify(state, (_, value: unknown) => (value === Infinity ? 'never' : value)),
  })
}
