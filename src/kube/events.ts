/**
 * Kubernetes Events, told in the background. Core v1 on purpose: one POST shows in `kubectl get events` and `kubectl
 * describe`, and a repetition is a PATCH of three small fields; events.k8s.io/v1 is stored as the same object and costs
 * more bytes each time.
 *
 * Invariant: nothing waits for an Event. What cannot be sent in time is dropped and counted.
 */
import { randomBytes } from 'node:crypto'
import { formatTime } from '../schemas/time.ts'
import { isAlreadyExists, isNotFound } from './errors.ts'
import { metadataOnlyAccept } from './objects.ts'
import { createTokenBucket } from './rate.ts'
import { abortableSleep, retryTransient } from './retry.ts'
import type { KubeTransport } from './transport.ts'

export type EventTarget = {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  /** Absent for cluster-scoped objects (Node, Skyhook): the API wants their Events in `default`. */
  readonly namespace?: string
}

export type EventInput = {
  readonly regarding: EventTarget
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}

export type EventRecorder = {
  /**
   * Queues an Event; the same reason and message on the same object within the window only raises the count of the
   * first.
   */
  record(fact: EventInput): void
  /** Resolves when everything queued has been sent or dropped. */
  flush(): Promise<void>
  dropped(): number
}

export type EventOptions = {
  /** The source of the Events, with the host. */
  readonly component: string
  readonly host: string
  readonly signal: AbortSignal
  readonly timing?: Partial<EventTiming>
}

export type EventTiming = {
  /**
   * Repetitions within this time of the first are counted on it; later ones make a new Event. The server forgets Events
   * after an hour.
   */
  readonly windowMs: number
  /** Counts are written this late, so that a repetition every second costs one request a minute. */
  readonly countDelayMs: number
  readonly perSecond: number
  readonly burst: number
  readonly maxQueueLength: number
}

const defaultTiming: EventTiming = {
  windowMs: 30 * 60_000,
  countDelayMs: 60_000,
  perSecond: 0.2,
  burst: 25,
  maxQueueLength: 100,
}
/** The limit of events.k8s.io for notes; longer ones help nobody. */
const maxMessageLength = 1024

type EventSeries = {
  readonly fact: EventInput
  readonly firstRecordedAtMs: number
  name: string
  count: number
  isSent: boolean
  isQueued: boolean
}

export function startEventRecorder(transport: KubeTransport, options: EventOptions): EventRecorder {
  const { component, host, signal } = options
  const timing = { ...defaultTiming, ...options.timing }
  const bucket = createTokenBucket(timing.perSecond, timing.burst)
  const series = new Map<string, EventSeries>()
  const queue: EventSeries[] = []
  let sending: Promise<void> | undefined
  let dropped = 0

  const enqueue = (entry: EventSeries): void => {
    entry.isQueued = true
    queue.push(entry)
    if (queue.length > timing.maxQueueLength) {
      const oldest = queue.shift()
      if (oldest !== undefined) drop(oldest)
    }
    sending ??= sendQueued().finally(() => {
      sending = undefined
    })
  }

  const drop = (entry: EventSeries): void => {
    dropped++
    entry.isQueued = false
    if (!entry.isSent) series.delete(keyOf(entry.fact)) // the next one of its kind starts afresh
  }

  const sendQueued = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const entry = next
      try {
        await abortableSleep(bucket.take(performance.now()), signal)
        entry.isQueued = false
        await retryTransient(() => send(entry), { signal, maxAttempts: 3 })
      } catch {
        drop(entry) // refused, or the server is away: the fact also stands in the log and in the reason on the node
      }
      if (signal.aborted) {
        for (const unsent of queue.splice(0)) drop(unsent)
      }
    }
  }

  const send = async (entry: EventSeries): Promise<void> => {
    const namespace = entry.fact.regarding.namespace ?? 'default'
    const collection = `/api/v1/namespaces/${namespace}/events`
    if (entry.isSent) {
      try {
        const body = { count: entry.count, lastTimestamp: formatTime(Date.now()) }
        const contentType = 'application/merge-patch+json'
        await transport.json('PATCH', `${collection}/${entry.name}`, {
          body,
          contentType,
          accept: metadataOnlyAccept,
          signal,
        })
        return
      } catch (error) {
        if (!isNotFound(error)) throw error
        Object.assign(entry, { name: eventName(entry.fact), isSent: false }) // the server has forgotten the first one
      }
    }
    try {
      const body = eventBody(entry, { namespace, component, host })
      await transport.json('POST', collection, { body, accept: metadataOnlyAccept, signal })
    } catch (error) {
      if (!isAlreadyExists(error)) throw error // random name: it is ours, only the answer to the try before was lost
    }
    entry.isSent = true
  }

  return {
    record(fact) {
      const nowMs = Date.now()
      const existing = series.get(keyOf(fact))
      if (existing !== undefined && nowMs - existing.firstRecordedAtMs < timing.windowMs) {
        existing.count++
        if (existing.isQueued) return
        existing.isQueued = true
        setTimeout(() => enqueue(existing), timing.countDelayMs).unref()
        return
      }
      for (const [key, old] of series) if (nowMs - old.firstRecordedAtMs >= timing.windowMs) series.delete(key)
      const entry: EventSeries = {
        fact,
        firstRecordedAtMs: nowMs,
        name: eventName(fact),
        count: 1,
        isSent: false,
        isQueued: false,
      }
      series.set(keyOf(fact), entry)
      enqueue(entry)
    },
    flush: async () => await sending,
    dropped: () => dropped,
  }
}

const keyOf = ({ regarding, type, reason, message }: EventInput): string =>
  JSON.stringify([regarding.uid, type, reason, message])

const eventName = ({ regarding }: EventInput): string =>
  `${regarding.name.slice(0, 200)}.${randomBytes(8).toString('hex')}`

function eventBody(entry: EventSeries, origin: { namespace: string; component: string; host: string }): unknown {
  const { regarding, type, reason, message } = entry.fact
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: entry.name, namespace: origin.namespace },
    involvedObject: regarding,
    type,
    reason,
    message: message.length > maxMessageLength ? `${message.slice(0, maxMessageLength - 1)}…` : message,
    source: { component: origin.component, host: origin.host },
    reportingComponent: origin.component,
    reportingInstance: origin.host,
    firstTimestamp: formatTime(entry.firstRecordedAtMs),
    lastTimestamp: formatTime(Date.now()),
    count: entry.count,
  }
}
