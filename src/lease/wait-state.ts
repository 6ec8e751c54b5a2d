/**
 * A node that waits for a slot, as one transition over named states. Pure: the adapter watches what a state requests,
 * starts its timer, and carries out the effects.
 */
import { lostDelayMs } from './waiting.ts'

type Waiting =
  /** Too many nodes come first: it sleeps. */
  | 'far'
  /** No census has counted for this spec, or only a new count can raise the budget. */
  | 'uncounted'
  /** The budget is 0. */
  | 'closed'

/** What the node knows of its turn. Times in ms from now. */
export type Outlook =
  /** No budget limits it. */
  | { readonly is: 'unlimited' }
  /** It sees a free slot. */
  | { readonly is: 'free'; readonly askMs: number }
  /** `lookMs`: when to read the ledger again. `isFull`: it knows that no slot is free. */
  | { readonly is: Waiting; readonly lookMs: number; readonly isFull: boolean }
  /** One of the next. */
  | { readonly is: 'in-line'; readonly watched: Slots; readonly lookMs: number; readonly isFull: boolean }

/** Those of these indices or all of them, and the ledger. */
type Slots = readonly number[] | 'all'

export type Watched = 'nothing' | 'ledger' | Slots

const watchedAt: Readonly<Record<Waiting, Watched>> = { far: 'nothing', uncounted: 'ledger', closed: 'nothing' }

export type WaitState = {
  /** `turn`: it asks soon, unless others take the slots meanwhile. `asked`: a request is due or in flight. */
  readonly at: Waiting | 'in-line' | 'turn' | 'asked'
  /** When to ask, or to read the ledger again. Infinity: no timer. */
  readonly timerAtMs: number
  readonly watched: Watched
  /** Requests in a row that were not granted though a slot seemed free. */
  readonly refusals: number
}

export type WaitEvent =
  | { readonly event: 'seen'; readonly outlook: Outlook }
  /** A request was not granted: the node looks again. */
  | { readonly event: 'denied' }
  | { readonly event: 'timer' }

/** `count-missing`: ask for a look at whether there is a census. */
export type WaitEffect = 'ask' | 'read-ledger' | 'count-missing'

export type WaitStep = { readonly state: WaitState; readonly effects: readonly WaitEffect[] }

/** Nothing is known yet. */
export const initialWait: WaitState = { at: 'uncounted', timerAtMs: Infinity, watched: 'nothing', refusals: 0 }

/** @param random at least 0, below 1 */
export function nextWait(state: WaitState, event: WaitEvent, nowMs: number, random: number): WaitStep {
  switch (event.event) {
    case 'seen':
      return seen(state, event.outlook, nowMs, random)
    case 'denied':
      return stay({ ...untimed(state, 'in-line'), refusals: state.refusals + 1 })
    case 'timer':
      if (state.at === 'asked') return stay(state)
      if (state.at === 'turn') return ask(state)
      return {
        state: untimed(state, state.at),
        effects: state.at === 'uncounted' ? ['read-ledger', 'count-missing'] : ['read-ledger'],
      }
  }
}

const untimed = (state: WaitState, at: WaitState['at']): WaitState => ({ ...state, at, timerAtMs: Infinity })
const stay = (state: WaitState): WaitStep => ({ state, effects: [] })
const ask = (state: WaitState): WaitStep => ({ state: untimed(state, 'asked'), effects: ['ask'] })

function seen(state: WaitState, outlook: Outlook, nowMs: number, random: number): WaitStep {
  const { refusals } = state
  const isFull = 'isFull' in outlook && outlook.isFull
  // a request in flight needs no watch, and is only postponed where no slot is free
  if (state.at === 'asked' && !isFull) return stay(state)
  if (outlook.is === 'unlimited') return ask(state)
  if (outlook.is === 'free') {
    if (state.at === 'turn') return stay(state) // it has drawn already
    const askMs = Math.max(outlook.askMs, refusals === 0 ? 0 : lostDelayMs(refusals, random))
    return stay({ ...state, at: 'turn', timerAtMs: nowMs + askMs })
  }
  const lookAtMs = nowMs + outlook.lookMs
  return stay({
    at: outlook.is,
    timerAtMs: state.at === outlook.is ? Math.min(state.timerAtMs, lookAtMs) : lookAtMs,
    watched: outlook.is === 'in-line' ? outlook.watched : watchedAt[outlook.is],
    refusals: isFull ? 0 : refusals,
  })
}
