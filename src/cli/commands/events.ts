import type { ObjectMeta } from '../../schemas/kubernetes.ts'
import { listAll } from '../../kube/list.ts'
import { watchEvents } from '../../kube/watch.ts'
import { apiErrorFromEvent, isGone } from '../../kube/errors.ts'
import { defineCommand, type Context } from '../framework/command.ts'
import { exitCodes } from '../framework/exit-codes.ts'
import type { Connection } from '../connection/connection.ts'
import { formatAge } from '../output/age.ts'
import { envelope, print } from '../output/print.ts'
import { type Column, formatTable } from '../output/table.ts'

/** Events of objects without a namespace, which Nodes and Skyhooks are. */
const eventsPath = '/api/v1/namespaces/default/events'
/** An agent, and the one that counts for the cluster. */
const sources = ['skyhookd', 'skyhookd-census']
const watchSeconds = 300
const silenceMs = 120_000

type KubernetesEvent = {
  readonly metadata: ObjectMeta
  readonly type?: string
  readonly reason?: string
  readonly message?: string
  readonly count?: number
  readonly firstTimestamp?: string | null
  readonly lastTimestamp?: string | null
  readonly involvedObject: { readonly kind?: string; readonly name?: string }
}

type Row = {
  readonly time: string
  readonly type: string
  readonly reason: string
  readonly object: { readonly kind: string; readonly name: string }
  readonly message: string
  readonly count: number
}

export const events = defineCommand({
  name: 'events',
  summary: 'show the Events that agents have sent about Skyhooks and nodes',
  description: 'The API server forgets Events after an hour. With --watch, new ones follow as they come.',
  example: 'kubectl skyhook events --skyhook tuning',
  flags: {
    skyhook: {
      type: 'text',
      placeholder: 'NAME',
      complete: 'skyhooks',
      summary: 'only Events of or about this Skyhook',
    },
    node: { type: 'text', placeholder: 'NODE', complete: 'nodes', summary: 'only Events of this node' },
    watch: { type: 'boolean', short: 'w', summary: 'go on until ctrl-C' },
  },
  exitCodes: { [exitCodes.interrupted]: 'interrupted by ctrl-C, which is how --watch ends' },
  formats: ['table', 'wide', 'json', 'yaml'],
  run: async (context, { flags: { skyhook, node, watch } }) => {
    const connection = await context.connect()
    const isShown = ({ object, message }: Row): boolean =>
      (node === undefined || (object.kind === 'Node' && object.name === node)) &&
      (skyhook === undefined || (object.kind === 'Skyhook' && object.name === skyhook) || mentions(message, skyhook))
    const lists = await Promise.all(
      sources.map(async (source) => ({ source, ...(await list(connection, source, context.signal)) })),
    )
    const rows = lists.flatMap(({ items }) => items.filter(isShown)).sort((a, b) => (a.time < b.time ? -1 : 1))
    await print(context, {
      rows,
      document: envelope('EventList', rows),
      columns: columnsOf(context),
      empty: 'no Events within the last hour',
    })
    if (!watch) return exitCodes.ok
    await Promise.all(
      lists.map(
        async ({ source, resourceVersion }) => await follow(context, connection, { source, resourceVersion, isShown }),
      ),
    )
    return exitCodes.interrupted
  },
})

/** All Events of one source, and where a watch continues. */
async function list(
  { transport }: Connection,
  source: string,
  signal: AbortSignal,
): Promise<{ readonly items: readonly Row[]; readonly resourceVersion: string }> {
  const query = { fieldSelector: `source=${source}` }
  return await listAll<KubernetesEvent, Row>(transport, eventsPath, { query, signal, transform: rowOf })
}

type Following = {
  readonly source: string
  readonly resourceVersion: string
  readonly isShown: (row: Row) => boolean
}

/** Prints each new Event; in JSON one per line. Returns when the signal is aborted. */
async function follow(
  context: Context,
  connection: Connection,
  { source, isShown, ...from }: Following,
): Promise<void> {
  const { clock, signal } = context
  const query = { fieldSelector: `source=${source}` }
  const request = { clock, path: eventsPath, query, signal, timeoutSeconds: watchSeconds, idleTimeoutMs: silenceMs }
  let { resourceVersion } = from
  for (;;) {
    try {
      const changes = watchEvents<KubernetesEvent>(connection.transport, { ...request, resourceVersion })
      for await (const change of changes) {
        if (change.type === 'ERROR') throw apiErrorFromEvent(change.object)
        resourceVersion = change.object.metadata.resourceVersion
        if (change.type === 'ADDED' || change.type === 'MODIFIED') show(context, rowOf(change.object), isShown)
      }
    } catch (error) {
      if (signal.aborted) return
      if (!isGone(error)) throw error
      // what came meanwhile is shown again rather than lost
      const { items, ...next } = await list(connection, source, signal)
      resourceVersion = next.resourceVersion
      for (const row of items) show(context, row, isShown)
    }
  }
}

function show(context: Context, row: Row, isShown: (row: Row) => boolean): void {
  const { format, stdout } = context
  if (!isShown(row)) return
  const isText = format === 'table' || format === 'wide'
  stdout.write(
    isText ? withoutHeader(formatTable(columnsOf(context), [row], format === 'wide')) : `${JSON.stringify(row)}\n`,
  )
}

const withoutHeader = (table: string): string => table.slice(table.indexOf('\n') + 1)

/** Agents name the Skyhook first in their messages. */
const mentions = (message: string, skyhook: string): boolean =>
  new RegExp(`(^|[^a-z0-9.-])${skyhook.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}([^a-z0-9.-]|$)`).test(message)

const rowOf = ({ metadata, type, reason, message, count, involvedObject, ...times }: KubernetesEvent): Row => ({
  time: times.lastTimestamp ?? times.firstTimestamp ?? metadata.creationTimestamp ?? '',
  type: type ?? '',
  reason: reason ?? '',
  object: { kind: involvedObject.kind ?? '', name: involvedObject.name ?? '' },
  message: message ?? '',
  count: count ?? 1,
})

const columnsOf = ({ clock }: Pick<Context, 'clock'>): readonly Column<Row>[] => [
  { header: 'LAST SEEN', value: ({ time }) => formatAge(clock.wallMs() - Date.parse(time)) },
  { header: 'TYPE', value: ({ type }) => type },
  { header: 'REASON', value: ({ reason }) => reason },
  { header: 'OBJECT', value: ({ object }) => `${object.kind.toLowerCase()}/${object.name}` },
  { header: 'COUNT', value: ({ count }) => String(count), isWide: true },
  { header: 'MESSAGE', value: ({ message }) => message },
]
