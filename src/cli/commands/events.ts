import { defineCommand, type Context } from '../framework/command.ts'
import { exitCodes } from '../framework/command-error.ts'
import { type EventRow, followEvents, inOrder, listEvents } from '../objects/follow-events.ts'
import { formatAge } from '../output/durations.ts'
import { envelope, print, type Column, formatTable } from '../output/print.ts'

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
