/**
 * Every effect that outlives the agent passes a named failpoint right after it: each fsync, each request to systemd or
 * logind that was answered, each write that the API server acknowledged. The fault campaign (test/faults) kills or
 * stops the agent at each of them in turn.
 *
 * The failpoints are in the few functions that all such effects go through, and lint refuses the ways around them
 * (build/lint/effects.ts), so every effect has a name.
 */
const listeners = globalThis as { [listener: symbol]: ((name: string) => void) | undefined }
/** Never set in production. Tests must be able to install a listener from outside of the bundle. */
const listenerKey = Symbol.for('skyhookd.failpoint')

/**
 * Does nothing unless a test has installed a listener. Synchronous: nothing runs between the effect and its failpoint.
 */
export function failpoint(name: string): void {
  listeners[listenerKey]?.(name)
}
