/** The nodes whose logs are shown: those that the user names, or those in trouble. */
import { publishedOf } from '../../schemas/published.ts'
import { selects } from '../../schemas/selectors.ts'
import type { NodeStatus, Skyhook } from '../../schemas/skyhook.ts'
import { counted } from '../../schemas/wording.ts'
import { notFoundError } from '../framework/command-error.ts'
import type { Context } from '../framework/command.ts'
import { readable } from '../fleet-view/readable.ts'
import { listNodes } from '../objects/nodes.ts'
import { type OpenedLogs, openLogs } from './node-log.ts'

/** The agents of the nodes that the patterns select; without patterns those of the Skyhook, as below. */
export async function openChosen(context: Context, skyhook: Skyhook, patterns: readonly string[]): Promise<OpenedLogs> {
  if (patterns.length > 0) return await openLogs(context, patterns)
  return await troubledFirst(context, await openLogs(context), skyhook)
}

/** Each log is a request, and a person does not read more. */
const maxNodes = 10

const order: readonly (NodeStatus | 'unreadable' | undefined)[] = [
  'erroring',
  'blocked',
  'unreadable',
  'unknown',
  'in_progress',
  'waiting',
  'paused',
  'disabled',
  undefined,
  'complete',
]

/**
 * Of the nodes that the Skyhook selects, those in trouble come first, then those at work, by name. Prints on stderr how
 * many are left out. If Nodes may not be read, returns all nodes by name. Throws "not found" if no agent runs on any.
 */
async function troubledFirst(
  { stderr, signal }: Pick<Context, 'stderr' | 'signal'>,
  opened: OpenedLogs,
  { metadata: { name }, spec }: Skyhook,
): Promise<OpenedLogs> {
  const nodes = await readable('Nodes', listNodes(opened.ports.transport, signal))
  const statusOf = new Map(
    (nodes.known ? nodes.value : [])
      .filter(({ metadata }) => selects(spec.nodeSelectors, metadata.labels ?? {}))
      .map((node) => [node.metadata.name, publishedOf(node, name).status] as const),
  )
  const selected = [...opened.pods].filter(([node]) => !nodes.known || statusOf.has(node))
  if (selected.length === 0)
    throw notFoundError(`no log: no agent runs on a node of Skyhook ${name}`, `kubectl skyhook explain ${name}`)
  const rankOf = ([node]: readonly [string, unknown]): number => order.indexOf(statusOf.get(node))
  const shown = selected.toSorted((a, b) => rankOf(a) - rankOf(b)).slice(0, maxNodes)
  if (shown.length < selected.length)
    stderr.write(
      `${shown.length} of ${counted(selected.length, 'node')}, those in trouble first; --node chooses others\n`,
    )
  return { ...opened, pods: new Map(shown) }
}
