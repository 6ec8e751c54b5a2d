import type { KubernetesNode, LabelSelectorRequirement } from '../../schemas/kubernetes.ts'
import { selects } from '../../schemas/selectors.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import type { Finding } from './finding.ts'

/** Which requirements of the selector the node does not meet; undefined for a node that is selected. */
export function selectorFinding({ metadata, spec }: Skyhook, node: KubernetesNode): Finding | undefined {
  const labels = node.metadata.labels ?? {}
  const { matchLabels = {}, matchExpressions = [] } = spec.nodeSelectors ?? {}
  const unmet = [
    ...Object.entries(matchLabels).flatMap(([key, value]) => (labels[key] === value ? [] : [`${key}=${value}`])),
    ...matchExpressions.flatMap((one) => (selects({ matchExpressions: [one] }, labels) ? [] : [requirementText(one)])),
  ]
  const [first] = Object.entries(matchLabels).filter(([key, value]) => labels[key] !== value)
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

const requirementText = ({ key, operator, values = [] }: LabelSelectorRequirement): string =>
  operator === 'In' || operator === 'NotIn'
    ? `${key} ${operator === 'In' ? 'in' : 'not in'} (${values.join(', ')})`
    : operator === 'Exists'
      ? key
      : `no label ${key}`
