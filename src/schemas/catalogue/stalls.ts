/**
 * When a reason of a node will not end by itself: the condition `Stalled` depends on it. `by-attempts`: once the stage
 * has failed `finalAttempts` times.
 */
export type Stalls = 'never' | 'at-once' | 'by-attempts' | 'after-two-minutes' | 'after-ten-minutes'

/**
 * Failed attempts of one stage. The next ones come up to five minutes apart, and a stage that failed three times seldom
 * passes.
 */
export const finalAttempts = 3

/** An installation of several objects at once may create an object after the ones that name it. */
const refusedForMs = 2 * 60_000
/** As long as an agent may be silent: temporary failures, such as a restart of the bus, are over by then. */
const unusableForMs = 10 * 60_000

/** From when on it will not end by itself, if it started at `sinceMs`; Infinity: it will. */
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
