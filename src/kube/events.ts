/**
 * Kubernetes Events, sent in the background. Core v1 on purpose: one POST shows in `kubectl get events` and `kubectl
 * describe`, and a repetition is a PATCH of three small fields; events.k8s.io/v1 is stored as the same object and costs
 * more bytes each time.
 *
 * Invariant: nothing waits for an Event. Events that cannot be sent in time are dropped.
 */
import { sleep, type Clock, type Random } from '../schemas/clock.ts'
import { plainExcerpt } from '../schemas/plain-text.ts'
import { formatTime } from '../schemas/time.ts'
import { isAlreadyExists, isNotFound } from './errors.ts'
import { metadataOnlyAccept } from './objects.ts'
import { retryTransient } from './retry.ts'
import { createTokenBucket, type KubeTransport } from './transport.ts'

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
  readonly annotations?: Readonly<Record<string, string>>
}

export type EventRecorder = {
  /** Queues an Event. The same reason and message on the same object within the window only count on the first. */
  record(event: EventInput): void
}

export type EventOptions = {
  readonly clock: Clock
  readonly random: Random
  /** The source that an Event names, with the host. */
  readonly component: string
  readonly host: string
  readonly signal: AbortSignal
  readonly timing?: Partial<EventTiming>
}

export type EventTiming = {
  /** Repetitions within this time count on the first Event; the server forgets Events after an hour. */
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
/** The limit of events.k8s.io for notes. */
const maxMessageLength = 1024

type EventSeries = {
  readonly input: EventInput
  /** Monotonic. */
  readonly firstRecordedAtMs: number
  readonly firstTimestamp: string
  name: string
  count: number
  isSent: boolean
  isQueued: boolean
}

/** Records Events until the signal aborts. */
export function startEventRecorder(transport: KubeTransport, options: EventOptions): EventRecorder {
  const { clock, random, component, host, signal } = options
  const timing = { ...defaultTiming, ...options.timing }
  const bucket = createTokenBucket(timing.perSecond, timing.burst)
  const seriesByKey = new Map<string, EventSeries>()
  const queue: EventSeries[] = []
  let isSending = false

  /** Random, so that a name that exists already is ours: the answer to the previous attempt was lost. */
  const eventName = ({ regarding }: EventInput): string => `${regarding.name.slice(0, 200)}.${random.hex(8)}`

  const enqueue = (series: EventSeries): void => {
    series.isQueued = true
    queue.push(series)
    if (queue.length > timing.maxQueueLength) queue.splice(0, 1).forEach(drop)
    if (!isSending) void sendQueued()
  }

  const drop = (series: EventSeries): void => {
    series.isQueued = false
    if (!series.isSent) seriesByKey.delete(keyOf(series.input)) // the next one of its kind starts a new series
  }

  const sendQueued = async (): Promise<void> => {
    isSending = true
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const series = next
      try {
        await sleep(clock, bucket.take(clock.monotonicMs()), signal)
        series.isQueued = false
        await retryTransient(() => send(series), { clock, random, signal, maxAttempts: 3 })
      } catch {
        drop(series) // refused, or the server is away: the log and the reason on the node say the same
      }
      if (signal.aborted) queue.splice(0).forEach(drop)
    }
    isSending = false
  }

  const send = async (series: EventSeries): Promise<void> => {
    const namespace = series.input.regarding.namespace ?? 'default'
    const collection = `/api/v1/namespaces/${namespace}/events`
    const lastTimestamp = formatTime(clock.wallMs())
    if (series.isSent) {
      try {
        await transport.json('PATCH', `${collection}/${series.name}`, {
          body: { count: series.count, lastTimestamp },
          contentType: 'application/merge-patch+json',
          accept: metadataOnlyAccept,
          signal,
        })
        return
      } catch (error) {
        if (!isNotFound(error)) throw error
        // the server has forgotten the first one
        Object.assign(series, { name: eventName(series.input), isSent: false })
      }
    }
    try {
      const body = eventBody(series, { namespace, component, host, lastTimestamp })
      await transport.json('POST', collection, { body, accept: metadataOnlyAccept, signal })
    } catch (error) {
      if (!isAlreadyExists(error)) throw error
    }
    series.isSent = true
  }

  return {
    record(input) {
      const nowMs = clock.monotonicMs()
      const existing = seriesByKey.get(keyOf(input))
      if (existing !== undefined && nowMs - existing.firstRecordedAtMs < timing.windowMs) {
        existing.count++
        if (existing.isQueued) return
        existing.isQueued = true
        clock.startTimer(timing.countDelayMs, () => enqueue(existing), { isBackground: true })
        return
      }
      for (const [key, old] of seriesByKey)
        if (nowMs - old.firstRecordedAtMs >= timing.windowMs) seriesByKey.delete(key)
      const name = eventName(input)
      const firstTimestamp = formatTime(clock.wallMs())
      const series = { input, firstRecordedAtMs: nowMs, firstTimestamp, name, count: 1, isSent: false, isQueued: false }
      seriesByKey.set(keyOf(input), series)
      enqueue(series)
    },
  }
}

const keyOf = ({ regarding, type, reason, message }: EventInput): string =>
  JSON.stringify([regarding.uid, type, reason, message])

function eventBody(
  { input, name, firstTimestamp, count }: EventSeries,
  origin: { readonly namespace: string; readonly component: string; readonly host: string; lastTimestamp: string },
): unknown {
  const { regarding, type, reason, message, annotations } = input
  const { namespace, component, host, lastTimestamp } = origin
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name, namespace, ...(annotations && { annotations }) },
    involvedObject: regarding,
    type,
    reason,
    message: plainExcerpt(message, maxMessageLength),
    source: { component, host },
    reportingComponent: component,
    reportingInstance: host,
    firstTimestamp,
    lastTimestamp,
    count,
  }
}
