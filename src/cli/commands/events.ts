import { type KubeObject, type ListResult, listAll } from '../../kube/objects.ts'
import { defineCommand, type Context } from '../base/framework/command.ts'
import { exitCodes } from '../base/framework/command-error.ts'
import { formatAge } from '../base/output/durations.ts'
import { envelope, print, type Column, formatTable } from '../base/output/print.ts'
import { backoffMs } from '../../schemas/backoff.ts'
import { type Clock, type Random, sleep } from '../../schemas/clock.ts'
import { messageOf } from '../../schemas/json.ts'
import { apiErrorFromEvent, isGone, isTransient, retryAfterMsOf } from '../../kube/errors.ts'
import { requestBackoff } from '../../kube/retry.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { watchEvents } from '../../kube/watch.ts'

/** An agent, and the census. */
const sources = ['skyhookd', 'skyhookd-census']

export const events = defineCommand({
  name: 'events',
  summary: 'show the Events of agents about Skyhooks and nodes',
  description: 'The API server keeps Events for an hour. With --watch, new ones follow.',
  example: 'kubectl skyhook events --skyhook tuning',
  flags: {
    skyhook: {
      type: 'text',
      placeholder: 'NAME',
      complete: 'skyhooks',
      summary: 'only Events of or about this Skyhook',
    },
    node: { type: 'text', placeholder: 'NODE', complete: 'nodes', summary: 'only Events of this node' },
    watch: { type: 'boolean', short: 'w', summary: 'continue until ctrl-C' },
  },
  exitCodes: { [exitCodes.interrupted]: 'interrupted by ctrl-C, the usual end of --watch' },
  formats: ['table', 'wide', 'json', 'yaml'],
  run: async (context, { flags: { skyhook, node, watch } }) => {
    const ports = { ...context, ...(await context.connect()) }
    const isShown = ({ object, message }: EventRow): boolean =>
      (node === undefined || (object.kind === 'Node' && object.name === node)) &&
      (skyhook === undefined || (object.kind === 'Skyhook' && object.name === skyhook) || mentions(message, skyhook))
    const lists = await Promise.all(sources.map(async (source) => ({ source, list: await listEvents(ports, source) })))
    const rows = inOrder(lists.flatMap(({ list }) => list.items)).flatMap(({ row }) => (isShown(row) ? [row] : []))
    await print(context, {
      rows,
      document: envelope('EventList', rows),
      columns: columnsOf(context),
      empty: 'no Events within the last hour',
    })
    if (!watch) return exitCodes.ok
    const follow = async ({ source, list }: (typeof lists)[number]): Promise<void> => {
      for await (const entry of followEvents(ports, source, list)) {
        if ('note' in entry) context.stderr.write(`${entry.note}\n`)
        else if (isShown(entry.row)) show(context, entry.row)
      }
    }
    await Promise.all(lists.map(follow))
    return exitCodes.interrupted
  },
})

/** In JSON one per line. */
function show(context: Context, row: EventRow): void {
  const { format, stdout } = context
  if (format === 'table' || format === 'wide')
    stdout.write(withoutHeader(formatTable(columnsOf(context), [row], format === 'wide')))
  else stdout.document(`${JSON.stringify(row)}\n`)
}

const withoutHeader = (table: string): string => table.slice(table.indexOf('\n') + 1)

/** Agents name the Skyhook first in their messages. */
const mentions = (message: string, skyhook: string): boolean =>
  new RegExp(`(^|[^a-z0-9.-])${RegExp.escape(skyhook)}([^a-z0-9.-]|$)`).test(message)

const columnsOf = ({ clock }: Pick<Context, 'clock'>): readonly Column<EventRow>[] => [
  { header: 'LAST SEEN', value: ({ time }) => formatAge(clock.wallMs() - Date.parse(time)) },
  { header: 'TYPE', value: ({ type }) => type },
  { header: 'REASON', value: ({ reason }) => reason },
  { header: 'OBJECT', value: ({ object }) => `${object.kind.toLowerCase()}/${object.name}` },
  { header: 'COUNT', value: ({ count }) => String(count), isWide: true },
  { header: 'MESSAGE', value: ({ message }) => message },
]

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
type EventRow = {
  readonly time: string
  readonly type: string
  readonly reason: string
  readonly object: { readonly kind: string; readonly name: string }
  readonly message: string
  readonly count: number
}

/** The Event and its state that a row shows. */
type ListedEvent = { readonly row: EventRow; readonly name: string; readonly resourceVersion: string }
type EventList = ListResult<ListedEvent>

type EventPorts = {
  readonly transport: KubeTransport
  readonly clock: Clock
  readonly random: Random
  readonly signal: AbortSignal
}

/** All Events of one source, and where a watch continues. */
async function listEvents(
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
type FollowedEvent = { readonly row: EventRow } | { readonly note: string }

/**
 * The Events of one source that are not in the list, each state of one once, until the signal aborts. Then it throws
 * the signal's reason. Lists again after a watch that failed. Throws if reading is refused.
 */
async function* followEvents(ports: EventPorts, source: string, from: EventList): AsyncGenerator<FollowedEvent> {
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
const inOrder = <T extends { readonly row: EventRow }>(events: readonly T[]): readonly T[] =>
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
