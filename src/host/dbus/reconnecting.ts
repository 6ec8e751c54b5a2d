/** A connection to the system bus that reconnects by itself and renews the subscriptions made on it. */
import { backoffMs } from '../../schemas/backoff.ts'
import { type Clock, type Random, sleep } from '../../schemas/clock.ts'
import { type BusSockets, connectSystemBus, type SystemBus } from './connection.ts'
import { NotConnectedError } from './errors.ts'
import type { BusSignal, SignalMatch } from './messages.ts'

export type BusState = { readonly state: 'connected' } | { readonly state: 'disconnected'; readonly why: string }

export type BusConnection = {
  /**
   * Runs `use` on the current connection, or waits for one, and rejects with the last reason after `timeoutMs`. Never
   * runs it twice: if the connection ends meanwhile, only the caller knows whether it may repeat the call.
   */
  withBus<T>(
    use: (bus: SystemBus) => Promise<T>,
    options?: { readonly timeoutMs?: number; readonly signal?: AbortSignal | undefined },
  ): Promise<T>
  /** Subscribes on this connection and on every later one. Signals sent while disconnected are lost: see `onState`. */
  onSignal(match: SignalMatch, listener: (signal: BusSignal) => void): () => void
  /** Runs on every new connection before `withBus` hands it out; a rejection ends that connection. */
  onConnect(prepare: (bus: SystemBus) => Promise<void>): () => void
  /** Calls back at every change. After 'connected', read all states again: signals may have been missed. */
  onState(listener: (state: BusState) => void): () => void
  state(): BusState
  close(): void
}

/** A restarted dbus-daemon takes connections again after 20-60 ms. */
const reconnectBackoff = { initialMs: 20, maxMs: 2_000, jitter: 0.5 }
/** A connection that ended sooner counts as a failure, so that a bus that accepts and hangs up causes no tight loop. */
const stableAfterMs = 1_000
const defaultConnectionWaitMs = 10_000
const closedMessage = 'the connection to the system bus is closed'

/** Connects at the first use, and stays connected from then on until `close`. */
export function createBusConnection(options: {
  readonly clock: Clock
  readonly random: Random
  readonly sockets: BusSockets
  readonly connect?: typeof connectSystemBus
}): BusConnection {
  const { clock, random, sockets, connect = connectSystemBus } = options
  const closeController = new AbortController()
  const attachments = createAttachments()
  const listeners = new Set<(state: BusState) => void>()
  let state: BusState = { state: 'disconnected', why: 'not connected yet' }
  let connectedBus = Promise.withResolvers<SystemBus>()
  let openBus: SystemBus | undefined // connected, perhaps still being prepared
  let preparedBus: SystemBus | undefined
  let reconnectLoop: Promise<void> | undefined

  function setState(next: BusState): void {
    state = next
    for (const listener of listeners) listener(next)
  }

  /** Runs for as long as one connection; returns why it ended or was not established. */
  async function runConnection(): Promise<Error> {
    let bus: SystemBus | undefined
    try {
      openBus = bus = await connect({ clock, sockets, signal: closeController.signal })
      await attachments.attach(bus)
    } catch (error) {
      openBus = undefined
      bus?.close()
      return error as Error
    }
    preparedBus = bus
    connectedBus.resolve(bus)
    setState({ state: 'connected' })
    const reason = await bus.closed
    openBus = preparedBus = undefined
    connectedBus = Promise.withResolvers()
    return reason
  }

  async function runReconnectLoop(): Promise<void> {
    let failures = 0
    while (!closeController.signal.aborted) {
      const startedAtMs = clock.monotonicMs()
      const why = (await runConnection()).message
      if (closeController.signal.aborted) return
      if (state.state === 'connected' || state.why !== why) setState({ state: 'disconnected', why })
      failures = clock.monotonicMs() - startedAtMs > stableAfterMs ? 1 : failures + 1
      const pauseMs = backoffMs(failures, reconnectBackoff, random.number())
      await sleep(clock, pauseMs, closeController.signal).catch(() => {}) // closing ends the loop
    }
  }

  async function waitForBus(timeoutMs: number, signal: AbortSignal | undefined): Promise<SystemBus> {
    signal?.throwIfAborted()
    if (closeController.signal.aborted) throw new NotConnectedError(closedMessage)
    reconnectLoop ??= runReconnectLoop()
    if (preparedBus) return preparedBus
    const cancellation = Promise.withResolvers<never>()
    const cancelTimer = clock.startTimer(timeoutMs, () => {
      const why = state.state === 'disconnected' ? state.why : 'it ended'
      cancellation.reject(new NotConnectedError(`no system bus for ${timeoutMs} ms: ${why}`))
    })
    const cancelSignal = AbortSignal.any(signal ? [closeController.signal, signal] : [closeController.signal])
    const onAbort = () => cancellation.reject(cancelSignal.reason)
    cancelSignal.addEventListener('abort', onAbort, { once: true })
    try {
      return await Promise.race([connectedBus.promise, cancellation.promise])
    } finally {
      cancelTimer()
      cancelSignal.removeEventListener('abort', onAbort)
    }
  }

  return {
    async withBus(use, { timeoutMs = defaultConnectionWaitMs, signal } = {}) {
      return await use(await waitForBus(timeoutMs, signal))
    },
    onSignal: (match, listener) => attachments.onSignal(match, listener, openBus),
    onConnect: (prepare) => attachments.onConnect(prepare),
    onState(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    state: () => state,
    close() {
      closeController.abort(new NotConnectedError(closedMessage))
      openBus?.close()
    },
  }
}

/** Sets up each new connection: subscriptions, and preparations before its first use. */
function createAttachments() {
  type Subscription = { match: SignalMatch; listener: (signal: BusSignal) => void; cancel?: () => void }
  const subscriptions = new Set<Subscription>()
  const preparations = new Set<(bus: SystemBus) => Promise<void>>()
  return {
    /** Rejects when a preparation does; the connection must then be closed. */
    async attach(bus: SystemBus): Promise<void> {
      for (const subscription of subscriptions)
        subscription.cancel = bus.onSignal(subscription.match, subscription.listener)
      await Promise.all([...preparations].map((prepare) => prepare(bus)))
    },
    onSignal(match: SignalMatch, listener: (signal: BusSignal) => void, openBus: SystemBus | undefined): () => void {
      const subscription: Subscription = { match, listener }
      subscriptions.add(subscription)
      if (openBus) subscription.cancel = openBus.onSignal(match, listener)
      return () => {
        subscriptions.delete(subscription)
        subscription.cancel?.()
      }
    },
    onConnect(prepare: (bus: SystemBus) => Promise<void>): () => void {
      preparations.add(prepare)
      return () => preparations.delete(prepare)
    },
  }
}
