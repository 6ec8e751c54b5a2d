/** Reads what the agents of some nodes have logged about steps. */
import { messageOf, parseJson } from '../../../schemas/json.ts'
import { parseStepLine, type StepLine } from '../../../schemas/step-log.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import { readerOf, fleetCollections } from '../fleet-view/collections.ts'
import type { AgentPod } from '../fleet-view/fleet-view.ts'
import { valueOr, readable } from '../fleet-view/readable.ts'
import { logRootIn } from '../fleet-view/settings.ts'
import { notFoundError, exitCodes } from '../../base/framework/command-error.ts'
import type { Context } from '../../base/framework/command.ts'
import { listNodes } from '../objects/read.ts'
import {
  agentPods,
  selectNodes,
  followLog,
  isForbidden,
  isNoPrevious,
  type LogPorts,
  readLog,
  type StampedLine,
} from './read-log.ts'
import { defaultLogRoot, hostFolderOf, isSelected, type StepSelection } from './step-texts.ts'
import { publishedOf } from '../../../schemas/published.ts'
import { selects } from '../../../schemas/selectors.ts'
import type { NodeStatus, Skyhook } from '../../../schemas/skyhook.ts'
import { counted } from '../../../schemas/wording.ts'

export type OpenedLogs = {
  readonly ports: LogPorts
  /** By node, in order. */
  readonly pods: ReadonlyMap<string, AgentPod>
  /** Folder of hosts in which the agents keep output. */
  readonly logRoot: string
}

/**
 * The agents of the nodes that the patterns select; of all nodes without patterns. Reports a pattern without an agent
 * on stderr. Throws "not found" when none has one.
 */
export async function openLogs(context: Context, patterns?: readonly string[]): Promise<OpenedLogs> {
  const { transport, agentNamespace } = await context.connect()
  const { clock, signal, stderr } = context
  const namespace = await agentNamespace()
  const [pods, logRoot] = await Promise.all([
    agentPods(transport, namespace, signal),
    readLogRoot(transport, namespace, signal),
  ])
  const { nodes, unmatched } = selectNodes(pods, patterns)
  if (nodes.length === 0 && patterns !== undefined)
    throw notFoundError(
      `no log: no agent runs on ${patterns.join(', ')}`,
      'see kubectl get nodes; kubectl skyhook explain SKYHOOK NODE explains why a node has no agent',
    )
  for (const pattern of unmatched) stderr.write(`no log: no agent runs on ${pattern}\n`)
  const selected = nodes.flatMap((node) => {
    const pod = pods.get(node)
    return pod ? [[node, pod] as const] : []
  })
  return { ports: { transport, namespace, clock, signal }, pods: new Map(selected), logRoot }
}

/** From the agents' settings; the chart's default if they may not be read. */
async function readLogRoot(transport: KubeTransport, namespace: string, signal: AbortSignal): Promise<string> {
  const settings = { ...fleetCollections(namespace).settings, keep: logRootIn }
  return valueOr(await readerOf(transport, signal)(settings), [])[0] ?? defaultLogRoot
}

export type LoggedLine = { readonly line: StepLine; readonly stamp: string }

/** Facts about the log itself. */
type LogExtent = {
  /** When its first line was taken; undefined for an empty one. */
  readonly firstStamp: string | undefined
  readonly shown: number
  /** It reports steps that started before it. */
  readonly isTooShort: boolean
}

/** Passes the selected lines of a log on in order, and returns how far back it goes. */
export async function readSteps(
  lines: AsyncIterable<StampedLine>,
  selection: StepSelection,
  onLine: (line: LoggedLine) => void,
): Promise<LogExtent> {
  let firstStamp: string | undefined
  let shown = 0
  let isTooShort = false
  for await (const { stamp, text } of lines) {
    firstStamp ??= stamp
    const line = parseStepLine(parseJson(text))
    if (line === undefined || !isSelected(line, selection)) continue
    if (isOlder(line)) isTooShort = true
    else shown++
    onLine({ line, stamp })
  }
  return { firstStamp, shown, isTooShort: isTooShort || shown === 0 }
}

/** The step started in the log of an earlier agent. */
const isOlder = (line: StepLine): boolean =>
  (line.what === 'ended' && line.isRepeated) || (line.what === 'started' && line.isRunning)

/** `folder`: of the host, with the output that the log does not have. */
type FollowRequest = {
  readonly ports: LogPorts
  readonly node: string
  readonly selection: StepSelection
  readonly folder: string
}

/** The same for a followed log, with remarks on stderr. Ends with the signal's reason. */
export async function followSteps(
  { ports, node, selection, folder }: FollowRequest,
  onLine: (line: LoggedLine) => void,
  onNote: (note: string) => void,
): Promise<void> {
  let isNoted = false
  for await (const entry of followLog(ports, node)) {
    if ('note' in entry) {
      onNote(`node ${node}: ${entry.note}`)
      continue
    }
    const line = parseStepLine(parseJson(entry.text))
    if (line === undefined || !isSelected(line, selection)) continue
    if (isOlder(line) && !isNoted) onNote(extentNote(node, folder, entry.stamp))
    isNoted ||= isOlder(line)
    onLine({ line, stamp: entry.stamp })
  }
}

/** How much of it agents keep there. */
const kept = ' (the newest five logs of each step)'

/** Where to find the output that the log of a node does not have. */
export function extentNote(node: string, folder: string, firstStamp: string | undefined, restarts = 0): string {
  const since = firstStamp === undefined ? 'is empty' : `goes back to ${firstStamp.slice(0, 19)}Z`
  const previous = restarts > 0 ? '; --previous shows the log before its last restart' : ''
  return `node ${node}: the log of its agent ${since}; earlier output is on the host, in ${folder}${kept}${previous}`
}

/** Reads the log of one node. False after a failure, which is reported on stderr. Throws if reading is forbidden. */
export async function readNode(
  { ports, pods, logRoot }: OpenedLogs,
  { stderr, signal }: Pick<Context, 'stderr' | 'signal'>,
  request: { readonly node: string; readonly selection: StepSelection; readonly isPrevious: boolean },
  onLine: (line: LoggedLine) => void,
): Promise<boolean> {
  const { node, selection, isPrevious } = request
  const pod = pods.get(node)
  if (!pod) return false
  const folder = hostFolderOf(selection, logRoot)
  try {
    const extent = await readSteps(readLog(ports, pod, { isPrevious }), selection, onLine)
    if (extent.isTooShort)
      stderr.write(`${extentNote(node, folder, extent.firstStamp, isPrevious ? 0 : pod.restarts)}\n`)
    return true
  } catch (error) {
    signal.throwIfAborted()
    if (isForbidden(error)) throw error
    stderr.write(
      isNoPrevious(error)
        ? `node ${node}: no previous log: its agent has not restarted in this pod; ` +
            `earlier output is on the host, in ${folder}${kept}\n`
        : `node ${node}: the log of its agent cannot be read: ${messageOf(error)}\n`,
    )
    return false
  }
}

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

/** The arguments and flags of the commands that read the logs of agents. */
export const logArguments = { skyhook: { summary: 'name of the Skyhook', complete: 'skyhooks' } } as const

export const logFlags = {
  node: {
    type: 'list',
    placeholder: 'NODE',
    complete: 'nodes',
    summary: 'nodes of this name or pattern; by default ten, those in trouble first',
  },
  package: { type: 'text', placeholder: 'NAME', complete: 'packages', summary: 'only this package' },
} as const

export const logExitCodes = {
  [exitCodes.failed]: 'the log of a node could not be read; the others are shown',
  [exitCodes.notFound]: 'the Skyhook does not exist, or no agent runs on these nodes',
}
