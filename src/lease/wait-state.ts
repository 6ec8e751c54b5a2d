/**
 * A node that waits for a slot, as one transition over named states. Pure: the adapter watches what a state asks for,
 * starts its timer, and carries out the effects.
 */
import { lostDelayMs } from './waiting.ts'

/** What the node knows of its turn. Times in ms from now; `lookMs`: when to read the ledger again. */
export type Outlook =
  /** No budget holds it back. */
  | { readonly is: 'unlimited' }
  /** The budget is 0. `dependsOnLedger`: a count may change that. */
  | { readonly is: 'closed'; readonly lookMs: number; readonly dependsOnLedger: boolean }
  /** Nobody has counted for this spec. */
  | { readonly is: 'uncounted'; readonly lookMs: number }
  /** So many come first. */
  | { readonly is: 'far'; readonly lookMs: number; readonly rank: number }
  /** It is time to make ready. */
  | { readonly is: 'in-line'; readonly lookMs: number; readonly isFull: boolean }
  /** One of the first. `isFull`: it sees all slots, and none is free. */
  | { readonly is: 'near'; readonly lookMs: number; readonly isFull: boolean }
  /** The count has a slot for it. */
  | { readonly is: 'due'; readonly lookMs: number; readonly askMs: number }
  /** It sees a free slot. */
  | { readonly is: 'free'; readonly askMs: number }

export type Watched = 'nothing' | 'ledger' | 'slots'

type Waiting = 'far' | 'uncounted' | 'closed' | 'in-line' | 'near'

export type WaitState = {
  readonly watched: Watched
  /** Requests in a row that were not granted though a slot seemed free. */
  readonly refusals: number
} & (
  | { readonly at: Waiting; readonly lookAtMs: number }
  /** Asks then, unless others take the slots meanwhile. */
  | { readonly at: 'turn'; readonly askAtMs: number }
  /** A request is due or under way. */
  | { readonly at: 'asked' }
)

export type WaitEvent =
  | { readonly event: 'seen'; readonly outlook: Outlook }
  /** A request was not granted. */
  | { readonly event: 'denied'; readonly outlook: Outlook }
  | { readonly event: 'timer' }

/** `count-missing`: somebody should look whether there is a census. */
export type WaitEffect = 'ask' | 'read-ledger' | 'count-missing'

export type WaitStep = { readonly state: WaitState; readonly effects: readonly WaitEffect[] }

/** Nothing is known yet. */
export const initialWait: WaitState = { at: 'uncounted', lookAtMs: Infinity, watched: 'nothing', refusals: 0 }

/** When the next timer is due; Infinity: none. */
export const timerOf = (state: WaitState): number =>
  state.at === 'turn' ? state.askAtMs : state.at === 'asked' ? Infinity : state.lookAtMs

/** @param random at least 0, below 1 */
export function nextWait(state: WaitState, event: WaitEvent, nowMs: number, random: number): WaitStep {
  switch (event.event) {
    case 'seen':
      return seen(state, event.outlook, nowMs, random)
    case 'denied': {
      const { watched, refusals } = state
      return seen({ at: 'in-line', lookAtMs: Infinity, watched, refusals: refusals + 1 }, event.outlook, nowMs, random)
    }
    case 'timer':
      if (state.at === 'asked') return stay(state)
      if (state.at === 'turn') return ask(state)
      return {
        state: { ...state, lookAtMs: Infinity },
        effects: state.at === 'uncounted' ? ['read-ledger', 'count-missing'] : ['read-ledger'],
      }
  }
}

const stay = (state: WaitState): WaitStep => ({ state, effects: [] })
const ask = ({ watched, refusals }: WaitState): WaitStep => ({
  state: { at: 'asked', watched, refusals },
  effects: ['ask'],
})

function seen(state: WaitState, outlook: Outlook, nowMs: number, random: number): WaitStep {
  const { watched, refusals } = state
  const waitAt = (at: Waiting, lookMs: number, next: Watched, isFull = false): WaitStep => {
    const isSame = state.at === at && state.lookAtMs !== Infinity
    const lookAtMs = isSame ? state.lookAtMs : nowMs + lookMs
    return stay({ at, lookAtMs, watched: next, refusals: isFull ? 0 : refusals })
  }
  const askIn = (askMs: number): WaitStep => {
    if (state.at === 'asked') return stay(state)
    const askAtMs = nowMs + Math.max(askMs, refusals === 0 ? 0 : lostDelayMs(refusals, random))
    return stay({
      at: 'turn',
      askAtMs: state.at === 'turn' ? Math.min(state.askAtMs, askAtMs) : askAtMs,
      watched,
      refusals,
    })
  }
  switch (outlook.is) {
    case 'unlimited':
      return state.at === 'asked' ? stay(state) : ask(state)
    case 'free':
      return askIn(outlook.askMs)
    case 'closed':
      return waitAt('closed', outlook.lookMs, outlook.dependsOnLedger ? 'ledger' : 'nothing')
    case 'due':
      // who was refused, or sees the slots, goes by what it sees
      if (refusals === 0 && watched !== 'slots') return askIn(outlook.askMs)
      return waitAt('near', outlook.lookMs, 'slots')
    case 'near':
    case 'in-line':
      // a request that is under way needs no watch, and is only put off by what is seen
      if (state.at === 'asked' && !outlook.isFull) return stay(state)
      // who watches all slots goes on: to begin again would show all of them once more
      if (outlook.is === 'near' || watched === 'slots') return waitAt('near', outlook.lookMs, 'slots', outlook.isFull)
      return waitAt('in-line', outlook.lookMs, 'ledger')
    case 'far':
      return state.at === 'asked' ? stay(state) : waitAt('far', outlook.lookMs, 'nothing')
    case 'uncounted':
      return state.at === 'asked' ? stay(state) : waitAt('uncounted', outlook.lookMs, 'ledger')
  }
}
