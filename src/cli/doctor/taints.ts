/** Nodes whose taint of new nodes stays, since no Skyhook removes it. */
import type { KubernetesNode, Taint } from '../../schemas/kubernetes.ts'
import { unliftedTaint } from '../../stages/drain/node-spec.ts'
import type { Known } from '../../stages/model/snapshot.ts'
import { defaultSettings } from '../fleet-view/settings.ts'
import { valueOr } from '../fleet-view/readable.ts'
import type { FleetView } from '../fleet-view/fleet-view.ts'
import { type Check, checkOf, type Finding, finding, namedSome } from './finding.ts'
import { counted } from '../../schemas/wording.ts'

/** `nodes`: the checked ones. */
export function checkTaints(
  fleet: FleetView<KubernetesNode>,
  nodes: Known<readonly KubernetesNode[]> = fleet.nodes,
): Check {
  const { skyhooks } = fleet
  if (!nodes.known || !skyhooks.known)
    return checkOf('taints', { unknown: [nodes, skyhooks].flatMap((part) => (part.known ? [] : [part.why])) })
  const { runtimeRequiredTaint } = valueOr(fleet.settings, defaultSettings)
  const found = nodes.value.flatMap((node) => {
    const taint = unliftedTaint(node, runtimeRequiredTaint, skyhooks.value)
    return taint ? [{ name: node.metadata.name, ...taint }] : []
  })
  const [first] = found
  const about = counted(nodes.value.length, 'node')
  const pressed = pressureFindings(nodes.value)
  if (!first) return checkOf('taints', { about, findings: pressed })
  const names = found.map(({ name }) => name)
  const others = first.others.length > 0 ? `, not ${namedSome(first.others)}` : ''
  return checkOf('taints', {
    about,
    findings: [
      ...pressed,
      finding('taint-without-skyhook', {
        message:
          `${counted(found.length, 'node')} with the taint ${first.text}, and no Skyhook with runtimeRequired ` +
          `selects them${others}: ${namedSome(names)}`,
        remedy: 'apply a Skyhook with runtimeRequired that selects them, or remove the taint',
        command: `kubectl taint node ${first.name} ${removalOf(first.taints)}`,
        objects: names.map((name) => ({ kind: 'Node', name })),
      }),
    ],
  })
}

/** As an argument of kubectl. */
const removalOf = (taints: readonly Taint[]): string => taints.map(({ key, effect }) => `${key}:${effect}-`).join(' ')

const pressureKeys = ['disk-pressure', 'memory-pressure', 'pid-pressure', 'network-unavailable'].map(
  (name) => `node.kubernetes.io/${name}`,
)

/** Taints of Kubernetes also keep Skyhooks without a toleration off a node. */
function pressureFindings(nodes: readonly KubernetesNode[]): readonly Finding[] {
  return pressureKeys.flatMap((key) => {
    const names = nodes.filter(({ spec }) => spec?.taints?.some((one) => one.key === key)).map(nameOf)
    if (names.length === 0) return []
    return [
      finding('node-under-pressure', {
        message: `${counted(names.length, 'node')} with the taint ${key}: ${namedSome(names)}`,
        remedy: 'fix on the host what the conditions of the Node report: Kubernetes then removes the taint',
        command: `kubectl describe node ${names[0] ?? ''}`,
        objects: names.map((name) => ({ kind: 'Node', name })),
      }),
    ]
  })
}

const nameOf = ({ metadata }: KubernetesNode): string => metadata.name
