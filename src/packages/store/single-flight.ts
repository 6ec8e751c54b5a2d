/**
 * Work that several ask for is done once. A caller that leaves does not take it from the others.
 */
export type Sharing<K, T> = {
  /** Joins the work under way for the key or begins it. It is aborted when the last who waits for it is. */
  join(key: K, begin: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T>
  has(key: K): boolean
}

export function createSharing<K, T>(): Sharing<K, T> {
  const running = new Map<K, { result: Promise<T>; controller: AbortController; waiting: number }>()
  return {
    has: (key) => running.has(key),
    async join(key, begin, signal) {
      signal.throwIfAborted()
      let work = running.get(key)
      if (work === undefined) {
        const controller = new AbortController()
        work = { result: begin(controller.signal), controller, waiting: 0 }
        running.set(key, work)
      }
      const { result, controller } = work
      const joined = work
      joined.waiting++
      const forget = () => {
        if (running.get(key) === joined) running.delete(key)
      }
      return await new Promise<T>((resolve, reject) => {
        const leave = () => {
          joined.waiting--
          if (joined.waiting === 0) {
            forget() // who comes now begins anew instead of sharing an abort
            controller.abort(signal.reason)
          }
          reject(signal.reason)
        }
        signal.addEventListener('abort', leave, { once: true })
        const settle = () => {
          forget()
          signal.removeEventListener('abort', leave)
        }
        result.finally(settle).then(resolve, reject)
      })
    },
  }
}
