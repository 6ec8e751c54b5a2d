/** Reads the Events of agents, once or continuously. */
import { backoffMs } from '../../schemas/backoff.ts'
import { type Clock, type Random, sleep } from '../../schemas/clock.ts'
import { messageOf } from '../../schemas/json.ts'
import { apiErrorFromEvent, isGone, isTransient, retryAfterMsOf } from '../../kube/errors.ts'
import { listAll, type ListResult } from '../../kube/list.ts'
import type { KubeObject } from '../../kube/objects.ts'
import { requestBackoff } from '../../kube/retry.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { watchEvents } from '../../kube/watch.ts'

/** Events of objects without a namespace, which Nodes and Skyhooks are. */
const eventsPath = '/api/v1/namespaces/default/events'
/** After this the API server ends a watch. It has no bookmarks for Events: it may be silent until then. */
const watchSeconds = 60
/** Neither an Event nor an end: the connection is dead. */
const silenceMs = watchSeconds * 1_000 + 30_000
/** A watch that ends sooner has failed. */
const minWatchMs = watchSeconds * 1_000 - 5_000
/** So many may fail in a row before it is reported. */
const maxUnreportedFailures = 4

/** An Event as it is shown. */
export type EventRow = {
  readonly time: string
  readonly type: string
  readonly reason: string
  readonly object: { readonly kind: string; readonly name: string }
  readonly message: string
  readonly count: number
}

/** The Event and its state that a row shows. */
type ListedEvent = { readonly row: EventRow; readonly name: string; readonly resourceVersion: string }
export type EventList = ListResult<ListedEvent>

export type EventPorts = {
  readonly transport: KubeTransport
  readonly clock: Clock
  readonly random: Random
  readonly signal: AbortSignal
}

/** All Events of one source, and where a watch continues. */
export async function listEvents(
  { transport, signal }: Pick<EventPorts, 'transport' | 'signal'>,
  source: string,
): Promise<EventList> {
  return await listAll<KubernetesEvent, ListedEvent>(transport, eventsPath, {
    query: queryOf(source),
    signal,
    transform: listedEvent,
  })
}

/** A note between Events: why none arrive at present. */
export type FollowedEvent = { readonly row: EventRow } | { readonly note: string }

/**
 * The Events of one source that are not in the list, each state of one once, until the signal aborts. Then it throws
 * the signal's reason. Lists again after a watch that failed. Throws if reading is refused.
 */
export async function* followEvents(ports: EventPorts, source: string, from: EventList): AsyncGenerator<FollowedEvent> {
  const { clock, random, signal } = ports
  let seen = versionsOf(from)
  let resourceVersion: string | undefined = from.resourceVersion
  for (let failures = 0; ; ) {
    try {
      if (resourceVersion === undefined) {
        const listed = await listEvents(ports, source)
        for (const event of inOrder(listed.items)) if (seen.get(event.name) !== event.resourceVersion) yield event
        seen = versionsOf(listed)
        resourceVersion = listed.resourceVersion
      }
      const startedMs = clock.monotonicMs()
      const onOpen = (): void => void (failures = 0)
      for await (const { type, object } of changesAfter(ports, { source, resourceVersion, onOpen })) {
        resourceVersion = object.metadata.resourceVersion
        if (type === 'BOOKMARK') continue
        const event = listedEvent(object)
        if (type === 'DELETED') seen.delete(event.name)
        else seen.set(event.name, event.resourceVersion)
        if (type !== 'DELETED') yield event
      }
      if (clock.monotonicMs() - startedMs < minWatchMs) resourceVersion = undefined
    } catch (error) {
      signal.throwIfAborted()
      if (!isGone(error) && !isTransient(error)) throw error
      resourceVersion = undefined
      if (++failures === maxUnreportedFailures)
        yield { note: `cannot watch Events of ${source}, retrying: ${messageOf(error)}` }
      await sleep(clock, retryAfterMsOf(error) ?? backoffMs(failures, requestBackoff, random.number()), signal)
    }
  }
}

/** Oldest first. */
export const inOrder = <T extends { readonly row: EventRow }>(events: readonly T[]): readonly T[] =>
  [...events].sort((a, b) => (a.row.time < b.row.time ? -1 : 1))

type WatchFrom = { readonly source: string; readonly resourceVersion: string; readonly onOpen: () => void }

/** One watch. Throws the errors that it reports. */
async function* changesAfter({ transport, clock, signal }: EventPorts, { source, ...from }: WatchFrom) {
  const request = { clock, signal, path: eventsPath, timeoutSeconds: watchSeconds, idleTimeoutMs: silenceMs }
  for await (const change of watchEvents<KubernetesEvent>(transport, { ...request, ...from, query: queryOf(source) })) {
    if (change.type === 'ERROR') throw apiErrorFromEvent(change.object)
    yield change
  }
}

const queryOf = (source: string) => ({ fieldSelector: `source=${source}` })

/** By name of the Event: the version that was reported. */
const versionsOf = ({ items }: EventList): Map<string, string> =>
  new Map(items.map(({ name, resourceVersion }) => [name, resourceVersion]))

type KubernetesEvent = KubeObject & {
  readonly type?: string
  readonly reason?: string
  readonly message?: string
  readonly count?: number
  readonly firstTimestamp?: string | null
  readonly lastTimestamp?: string | null
  readonly involvedObject: { readonly kind?: string; readonly name?: string }
}

const listedEvent = (event: KubernetesEvent): ListedEvent => ({
  row: rowOf(event),
  name: event.metadata.name,
  resourceVersion: event.metadata.resourceVersion,
})

const rowOf = ({ metadata, type, reason, message, count, involvedObject, ...times }: KubernetesEvent): EventRow => ({
  time: times.lastTimestamp ?? times.firstTimestamp ?? metadata.creationTimestamp ?? '',
  type: type ?? '',
  reason: reason ?? '',
  object: { kind: involvedObject.kind ?? '', name: involvedObject.name ?? '' },
  message: message ?? '',
  count: count ?? 1,
})
