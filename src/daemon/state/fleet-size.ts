import { hashFraction } from '../../lease/waiting.ts'

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
