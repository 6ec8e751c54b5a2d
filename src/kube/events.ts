/**
 * Kubernetes Events, told in the background. Core v1 on purpose: one POST shows in `kubectl get events` and `kubectl describe`, and a
 * repetition is a PATCH of three small fields; events.k8s.io/v1 is stored as the same object and costs more bytes each time.
 *
 * Invariant: nothing waits for an Event. What cannot be sent in time is dropped and counted.
 */
import { randomBytes } from 'node:crypto'
import { isAlreadyExists, isNotFound } from './errors.ts'
import { METADATA_ONLY } from './objects.ts'
import { tokenBucket } from './rate.ts'
import { pause, retrying } from './retry.ts'
import type { Transport } from './transport.ts'

export type EventTarget = {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  /** Absent for cluster-scoped objects (Node, Skyhook): the API wants their Events in `default`. */
  readonly namespace?: string
}

export type EventFact = {
  readonly regarding: EventTarget
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}

export type EventRecorder = {
  /** Queues an Event; the same reason and message on the same object within the window only raises the count of the first. */
  record(fact: EventFact): void
  /** Resolves when everything queued has been sent or dropped. */
  flush(): Promise<void>
  dropped(): number
}

export type EventOptions = {
  /** Shown as the source, with the host. */
  readonly component: string
  readonly host: string
  readonly signal: AbortSignal
  readonly timing?: Partial<EventTiming>
}

export type EventTiming = {
  /** Repetitions within this time of the first are counted on it; later ones make a new Event. The server forgets Events after an hour. */
  readonly windowMs: number
  /** Counts are written this late, so that a repetition every second costs one request a minute. */
  readonly countDelayMs: number
  readonly perSecond: number
  readonly burst: number
  readonly queueLength: number
}

const DEFAULT_TIMING: EventTiming = { windowMs: 30 * 60_000, countDelayMs: 60_000, perSecond: 0.2, burst: 25, queueLength: 100 }
/** The limit of events.k8s.io for notes; longer ones help nobody. */
const MAX_MESSAGE = 1024

type Series = {
  readonly fact: EventFact
  readonly firstMs: number
  name: string
  count: number
  isSent: boolean
  isQueued: boolean
}

export function startEventRecorder(transport: Transport, options: EventOptions): EventRecorder {
  const { component, host, signal } = options
  const timing = { ...DEFAULT_TIMING, ...options.timing }
  const bucket = tokenBucket(timing.perSecond, timing.burst)
  const series = new Map<string, Series>()
  const queue: Series[] = []
  let working: Promise<void> | undefined
  let dropped = 0

  const enqueue = (one: Series): void => {
    one.isQueued = true
    queue.push(one)
    if (queue.length > timing.queueLength) {
      const oldest = queue.shift()
      if (oldest !== undefined) drop(oldest)
    }
    working ??= work().finally(() => {
      working = undefined
    })
  }

  const drop = (one: Series): void => {
    dropped++
    one.isQueued = false
    if (!one.isSent) series.delete(keyOf(one.fact)) // the next one of its kind starts afresh
  }

  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const one = next
      try {
        await pause(bucket.take(performance.now()), signal)
        one.isQueued = false
        await retrying(() => send(one), { signal, attempts: 3 })
      } catch {
        drop(one) // refused, or the server is away: the fact also stands in the log and in the reason on the node
      }
      if (signal.aborted) {
        for (const rest of queue.splice(0)) drop(rest)
      }
    }
  }

  const send = async (one: Series): Promise<void> => {
    const namespace = one.fact.regarding.namespace ?? 'default'
    const collection = `/api/v1/namespaces/${namespace}/events`
    if (one.isSent) {
      try {
        const body = { count: one.count, lastTimestamp: timestamp(Date.now()) }
        const contentType = 'application/merge-patch+json'
        await transport.json('PATCH', `${collection}/${one.name}`, { body, contentType, accept: METADATA_ONLY, signal })
        return
      } catch (error) {
        if (!isNotFound(error)) throw error
        Object.assign(one, { name: eventName(one.fact), isSent: false }) // the server has forgotten the first one
      }
    }
    try {
      const body = eventBody(one, { namespace, component, host })
      await transport.json('POST', collection, { body, accept: METADATA_ONLY, signal })
    } catch (error) {
      if (!isAlreadyExists(error)) throw error // random name: it is ours, only the answer to the try before was lost
    }
    one.isSent = true
  }

  return {
    record(fact) {
      const nowMs = Date.now()
      const known = series.get(keyOf(fact))
      if (known !== undefined && nowMs - known.firstMs < timing.windowMs) {
        known.count++
        if (known.isQueued) return
        known.isQueued = true
        setTimeout(() => enqueue(known), timing.countDelayMs).unref()
        return
      }
      for (const [key, old] of series) if (nowMs - old.firstMs >= timing.windowMs) series.delete(key)
      const one: Series = { fact, firstMs: nowMs, name: eventName(fact), count: 1, isSent: false, isQueued: false }
      series.set(keyOf(fact), one)
      enqueue(one)
    },
    flush: async () => await working,
    dropped: () => dropped,
  }
}

const keyOf = ({ regarding, type, reason, message }: EventFact): string => JSON.stringify([regarding.uid, type, reason, message])

const eventName = ({ regarding }: EventFact): string => `${regarding.name.slice(0, 200)}.${randomBytes(8).toString('hex')}`

/** metav1.Time: whole seconds. */
const timestamp = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')

function eventBody(one: Series, place: { namespace: string; component: string; host: string }): unknown {
  const { regarding, type, reason, message } = one.fact
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: one.name, namespace: place.namespace },
    involvedObject: regarding,
    type,
    reason,
    message: message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE - 1)}…` : message,
    source: { component: place.component, host: place.host },
    reportingComponent: place.component,
    reportingInstance: place.host,
    firstTimestamp: timestamp(one.firstMs),
    lastTimestamp: timestamp(Date.now()),
    count: one.count,
  }
}
