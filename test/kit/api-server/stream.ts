import type { ByteStream } from '../../../src/kube/transport.ts'

/** The body of a watch, as its client reads it; the server's side of it writes. */
export type SimStream = ByteStream & {
  write(bytes: Uint8Array): void
  /** The body ends in good order, after what was written. */
  end(): void
  /** The connection breaks; what was not read yet is lost. */
  fail(error: Error): void
  /** Keeps back what is written, until `release`: the network is cut. */
  hold(): void
  release(): void
  /** Nothing is left to read. */
  isOver(): boolean
  /** Called once, when either side has ended it. */
  onClosed(callback: () => void): void
}

export function createStream(): SimStream {
  const chunks: Uint8Array[] = []
  let waiting: PromiseWithResolvers<IteratorResult<Uint8Array>> | undefined
  let failure: Error | undefined
  let isDestroyed = false
  let isEnded = false
  let isHeld = false
  let notifyClosed: (() => void) | undefined

  const close = (): void => {
    const notify = notifyClosed
    notifyClosed = undefined
    notify?.()
  }
  /** What the next read gets; undefined while there is nothing to read. */
  const take = (): Promise<IteratorResult<Uint8Array>> | undefined => {
    if (isHeld && !isDestroyed) return undefined
    if (failure !== undefined) return Promise.reject(failure)
    const value = chunks.shift()
    if (value !== undefined) return Promise.resolve({ done: false, value })
    return isEnded ? Promise.resolve({ done: true, value: undefined }) : undefined
  }
  const serve = (): void => {
    const result = waiting && take()
    if (result === undefined) return
    waiting?.resolve(result)
    waiting = undefined
  }

  const fail = (error: Error): void => {
    failure ??= error
    serve()
    close()
  }

  return {
    write(bytes) {
      if (isEnded || failure !== undefined) return
      chunks.push(bytes)
      serve()
    },
    end() {
      isEnded = true
      serve()
      close()
    },
    hold() {
      isHeld = true
    },
    release() {
      isHeld = false
      serve()
    },
    onClosed(callback) {
      notifyClosed = callback
    },
    fail,
    destroy(error) {
      isDestroyed = true
      fail(error ?? new Error('premature close'))
    },
    isOver: () => isDestroyed || (!isHeld && (failure !== undefined || (isEnded && chunks.length === 0))),
    [Symbol.asyncIterator]: () => ({
      next() {
        const result = take()
        if (result !== undefined) return result
        waiting = Promise.withResolvers()
        return waiting.promise
      },
    }),
  }
}
