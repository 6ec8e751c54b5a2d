import { type KubeObject, metadataOnlyListAccept, type ObjectList } from '../../kube/objects.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { hashFraction } from '../../lease/waiting.ts'
import type { Clock } from '../../schemas/clock.ts'
import type { NodeCount } from '../../stages/model/snapshot.ts'

/** How many agents the cluster has, to spread work that all of them would do at the same time. */
export type FleetSize = {
  /** At least 1. The last count of the census, or the estimate of the settings before the first count. */
  agents(): number
  /** A Lease of the census has this count. */
  observe(agents: number): void
}

export function createFleetSize(estimatedNodeCount: number): FleetSize {
  let agents = Math.max(1, estimatedNodeCount)
  return {
    agents: () => agents,
    observe(counted) {
      if (counted >= 1) agents = counted
    },
  }
}

/** Determines whether this node is the only one, for `spec.drain.singleNode`. */
export type NodeCounter = {
  /** Requests two nodes at most. */
  count(): Promise<NodeCount>
  /** The last count; undefined until the first one. */
  readonly current: () => NodeCount | undefined
}

export function createNodeCounter(
  transport: KubeTransport,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): NodeCounter {
  let current: NodeCount | undefined
  return {
    async count() {
      const atMs = clock.steadyMs() // before the request: the answer may lack a node that joins meanwhile
      const { items = [] } = await transport.json<ObjectList<KubeObject>>('GET', '/api/v1/nodes', {
        query: { limit: 2 }, // two are enough
        accept: metadataOnlyListAccept,
        signal,
      })
      current = { isSingle: items.length === 1, atMs }
      return current
    },
    current: () => current,
  }
}

/** Spreads the work of all agents of a cluster after one edit of a Skyhook. Small clusters need no spread. */

/** Up to this number of agents may act at once. */
export const maxNodesWithoutSpread = 100
const maxReadDelayMs = 5_000
const readDelayMsPerNode = 1
const maxReportDelayMs = 10_000
const reportDelayMsPerNode = 10

/**
 * How long a node waits before it reads the Skyhook again, in ms (design §5).
 * @param random at least 0, below 1
 */
export const readDelayMs = (nodes: number, random: number): number =>
  nodes <= maxNodesWithoutSpread ? 0 : random * Math.min(maxReadDelayMs, readDelayMsPerNode * nodes)

/**
 * When this node may write that it waits, in ms after the start of the wait. Constant while the size of the cluster is.
 */
export const waitReportDelayMs = (nodes: number, nodeName: string): number =>
  nodes <= maxNodesWithoutSpread ? 0 : hashFraction(nodeName) * Math.min(maxReportDelayMs, reportDelayMsPerNode * nodes)
