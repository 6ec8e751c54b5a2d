import type { KubernetesNode, LabelSelectorRequirement } from '../../../schemas/kubernetes.ts'
import { selects } from '../../../schemas/selectors.ts'
import type { Skyhook } from '../../../schemas/skyhook.ts'
import { counted } from '../../../schemas/wording.ts'
import type { Finding } from './finding.ts'

/** Which requirements of the selector the node does not meet; undefined for a node that is selected. */
export function selectorFinding(skyhook: Skyhook, node: KubernetesNode): Finding | undefined {
  const { metadata, spec } = skyhook
  const labels = node.metadata.labels ?? {}
  const unmet = unmetBy(skyhook, node)
  const [first] = Object.entries(spec.nodeSelectors?.matchLabels ?? {}).filter(([key, value]) => labels[key] !== value)
  if (unmet.length === 0) return undefined
  return {
    gate: 'selector',
    cause: 'not-selected',
    message: `spec.nodeSelectors does not select the node: it asks for ${unmet.join(' and ')}`,
    objects: [{ kind: 'Node', name: node.metadata.name }],
    sinceMs: undefined,
    unblock: 'change the labels of the node, or spec.nodeSelectors',
    command: first
      ? `kubectl label node ${node.metadata.name} ${first[0]}=${first[1]} --overwrite`
      : `kubectl edit skyhook ${metadata.name}`,
  }
}

/** Of a Skyhook that selects none of these nodes; undefined if it selects one. */
export function nobodySelected(skyhook: Skyhook, nodes: readonly KubernetesNode[]): Finding | undefined {
  const { name } = skyhook.metadata
  const all = nodes.map((node) => ({ node: node.metadata.name, unmet: unmetBy(skyhook, node) }))
  const [nearest] = all.toSorted((a, b) => a.unmet.length - b.unmet.length)
  if (nearest?.unmet.length === 0) return undefined
  const lack = nearest ? `: the nearest, ${nearest.node}, lacks ${nearest.unmet.join(' and ')}` : ''
  return {
    gate: 'selector',
    cause: 'not-selected',
    message: `spec.nodeSelectors selects none of ${counted(nodes.length, 'node')}${lack}`,
    objects: [{ kind: 'Skyhook', name }],
    sinceMs: undefined,
    unblock: 'correct spec.nodeSelectors, or label nodes; a pool that is scaled to zero is fine',
    command: 'kubectl get nodes --show-labels',
  }
}

function unmetBy({ spec }: Skyhook, { metadata: { labels = {} } }: KubernetesNode): readonly string[] {
  const { matchLabels = {}, matchExpressions = [] } = spec.nodeSelectors ?? {}
  return [
    ...Object.entries(matchLabels).flatMap(([key, value]) => (labels[key] === value ? [] : [`${key}=${value}`])),
    ...matchExpressions.flatMap((one) => (selects({ matchExpressions: [one] }, labels) ? [] : [requirementText(one)])),
  ]
}

const requirementText = ({ key, operator, values = [] }: LabelSelectorRequirement): string =>
  operator === 'In' || operator === 'NotIn'
    ? `${key} ${operator === 'In' ? 'in' : 'not in'} (${values.join(', ')})`
    : operator === 'Exists'
      ? key
      : `no label ${key}`
