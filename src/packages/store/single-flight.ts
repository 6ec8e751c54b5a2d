/** Work that several callers request is done once. It continues for the others if one caller aborts. */
export type SingleFlight<K, T> = {
  /** Joins the running work for the key or starts it. The work is aborted when its last caller aborts. */
  join(key: K, start: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T>
  has(key: K): boolean
}

export function createSingleFlight<K, T>(): SingleFlight<K, T> {
  const inFlight = new Map<K, { result: Promise<T>; controller: AbortController; waiters: number }>()
  return {
    has: (key) => inFlight.has(key),
    async join(key, start, signal) {
      signal.throwIfAborted()
      let work = inFlight.get(key)
      if (work === undefined) {
        const controller = new AbortController()
        work = { result: start(controller.signal), controller, waiters: 0 }
        inFlight.set(key, work)
      }
      const { result, controller } = work
      const flight = work
      flight.waiters++
      const forget = () => {
        if (inFlight.get(key) === flight) inFlight.delete(key)
      }
      return await new Promise<T>((resolve, reject) => {
        const abandon = () => {
          flight.waiters--
          if (flight.waiters === 0) {
            forget() // a new caller starts again instead of sharing an abort
            controller.abort(signal.reason)
          }
          reject(signal.reason)
        }
        signal.addEventListener('abort', abandon, { once: true })
        const settle = () => {
          forget()
          signal.removeEventListener('abort', abandon)
        }
        result.finally(settle).then(resolve, reject)
      })
    },
  }
}
