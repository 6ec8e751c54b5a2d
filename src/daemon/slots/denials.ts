/** What this node waits for: the last answer, other than "held", to the requests for each slot. Pure. */
import type { SlotDenial } from '../../stages/model/snapshot.ts'

/** By name of the Skyhook. */
export type Denials = ReadonlyMap<string, SlotDenial>

export const noDenials: Denials = new Map()

export type Denial = Pick<SlotDenial, 'message' | 'waitsFor'> & { readonly retryInMs: number }

/** The answer needs a count that no census has made. */
export const isBudgetUnknown = ({ message }: Pick<Denial, 'message'>): boolean =>
  message.startsWith('budget unknown: the census ')

/** Adds a denial. The wait counts from the first one. */
export function denied(
  denials: Denials,
  skyhook: string,
  { message, retryInMs, waitsFor }: Denial,
  nowMs: number,
): Denials {
  const sinceMs = denials.get(skyhook)?.sinceMs ?? nowMs
  return new Map(denials).set(skyhook, {
    message,
    nextRequestAtMs: nowMs + retryInMs,
    sinceMs,
    ...(waitsFor && { waitsFor }),
  })
}

/** Removes the denial: the slot is held, or no longer needed. */
export function withoutDenial(denials: Denials, skyhook: string): Denials {
  if (!denials.has(skyhook)) return denials
  const others = new Map(denials)
  others.delete(skyhook)
  return others
}

/**
 * A slot of the Skyhook, or the control plane's, may be free: the next request is due immediately. Returns the same
 * denials if the Skyhook does not wait for one.
 */
export function requestNow(denials: Denials, skyhook: string): Denials {
  const denial = denials.get(skyhook)
  return denial && (denial.waitsFor === undefined || denial.waitsFor === 'control-plane' || denial.waitsFor === 'batch')
    ? new Map(denials).set(skyhook, { ...denial, nextRequestAtMs: 0 })
    : denials
}

/** How long the Skyhook has waited for a slot; 0 if it does not wait. */
export function waitedMs(denials: Denials, skyhook: string, nowMs: number): number {
  const denial = denials.get(skyhook)
  return denial ? nowMs - denial.sinceMs : 0
}
