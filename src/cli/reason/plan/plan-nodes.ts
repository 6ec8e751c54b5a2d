/** What edits would do on all nodes: those that decisions cannot tell apart are rehearsed once. Pure. */
import { cordonKey, journalKey, statusKey } from '../../../schemas/annotations.ts'
import { apiGroup } from '../../../schemas/api.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import { selects } from '../../../schemas/selectors.ts'
import type { Skyhook } from '../../../schemas/skyhook.ts'
import { isControlPlaneNode } from '../../../stages/model/snapshot.ts'
import { agentFinding } from '../explain/agent-finding.ts'
import type { NodeDetail } from '../../fleet/fleet-view/node-detail.ts'
import { valueOr } from '../../fleet/fleet-view/readable.ts'
import { type Edit, type Fleets, type NodePlan, planNode } from './plan-node.ts'

/**
 * Returns how a node is planned. Those that are alike are rehearsed once: with twenty Skyhooks a rehearsal takes a
 * tenth of a second, and fleets have thousands of nodes.
 */
export function nodePlanner(
  fleets: Fleets,
  edits: readonly Edit[],
): (node: KubernetesNode, detail: NodeDetail) => ReadonlyMap<string, NodePlan> {
  const known = new Map<string, ReadonlyMap<string, NodePlan>>()
  return (node, detail) => {
    const likeness = likenessOf(fleets, { node, detail })
    const found = likeness === undefined ? undefined : known.get(likeness)
    if (found) {
      const own = { node: node.metadata.name, agent: agentFinding(fleets.before, node)?.message }
      return new Map([...found].map(([name, plan]) => [name, { ...plan, ...own }]))
    }
    const plans = planNode(fleets, edits, { node, detail })
    if (likeness !== undefined) known.set(likeness, plans)
    return plans
  }
}

/**
 * The same text for nodes that are alike; undefined for a node at work, which is like no other: how far it is depends
 * on its slots and on times. Identity and times of the Node are left out, and labels that nothing asks for.
 */
export function likenessOf(
  { before, after }: Fleets,
  { node, detail }: { readonly node: KubernetesNode; readonly detail: Pick<NodeDetail, 'events'> },
): string | undefined {
  const { metadata, spec, status } = node
  const { labels = {}, annotations = {}, name, uid } = metadata
  const skyhooks = [...valueOr(before.skyhooks, []), ...valueOr(after.skyhooks, [])]
  const isAtWork = skyhooks.some(
    (skyhook) =>
      Object.hasOwn(annotations, cordonKey(skyhook.metadata.name)) ||
      busyStatuses.has(annotations[statusKey(skyhook.metadata.name)] ?? ''),
  )
  const hasSlot = valueOr(before.slots, []).some(({ holder }) => holder === name)
  if (isAtWork || hasSlot) return undefined
  const { nodeInfo, conditions = [] } = status ?? {}
  const bootId = nodeInfo?.bootID ?? ''
  const selected = skyhooks.map((skyhook: Skyhook) => selects(skyhook.spec.nodeSelectors, labels))
  const ownLabels = Object.entries(labels).filter(([key]) => key.startsWith(`${apiGroup}/`))
  const reported = Object.entries(annotations).map(([key, value]) => [key, anonymous(key, value)])
  const events = valueOr(detail.events, []).map(({ reason, message }) => `${reason} ${message}`)
  const facts = [
    selected,
    ownLabels.toSorted(byKey),
    isControlPlaneNode(node),
    spec?.taints ?? [],
    spec?.unschedulable === true,
    conditions.map(({ type, status: state }) => `${type} ${state}`).toSorted(),
    reported.toSorted(byKey),
    [...new Set(events)].toSorted(),
  ]
  const text = JSON.stringify(facts)
  return [uid, bootId, name].reduce((one, part) => (part === '' ? one : one.replaceAll(wholeWord(part), '*')), text)
}

/** A node may have the name of a package, or a part of it. */
const wholeWord = (text: string): RegExp => new RegExp(`(?<![\\w.-])${RegExp.escape(text)}(?![\\w.-])`, 'g')

const busyStatuses: ReadonlySet<string> = new Set(['in_progress', 'erroring'])

const byKey = ([a = '']: readonly unknown[], [b = '']: readonly unknown[]): number => (String(a) < String(b) ? -1 : 1)

/** How often something was published, when, and by which of two specs that ask for the same, decides nothing. */
const anonymous = (key: string, value: string): string =>
  key.startsWith(journalKey(''))
    ? value.replace(/"rev":\d+/, '').replace(/"completedBy":\{[^}]*\}/, '')
    : value.replaceAll(/"(?:since|nextTry)":"[^"]*"/g, '')
