/** A client of the simulated server: the agent's transport, with what can happen to it on the way. */
import {
  type CompletedRequest,
  createTokenBucket,
  type KubeRequestOptions,
  type KubeTransport,
  type Method,
} from '../../../src/kube/transport.ts'
import { type Clock, type Random, sleep } from '../../../src/schemas/clock.ts'
import { apiErrorFrom, NoResponseError } from '../../../src/kube/errors.ts'
import type { Fault } from './faults.ts'
import type { Answer } from './refusals.ts'
import { queryOf, routedRequest, type SimRequest } from './request.ts'
import type { SimulatedApiServer } from './server.ts'
import type { SimStream } from './stream.ts'

export type ClientOptions = {
  /** Who it is: faults, cuts and the audit log go by it. */
  readonly name: string
  /** The field manager; default `skyhookd`. */
  readonly manager?: string
  /** There and back; default: nothing takes time. */
  readonly latencyMs?: (random: Random) => number
  /** As the agent's own transport limits itself; default: without a limit. */
  readonly rate?: { readonly perSecond: number; readonly burst: number }
  readonly onRequest?: (request: CompletedRequest) => void
  /** How likely a request comes through whose client gave up while it was on the way; default 0.5. */
  readonly abandonedArrival?: number
}

export type SimClient = KubeTransport & {
  /** Nothing comes through in either direction, and nobody is told. */
  cut(): void
  /** The network works again: open watches continue with what they missed, or their connections break. */
  heal(how: 'resume' | 'reset'): void
  /** Its process is gone: nobody hears an answer, an error or an event any more. */
  kill(): void
}

/** Those of the agent's own transport. */
const defaultTimeoutMs = 30_000
const maxSockets = { calls: 8, evictions: 10 }

type Pool = { readonly maxSockets: number; readonly queue: Set<() => void>; inFlight: number }
type Served = SimStream | Answer
type Call = {
  readonly request: SimRequest
  readonly verb: CompletedRequest['verb']
  readonly signal: AbortSignal | undefined
  readonly timeoutMs: number
  readonly serve: (fault: Fault | undefined) => Served
}
type PooledCall = Call & { readonly pool: Pool }

export function createClient(
  server: SimulatedApiServer,
  options: ClientOptions & { readonly clock: Clock; readonly random: Random },
): SimClient {
  const { name, manager = 'skyhookd', clock, random, latencyMs, rate, onRequest, abandonedArrival = 0.5 } = options
  const bucket = rate && createTokenBucket(rate.perSecond, rate.burst)
  const poolOf = (name: keyof typeof maxSockets): Pool => ({
    maxSockets: maxSockets[name],
    queue: new Set(),
    inFlight: 0,
  })
  const pools = { calls: poolOf('calls'), evictions: poolOf('evictions') }
  const streams = new Set<SimStream>()
  const exchanges = new Set<{ readonly fail: (message: string) => void; readonly forget: () => void }>()
  let isCut = false
  let isClosed = false
  let isKilled = false

  const after = (delayMs: number, act: () => void): void => {
    if (delayMs <= 0) act()
    else clock.startTimer(delayMs, act, { isBackground: true })
  }

  /** One exchange, over a network that may lose either half of it. */
  const exchange = ({ request, verb, signal, timeoutMs, serve }: Call): Promise<Served> =>
    new Promise((resolve, reject) => {
      const startedAtMs = clock.monotonicMs()
      let isSettled = false
      let cancelTimeout: (() => void) | undefined
      const settle = (code: number | undefined, act: () => void): void => {
        if (isSettled) return
        forget()
        const durationMs = clock.monotonicMs() - startedAtMs
        if (code !== undefined) onRequest?.({ verb, path: request.path, code, durationMs })
        act()
      }
      const forget = (): void => {
        isSettled = true
        cancelTimeout?.()
        signal?.removeEventListener('abort', onAbort)
        exchanges.delete(self)
      }
      const fail = (message: string, mayHaveBeenSent: boolean): void =>
        settle(0, () =>
          reject(new NoResponseError(`${request.method} ${request.path}: ${message}`, { mayHaveBeenSent })),
        )
      const onAbort = (): void => settle(undefined, () => reject(signal?.reason as Error))
      const expectSilence = (): void => {
        const leftMs = startedAtMs + timeoutMs - clock.monotonicMs()
        cancelTimeout ??= clock.startTimer(leftMs, () => fail(`no response headers within ${timeoutMs} ms`, true))
      }
      const self = { fail: (message: string) => fail(message, true), forget }
      exchanges.add(self)
      signal?.addEventListener('abort', onAbort, { once: true })

      const fault = server.faults.rules.length === 0 ? undefined : server.faults.pick(routedRequest(request))
      const tripMs = (latencyMs?.(random) ?? 0) / 2
      const deliver = (served: Served, epoch: number): void => {
        if (isSettled || isCut) discard(served)
        if (isCut) return expectSilence()
        if (server.epoch() !== epoch) return fail('read ECONNRESET', true)
        settle('code' in served ? served.code : 200, () => resolve(served))
      }
      const arrive = (): void => {
        if (isSettled && random.number() >= abandonedArrival) return
        if (server.isAway()) return fail('read ECONNRESET', true)
        const served = serve(fault)
        if (isSettled || fault?.kind === 'lose-answer') discard(served)
        if (fault?.kind === 'lose-answer') return after(tripMs, () => fail('read ECONNRESET', true))
        const backMs = tripMs + (('code' in served && served.delayMs) || 0)
        if (clock.monotonicMs() + backMs - startedAtMs >= timeoutMs) expectSilence()
        const epoch = server.epoch()
        after(backMs, () => deliver(served, epoch))
      }
      if (isCut || fault?.kind === 'silent') return expectSilence()
      if (server.isAway() || isClosed || fault?.kind === 'refuse-connection')
        return after(tripMs, () => fail('connect ECONNREFUSED', false))
      if (fault?.kind === 'lose-request') return after(tripMs, () => fail('read ECONNRESET', true))
      if (fault?.kind === 'commit-late') {
        clock.startTimer(fault.afterMs, () => void (server.isAway() || serve(undefined)), { isBackground: true })
        return after(tripMs, () => fail('read ECONNRESET', true))
      }
      const thereMs = tripMs + (fault?.kind === 'slow' ? fault.byMs : 0)
      if (thereMs + tripMs >= timeoutMs) expectSilence()
      after(thereMs, arrive)
    })

  const limited = async (call: Call): Promise<Served> => {
    const waitMs = bucket?.take(clock.monotonicMs()) ?? 0
    if (waitMs > 0) await sleep(clock, waitMs, call.signal)
    call.signal?.throwIfAborted()
    if (isKilled) await new Promise(() => {})
    return await exchange(call)
  }

  /** Calls share a few connections; one that finds none waits until its timeout, or its signal. */
  const pooled = async (call: PooledCall): Promise<Served> => {
    const { pool, timeoutMs } = call
    const startedAtMs = clock.monotonicMs()
    if (pool.inFlight < pool.maxSockets) pool.inFlight++
    else await turn(call)
    try {
      return await limited({ ...call, timeoutMs: timeoutMs - (clock.monotonicMs() - startedAtMs) })
    } finally {
      const [next] = pool.queue
      if (next === undefined) pool.inFlight--
      else next()
    }
  }

  const turn = ({ pool, request, verb, signal, timeoutMs }: PooledCall): Promise<void> =>
    new Promise((resolve, reject) => {
      const leave = (): void => {
        pool.queue.delete(enter)
        cancelTimeout()
        signal?.removeEventListener('abort', onAbort)
      }
      const enter = (): void => {
        leave()
        resolve()
      }
      const onAbort = (): void => {
        leave()
        reject(signal?.reason as Error)
      }
      const cancelTimeout = clock.startTimer(timeoutMs, () => {
        leave()
        if (isKilled) return
        onRequest?.({ verb, path: request.path, code: 0, durationMs: timeoutMs })
        const message = `${request.method} ${request.path}: no response headers within ${timeoutMs} ms`
        reject(new NoResponseError(message, { mayHaveBeenSent: false }))
      })
      signal?.addEventListener('abort', onAbort, { once: true })
      pool.queue.add(enter)
    })

  const requestOf = (method: Method, path: string, request: KubeRequestOptions): SimRequest => {
    const { query, body, contentType, accept } = request
    return { client: name, manager, method, path, query: queryOf(query), body, contentType, accept }
  }

  return {
    async json<T>(method: Method, path: string, callOptions: KubeRequestOptions = {}): Promise<T> {
      const { signal, timeoutMs = defaultTimeoutMs, pool = 'calls' } = callOptions
      const request = requestOf(method, path, callOptions)
      const served = await pooled({
        pool: pools[pool],
        request,
        verb: method,
        signal,
        timeoutMs,
        serve: (fault) => server.handle(request, fault),
      })
      return successIn(served as Answer) as T
    },
    async stream(path, callOptions = {}) {
      const { signal, timeoutMs = defaultTimeoutMs } = callOptions
      const request = requestOf('GET', path, callOptions)
      const served = await limited({
        request,
        verb: 'WATCH',
        signal,
        timeoutMs,
        serve: (fault) => server.open(request, fault),
      })
      if ('code' in served) return successIn(served) as never
      signal?.addEventListener('abort', () => served.destroy(new Error('aborted')), { once: true })
      for (const old of streams) if (old.isOver()) streams.delete(old)
      streams.add(served)
      return served
    },
    close() {
      isClosed = true
      for (const { fail } of exchanges) fail('socket hang up')
      for (const stream of streams) stream.destroy(new Error('aborted'))
    },
    kill() {
      isKilled = true
      for (const { forget } of exchanges) forget()
      for (const stream of streams) {
        stream.hold()
        stream.fail(new Error('killed'))
      }
    },
    cut() {
      isCut = true
      for (const stream of streams) stream.hold()
    },
    heal(how) {
      isCut = false
      for (const stream of streams) {
        if (how === 'reset') stream.fail(new Error('read ECONNRESET'))
        stream.release()
      }
    },
  }
}

/** Nobody reads it: the server notices. */
function discard(served: Served): void {
  if (!('code' in served)) served.destroy()
}

function successIn({ code, body, retryAfterSeconds }: Answer): unknown {
  if (code < 300) return body
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  throw apiErrorFrom(code, retryAfterSeconds === undefined ? undefined : String(retryAfterSeconds), text)
}
