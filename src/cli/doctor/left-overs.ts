/**
 * Cordons and slots that are no longer needed. Agents take a slot before they cordon, and uncordon before they release
 * it. Nodes and Leases come from two LISTs: a node that changes between them looks left over for a moment. A suspicion
 * counts only when a second look confirms it.
 */
import { cordonedBeforeKey, cordonKey, keepOffBeforeKey, skyhooksWith } from '../../schemas/annotations.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import { labelKeys } from '../../lease/names.ts'
import type { Slot } from '../../lease/slot.ts'
import { agentFinding, slowStartMs } from '../reason/explain/agent-finding.ts'
import { isNotRenewed } from '../reason/explain/slot-view.ts'
import type { FleetView } from '../fleet/fleet-view/fleet-view.ts'
import { type Check, checkOf, type FindingId, type Finding, finding, namedSome } from './finding.ts'
import { counted } from '../../schemas/wording.ts'
import { selects } from '../../schemas/selectors.ts'
import { silentAfterMs } from '../../stages/skyhook/gates.ts'
import { valueOr } from '../fleet/fleet-view/readable.ts'

type Fleet = FleetView<KubernetesNode>

export type Suspicion = {
  readonly id: FindingId & (`cordon-${string}` | `slot-${string}` | 'agent-missing')
  readonly node: string
  /** Empty: of none. */
  readonly skyhook: string
  /** Name of the Lease, for slots. */
  readonly lease?: string
}

/** Everything that looks left over at this moment, and each node without an agent. */
export const suspicionsOf = (fleet: Fleet): readonly Suspicion[] => [
  ...cordonsOf(fleet),
  ...slotsOf(fleet),
  ...nodesWithoutAgent(fleet).map((node): Suspicion => ({ id: 'agent-missing', node, skyhook: '' })),
]

/** Those of the second look that the first had too. */
export function confirmed(first: readonly Suspicion[], second: readonly Suspicion[]): readonly Suspicion[] {
  const keys = new Set(first.map(keyOf))
  return second.filter((one) => keys.has(keyOf(one)))
}

const keyOf = ({ id, node, skyhook, lease }: Suspicion): string => [id, node, skyhook, lease].join('\n')

function cordonsOf({ nodes, skyhooks, slots }: Fleet): readonly Suspicion[] {
  if (!nodes.known) return []
  const exists = skyhooks.known ? new Set(skyhooks.value.map(({ metadata }) => metadata.name)) : undefined
  const held = slots.known
    ? new Set(slots.value.map(({ holder, lease }) => `${holder}/${lease.metadata.labels?.[labelKeys.name] ?? ''}`))
    : undefined
  return nodes.value.flatMap(({ metadata: { name: node, annotations = {} } }): readonly Suspicion[] => {
    const marks = skyhooksWith(cordonKey, annotations)
    if (marks.length === 0)
      return Object.hasOwn(annotations, cordonedBeforeKey) || Object.hasOwn(annotations, keepOffBeforeKey)
        ? [{ id: 'cordon-note-left-over', node, skyhook: '' }]
        : []
    return marks
      .filter((skyhook) => exists?.has(skyhook) === false || held?.has(`${node}/${skyhook}`) === false)
      .map((skyhook) => ({ id: 'cordon-left-over', node, skyhook }))
  })
}

function slotsOf(fleet: Fleet): readonly Suspicion[] {
  if (!fleet.slots.known) return []
  return fleet.slots.value.flatMap((slot) => {
    const id = slotSuspicion(slot, fleet)
    const skyhook = slot.lease.metadata.labels?.[labelKeys.name] ?? ''
    return id === undefined ? [] : [{ id, node: slot.holder, skyhook, lease: slot.name }]
  })
}

function slotSuspicion(slot: Slot, { nodes, skyhooks, takenAtMs }: Fleet): Suspicion['id'] | undefined {
  const node = nodes.known ? nodes.value.find(({ metadata }) => metadata.name === slot.holder) : undefined
  if (nodes.known && node === undefined) return 'slot-without-node'
  if (node !== undefined && slot.nodeUid !== '' && slot.nodeUid !== node.metadata.uid) return 'slot-of-former-node'
  const skyhook = slot.lease.metadata.labels?.[labelKeys.name] ?? ''
  const isKnown = skyhook === '' || !skyhooks.known || skyhooks.value.some(({ metadata }) => metadata.name === skyhook)
  if (!isKnown) return 'slot-without-skyhook'
  return isNotRenewed(slot, takenAtMs) ? 'slot-not-renewed' : undefined
}

/** `node`: only of this one. */
export function checkCordons(fleet: Fleet, suspicions: readonly Suspicion[], node?: string): Check {
  const unknown = [fleet.nodes, fleet.slots, fleet.skyhooks].flatMap((part) => (part.known ? [] : [part.why]))
  const mine = suspicions.filter((one) => one.id.startsWith('cordon-') && (node === undefined || one.node === node))
  const left = mine.filter(({ id }) => id === 'cordon-left-over')
  const notes = mine.filter(({ id }) => id === 'cordon-note-left-over').map((one) => one.node)
  const findings: Finding[] = [...Map.groupBy(left, ({ skyhook }) => skyhook)].map(([skyhook, group]) =>
    cordonFinding(
      skyhook,
      group.map((one) => one.node),
      fleet,
    ),
  )
  if (notes.length > 0)
    findings.push(
      finding('cordon-note-left-over', {
        message:
          `${counted(notes.length, 'node')} with cordoned-before or keep-off-before, and no cordon of ours: ` +
          namedSome(notes),
        remedy: 'the next cordon of an agent overwrites them; remove them if no Skyhook works on the node any more',
        command: `kubectl annotate node ${notes[0] ?? ''} ${cordonedBeforeKey}- ${keepOffBeforeKey}-`,
        objects: notes.map((name) => ({ kind: 'Node', name })),
      }),
    )
  return checkOf('cordons', { findings, unknown, about: node === undefined ? 'all nodes' : `node ${node}` })
}

function cordonFinding(skyhook: string, nodes: readonly string[], { skyhooks }: Fleet): Finding {
  const [first = ''] = nodes
  const exists = !skyhooks.known || skyhooks.value.some(({ metadata }) => metadata.name === skyhook)
  const why = exists ? 'but hold no slot of it' : 'which does not exist'
  return finding('cordon-left-over', {
    message: `${counted(nodes.length, 'node')} cordoned for Skyhook ${skyhook}, ${why}: ${namedSome(nodes)}`,
    remedy:
      "a node's agent removes the cordon as soon as it is Ready. If no agent will come back, check the host, then " +
      'remove the mark and uncordon the node',
    command: `kubectl annotate node ${first} ${cordonKey(skyhook)}- && kubectl uncordon ${first}`,
    objects: nodes.map((name) => ({ kind: 'Node', name })),
  })
}

const slotTexts = {
  'slot-without-node': {
    what: 'of Nodes that do not exist',
    remedy:
      'garbage collection removes them within minutes. If it does not, delete them: the host has left the cluster',
  },
  'slot-of-former-node': {
    what: 'of an earlier registration of their Node',
    remedy: "the node's agent replaces it; delete the Lease if the host was replaced too",
  },
  'slot-without-skyhook': {
    what: 'of Skyhooks that do not exist',
    remedy: "the node's agent releases it when it has undone the work: check whether it is Ready",
  },
  'slot-not-renewed': {
    what: "that their holders do not renew, by this machine's clock, and that count towards the budget",
    remedy:
      'the agent must come back: its host may be half changed, and no other node may take the slot. Delete the ' +
      'Lease only if the host is gone for good',
  },
} as const satisfies Partial<Record<FindingId, object>>

/** `node`: only of this one. */
export function checkSlots(fleet: Fleet, suspicions: readonly Suspicion[], node?: string): Check {
  const { namespace, slots } = fleet
  const unknown = [fleet.nodes, slots].flatMap((part) => (part.known ? [] : [part.why]))
  const findings = (Object.keys(slotTexts) as (keyof typeof slotTexts)[]).flatMap((id) => {
    const found = suspicions.filter((one) => one.id === id && (node === undefined || one.node === node))
    const [first] = found
    if (first === undefined) return []
    const { what, remedy } = slotTexts[id]
    const texts = found.map((one) => `${one.lease ?? ''} of ${one.node || 'nobody'}`)
    return [
      finding(id, {
        message: `${counted(found.length, 'slot')} ${what}: ${namedSome(texts)}`,
        remedy,
        command: `kubectl -n ${namespace} get lease ${first.lease ?? ''} -o yaml`,
        objects: found.flatMap((one) => [
          { kind: 'Lease', namespace, name: one.lease ?? '' },
          { kind: 'Node', name: one.node },
        ]),
      }),
    ]
  })
  findings.push(...forgedSlots(fleet, node))
  const count = slots.known ? slots.value.filter(({ holder }) => node === undefined || holder === node).length : 0
  return checkOf('slots', { findings, unknown, about: counted(count, 'slot') })
}

function forgedSlots({ namespace, strays }: Fleet, node: string | undefined): readonly Finding[] {
  const found = (strays.known ? strays.value : []).filter(
    ({ spec, metadata }) =>
      node === undefined || [spec?.holderIdentity, metadata.labels?.[labelKeys.node]].includes(node),
  )
  if (found.length === 0) return []
  const names = found.map(({ metadata }) => metadata.name)
  return [
    finding('slot-forged', {
      message: `${counted(found.length, 'Lease')} with labels of a slot under another name: ${namedSome(names)}`,
      remedy:
        'somebody who may write Leases there has written them, and the API server may refuse slots beside them: ' +
        'find out who, then delete them',
      command: `kubectl -n ${namespace} delete leases ${names.join(' ')}`,
      objects: names.map((name) => ({ kind: 'Lease', namespace, name })),
    }),
  ]
}

/**
 * The nodes without an agent at this moment, except for nodes that are joining and nodes that must not have one. During
 * a rolling update a node has no agent for a while: it counts when two looks find it so.
 */
function nodesWithoutAgent(fleet: Fleet): readonly string[] {
  const { agents, nodes, skyhooks, takenAtMs } = fleet
  if (!agents.known || !nodes.known) return []
  return nodes.value.flatMap((node) => {
    const found = agentFinding(fleet, node)
    const isNew = takenAtMs - Date.parse(node.metadata.creationTimestamp ?? '') < silentAfterMs
    if (found?.cause !== 'no-agent' || isNew || isLeaving(fleet, node)) return []
    const isExcluded = found.objects.some(({ kind }) => kind === 'DaemonSet')
    const isSelected =
      skyhooks.known && skyhooks.value.some(({ spec }) => selects(spec.nodeSelectors, node.metadata.labels ?? {}))
    return !isExcluded || isSelected ? [node.metadata.name] : []
  })
}

/** Its agent is still in its grace period. */
const isLeaving = ({ agents, takenAtMs }: Fleet, { metadata }: KubernetesNode): boolean =>
  valueOr(agents, []).some(
    ({ node, deletedByMs }) =>
      node === metadata.name && deletedByMs !== undefined && takenAtMs - deletedByMs < slowStartMs / 2,
  )
