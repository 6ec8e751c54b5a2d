/**
 * When what a node says will not end by itself: the condition `Stalled` goes by it. `by-attempts`: once the stage has
 * failed as often as `finalAttempts` says.
 */
export type Stalls = 'never' | 'at-once' | 'by-attempts' | 'after-two-minutes' | 'after-ten-minutes'

/** Failed attempts of one stage. The next ones come up to five minutes apart, and few that fail three times pass. */
export const finalAttempts = 3

/** Whoever installs several objects at once creates some of them later than those that name them. */
const refusedForMs = 2 * 60_000
/** As long as an agent may be silent: what ends by itself, such as a bus that starts again, has ended by then. */
const unusableForMs = 10 * 60_000

/** From which moment on it will not end by itself, if it began at `sinceMs`; Infinity: it will. */
export function stallsAtMs(stalls: Stalls, attempts: number, sinceMs: number): number {
  switch (stalls) {
    case 'never':
      return Infinity
    case 'at-once':
      return -Infinity
    case 'by-attempts':
      return attempts >= finalAttempts ? -Infinity : Infinity
    case 'after-two-minutes':
      return sinceMs + refusedForMs
    case 'after-ten-minutes':
      return sinceMs + unusableForMs
  }
}

/** For the reference page. */
export const stallsTexts: Readonly<Record<Stalls, string>> = {
  never: 'no',
  'at-once': 'yes',
  'by-attempts': 'after 3 attempts',
  'after-two-minutes': 'after 2 min',
  'after-ten-minutes': 'after 10 min',
}
