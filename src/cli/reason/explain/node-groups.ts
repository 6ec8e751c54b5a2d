/** Groups nodes that are held up by the same thing. */
import { gateNames } from '../../../schemas/catalogue/reason-codes.ts'
import type { NodeExplanation } from './explain-node.ts'
import type { Finding, ObjectName } from './finding.ts'

export type NodeGroup = {
  readonly nodes: readonly string[]
  readonly state: NodeExplanation['state']
  /** That of the node that has waited longest; undefined for nodes at work. */
  readonly finding: Finding | undefined
}

/** Those that need help first; nodes that only wait for others come last, nodes at work before them. */
export function nodeGroups(explanations: readonly NodeExplanation[]): readonly NodeGroup[] {
  const incomplete = explanations.filter(({ state }) => state !== 'complete' && state !== 'not-selected')
  const groups = Map.groupBy(incomplete, keyOf)
  return [...groups.values()]
    .map((members): NodeGroup => {
      const findings = members.flatMap(({ verdict }) => verdict ?? [])
      const finding = findings.toSorted((a, b) => (a.sinceMs ?? Infinity) - (b.sinceMs ?? Infinity))[0]
      const nodes = members.map(({ node }) => node).toSorted((a, b) => (a < b ? -1 : 1))
      return { nodes, state: members[0]?.state ?? 'working', finding }
    })
    .toSorted((a, b) => rankOf(a) - rankOf(b) || b.nodes.length - a.nodes.length)
}

/** The Node itself is what differs between nodes with one cause, and the pod of its agent. */
function keyOf({ state, verdict, node }: NodeExplanation): string {
  const isOwn = ({ kind, name }: ObjectName): boolean =>
    (kind === 'Node' && name === node) || (kind === 'Pod' && verdict?.gate === 'agent')
  const objects = (verdict?.objects ?? []).filter((object) => !isOwn(object))
  return [
    state,
    verdict?.cause,
    ...objects.map(({ kind, namespace = '', name }) => `${kind}/${namespace}/${name}`),
  ].join(' ')
}

const waits: ReadonlySet<string> = new Set([
  'budget-full',
  'batch',
  'next-in-line',
  'earlier-skyhook',
  'other-skyhook',
  'control-plane',
])

function rankOf({ finding }: NodeGroup): number {
  if (finding === undefined) return gateNames.length
  return waits.has(finding.cause) ? gateNames.length + 1 : gateNames.indexOf(finding.gate)
}
