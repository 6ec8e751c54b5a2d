/** Notifies the loop that something changed. Created first and passed to all parts. */
export type Wakeup = {
  /** Something changed: decide again. */
  readonly wake: () => void
  /** Resolves at the first `wake` from now on. */
  next(): Promise<void>
}

export function createWakeup(): Wakeup {
  let pending = Promise.withResolvers<void>()
  return {
    wake: () => pending.resolve(),
    next() {
      pending = Promise.withResolvers<void>()
      return pending.promise
    },
  }
}
