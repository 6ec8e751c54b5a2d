/** The log of an agent's pod, once or continuously. */
import { ApiError, NoResponseError } from '../../../kube/errors.ts'
import type { ByteStream, KubeTransport } from '../../../kube/transport.ts'
import { readLines } from '../../../kube/watch.ts'
import { type Clock, sleep, startWatchdog } from '../../../schemas/clock.ts'
import { podsPathIn, fleetCollections, listCollection } from '../fleet-view/collections.ts'
import type { AgentPod } from '../fleet-view/fleet-view.ts'
import { agentContainer } from '../fleet-view/project.ts'
import { matchNames, unmatchedPatterns } from '../objects/read.ts'

/** A dead connection is as silent as an idle agent: after this time a new one is opened. */
const silenceMs = 120_000
/** Between two looks for the pod that replaces one. */
const retryMs = 500
/** How long that may take before it is reported. */
const maxUnreportedRetries = 4

export type LogPorts = {
  readonly transport: KubeTransport
  /** Of the agents. */
  readonly namespace: string
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** `stamp`: when the node took the line; sorts as text. */
export type StampedLine = { readonly stamp: string; readonly text: string }

type ReadOptions = {
  readonly isPrevious?: boolean
  readonly isFollowed?: boolean
  readonly since?: string | undefined
  /** The API server has the log. */
  readonly onOpen?: () => void
}

/**
 * The lines of the log of one pod's agent: of the running container, or with `isPrevious` of the one before it. Starts
 * at `since` if that is given. Throws the errors of the transport.
 */
export async function* readLog(
  { transport, namespace, clock, signal }: LogPorts,
  pod: AgentPod,
  options: ReadOptions = {},
): AsyncGenerator<StampedLine> {
  const { isPrevious = false, isFollowed = false, since, onOpen } = options
  const stream = await transport.stream(`${podsPathIn(namespace)}/${pod.name}/log`, {
    query: {
      container: agentContainer,
      timestamps: true,
      ...(isFollowed && { follow: true }),
      ...(isPrevious && { previous: true }),
      ...(since !== undefined && { sinceTime: since }),
    },
    accept: '*/*',
    signal,
  })
  onOpen?.()
  const watchdog = startWatchdog(clock, silenceMs, () => stream.destroy(), { isBackground: true })
  try {
    for await (const line of readLines(endingLine(stream), () => watchdog.reset())) yield stamped(line)
  } finally {
    watchdog.stop()
    stream.destroy()
  }
}

/** A note between lines: the agent is being replaced, or the API server does not answer. */
export type FollowedLine = StampedLine | { readonly note: string }

/**
 * The lines of the agent of a node, and those of the agents after it, until the signal aborts. Then it throws the
 * signal's reason. Each line comes once, also when the connection breaks. Throws if reading is refused.
 */
export async function* followLog(ports: LogPorts, node: string): AsyncGenerator<FollowedLine> {
  const { clock, signal } = ports
  let last: { readonly uid: string | undefined; readonly stamp: string } | undefined
  for (let failures = 0; ; failures++) {
    try {
      const pod = (await agentPods(ports.transport, ports.namespace, signal)).get(node)
      if (pod) {
        const { uid } = pod
        const since = last?.uid === uid ? last?.stamp : undefined
        const onOpen = (): void => void (failures = 0)
        for await (const line of readLog(ports, pod, { isFollowed: true, since, onOpen })) {
          if (since !== undefined && line.stamp <= since) continue
          yield line
          last = { uid, stamp: line.stamp }
        }
      }
    } catch (error) {
      signal.throwIfAborted()
      if (!isPassing(error)) throw error
    }
    signal.throwIfAborted()
    if (failures === maxUnreportedRetries) yield { note: 'no agent answers there at present, waiting' }
    await sleep(clock, retryMs, signal)
  }
}

/** True for "there is no container before this one". */
export const isNoPrevious = (error: unknown): boolean =>
  error instanceof ApiError && error.status === 400 && /previous/.test(error.message)

/** The caller may not read logs of any node. */
export const isForbidden = (error: unknown): boolean => error instanceof ApiError && [401, 403].includes(error.status)

/** The pod is gone or has not started, or its kubelet is unreachable: it may be there in a moment. */
function isPassing(error: unknown): boolean {
  if (error instanceof ApiError) return !isForbidden(error)
  return error instanceof NoResponseError || (error instanceof Error && 'code' in error)
}

/** A log that ends inside a line has been cut by the end of its container. */
async function* endingLine(stream: ByteStream): AsyncGenerator<Uint8Array> {
  yield* stream
  yield Buffer.from('\n')
}

function stamped(line: string): StampedLine {
  const end = line.indexOf(' ')
  return { stamp: line.slice(0, end), text: line.slice(end + 1) }
}

/** The agents' pods by node; if one is being replaced, the one that stays. Throws the errors of the transport. */
export async function agentPods(
  transport: KubeTransport,
  namespace: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, AgentPod>> {
  const pods = await listCollection(transport, fleetCollections(namespace).agents, signal)
  const inOrder = pods.filter(({ node }) => node !== '').toSorted((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1))
  return new Map(inOrder.map((pod) => [pod.node, pod]))
}

/** The agents' nodes that the patterns select, and the patterns that select none. Without patterns, all nodes. */
export function selectNodes(
  pods: ReadonlyMap<string, AgentPod>,
  patterns: readonly string[] | undefined,
): { readonly nodes: readonly string[]; readonly unmatched: readonly string[] } {
  const names = [...pods.keys()].sort()
  if (patterns === undefined) return { nodes: names, unmatched: [] }
  return { nodes: matchNames(patterns, names), unmatched: unmatchedPatterns(patterns, names) }
}

/** Those that stay come last, and the newest of them. */
const orderOf = ({ isDeleting, createdAt }: AgentPod): string => `${isDeleting ? 0 : 1} ${createdAt}`
