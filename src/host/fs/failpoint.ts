/**
 * Every effect that outlives the agent passes a named point right after it: each fsync, each order to systemd or logind
 * that was answered, each acknowledged write to the API server. The tests kill or stop the agent at each of them in
 * turn; in ordinary life nobody listens.
 *
 * The points sit in the few functions that all such effects go through, and lint forbids the ways around them
 * (build/effects.test.ts), so no effect can be without a name.
 */
let failpointListener: ((name: string) => void) | undefined

/** Synchronous: nothing of the agent runs between the effect and its point. */
export function failpoint(name: string): void {
  failpointListener?.(name)
}

/** From here on `listener` hears of each passage. Returns the way to end that. */
export function onFailpoint(listener: (name: string) => void): () => void {
  failpointListener = listener
  return () => (failpointListener = undefined)
}
