/** A connection to the system bus that comes back by itself, with the subscriptions that were made on it. */
import { setTimeout as delay } from 'node:timers/promises'
import { NotConnectedError } from './errors.ts'
import { connectSystemBus, type BusSignal, type SignalMatch, type SystemBus } from './connection.ts'

export type BusState =
  | { readonly state: 'connected'; readonly sinceMs: number }
  | { readonly state: 'disconnected'; readonly sinceMs: number; readonly why: string }

export type BusConnection = {
  /**
   * Runs `use` on the present connection, waiting for one if there is none. Never runs it twice: when the connection
   * ends under it, whether to ask again is a question of what was asked. Rejects with the last reason after `timeoutMs`.
   */
  withBus<T>(use: (bus: SystemBus) => Promise<T>, options?: { readonly timeoutMs?: number; readonly signal?: AbortSignal }): Promise<T>
  /** Subscribes on this connection and on every later one. Signals sent in between are lost: see `onState`. */
  onSignal(match: SignalMatch, listener: (signal: BusSignal) => void): () => void
  /** Runs on every new connection before `withBus` hands it out; a rejection ends that connection. */
  onConnect(prepare: (bus: SystemBus) => Promise<void>): () => void
  /** Tells every change. After 'connected' look at everything again: signals may have been missed. */
  onState(listener: (state: BusState) => void): () => void
  state(): BusState
  close(): void
}

const BACKOFF_FIRST_MS = 20 // a restarted dbus-daemon takes connections again after 20-60 ms
const BACKOFF_MAX_MS = 2_000
/** A connection that ended sooner counts as a failure: a bus that accepts and hangs up is not asked in a tight loop. */
const STABLE_AFTER_MS = 1_000
const WAIT_FOR_CONNECTION_MS = 10_000

/** Begins to connect at the first use, and from then on keeps itself connected until `close`. */
export function keepBus(options: {
  readonly socketPath: string
  readonly now?: () => number
  readonly random?: () => number
  readonly connect?: typeof connectSystemBus
}): BusConnection {
  const { now = Date.now, random = Math.random, connect = connectSystemBus } = options
  const closing = new AbortController()
  const subscriptions = new Set<{ match: SignalMatch; listener: (signal: BusSignal) => void; cancel?: () => void }>()
  const preparations = new Set<(bus: SystemBus) => Promise<void>>()
  const listeners = new Set<(state: BusState) => void>()
  let state: BusState = { state: 'disconnected', sinceMs: now(), why: 'not connected yet' }
  let ready = Promise.withResolvers<SystemBus>()
  let open: SystemBus | undefined // connected, perhaps still being prepared
  let prepared: SystemBus | undefined
  let running: Promise<void> | undefined

  function change(next: BusState): void {
    state = next
    for (const listener of listeners) listener(next)
  }

  /** Lives through one connection; returns why it ended or never came about. */
  async function useOneConnection(): Promise<Error> {
    try {
      open = await connect({ socketPath: options.socketPath, signal: closing.signal })
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error))
    }
    const bus = open
    try {
      for (const subscription of subscriptions) subscription.cancel = bus.onSignal(subscription.match, subscription.listener)
      await Promise.all([...preparations].map((prepare) => prepare(bus)))
    } catch (error) {
      open = undefined
      bus.close()
      return error instanceof Error ? error : new Error(String(error))
    }
    prepared = bus
    ready.resolve(bus)
    change({ state: 'connected', sinceMs: now() })
    const reason = await bus.gone
    open = prepared = undefined
    ready = Promise.withResolvers()
    return reason
  }

  async function keep(): Promise<void> {
    let backoffMs = BACKOFF_FIRST_MS
    while (!closing.signal.aborted) {
      const begunAtMs = now()
      const why = (await useOneConnection()).message
      if (closing.signal.aborted) return
      if (state.state === 'connected') change({ state: 'disconnected', sinceMs: now(), why })
      else if (state.why !== why) change({ state: 'disconnected', sinceMs: state.sinceMs, why })
      if (now() - begunAtMs > STABLE_AFTER_MS) backoffMs = BACKOFF_FIRST_MS
      await delay(backoffMs * (0.5 + random() / 2), undefined, { signal: closing.signal }).catch(() => {}) // closing ends the loop
      backoffMs = Math.min(backoffMs * 2, BACKOFF_MAX_MS)
    }
  }

  async function present(timeoutMs: number, signal: AbortSignal | undefined): Promise<SystemBus> {
    signal?.throwIfAborted()
    if (closing.signal.aborted) throw new NotConnectedError('the connection to the system bus is closed')
    running ??= keep()
    if (prepared) return prepared
    const abandoned = Promise.withResolvers<never>()
    const why = () => (state.state === 'disconnected' ? state.why : 'it ended')
    const timer = setTimeout(() => abandoned.reject(new NotConnectedError(`no system bus for ${timeoutMs} ms: ${why()}`)), timeoutMs)
    const giveUp = AbortSignal.any(signal ? [closing.signal, signal] : [closing.signal])
    const onAbort = () => abandoned.reject(giveUp.reason)
    giveUp.addEventListener('abort', onAbort, { once: true })
    try {
      return await Promise.race([ready.promise, abandoned.promise])
    } finally {
      clearTimeout(timer)
      giveUp.removeEventListener('abort', onAbort)
    }
  }

  return {
    async withBus(use, { timeoutMs = WAIT_FOR_CONNECTION_MS, signal } = {}) {
      return await use(await present(timeoutMs, signal))
    },
    onSignal(match, listener) {
      const subscription: { match: SignalMatch; listener: typeof listener; cancel?: () => void } = { match, listener }
      subscriptions.add(subscription)
      if (open) subscription.cancel = open.onSignal(match, listener)
      return () => {
        subscriptions.delete(subscription)
        subscription.cancel?.()
      }
    },
    onConnect(prepare) {
      preparations.add(prepare)
      return () => preparations.delete(prepare)
    },
    onState(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    state: () => state,
    close() {
      closing.abort(new NotConnectedError('the connection to the system bus is closed'))
      open?.close()
    },
  }
}
