const listeners = globalThis as { [listener: symbol]: ((name: string) => void) | undefined }
const listenerKey = Symbol.for('skyhookd.failpoint') // see src/host/fs/failpoint.ts

/** Calls `listener` at each failpoint of this process; the returned function stops that. */
export function onFailpoint(listener: (name: string) => void): () => void {
  listeners[listenerKey] = listener
  return () => (listeners[listenerKey] = undefined)
}
