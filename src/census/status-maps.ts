import type { NodeStatus } from '../schemas/skyhook.ts'
import type { NodeFact } from './node-facts.ts'
import { statusesByUrgency, type NodeState } from './skyhook-status.ts'

export type NodeMaps = {
  readonly nodeState: Readonly<Record<string, NodeState>>
  readonly nodeStatus: Readonly<Record<string, NodeStatus>>
  readonly nodeStateTruncated: boolean
}

/** Leaves room in an object of 256 KiB for a spec, the conditions and what others keep in the status. */
const maxMapsBytes = 96 * 1024
const maxNodesWhenTruncated = 100

const urgencyOf = ({ status }: NodeFact): number => statusesByUrgency.indexOf(status)

/** State and status of every node, or, where that is too large, of at most 100 incomplete ones within that size. */
export function nodeMaps(nodes: readonly NodeFact[], limitBytes = maxMapsBytes): NodeMaps {
  const whole = fill(nodes, limitBytes)
  if (whole !== undefined) return { ...whole, nodeStateTruncated: false }
  const incomplete = nodes
    .filter(({ status }) => status !== 'complete')
    .toSorted((a, b) => urgencyOf(a) - urgencyOf(b) || (a.name < b.name ? -1 : 1))
    .slice(0, maxNodesWhenTruncated)
  for (let nodeCount = incomplete.length; ; nodeCount = Math.floor(nodeCount / 2)) {
    const part = fill(incomplete.slice(0, nodeCount), limitBytes)
    if (part !== undefined) return { ...part, nodeStateTruncated: true }
  }
}

function fill(nodes: readonly NodeFact[], limitBytes: number): Omit<NodeMaps, 'nodeStateTruncated'> | undefined {
  const nodeState: Record<string, NodeState> = {}
  const nodeStatus: Record<string, NodeStatus> = {}
  let bytes = 0
  for (const { name, entries, status } of nodes) {
    // quotes, colons and commas
    bytes += 2 * name.length + status.length + Buffer.byteLength(JSON.stringify(entries)) + 10
    if (bytes > limitBytes) return undefined
    nodeState[name] = entries
    nodeStatus[name] = status
  }
  return { nodeState, nodeStatus }
}
