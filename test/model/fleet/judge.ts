/**
 * What the fleet promises, judged by hosts and Nodes. A budget is judged at the confirming read: when a node reads the
 * Skyhook for the last time before it goes out, fewer others are out, or go out under an earlier read, than the limit
 * that it read. Not counted: a node whose slot or Node object a person deleted, until it has a slot again, and in
 * admissions whose LIST was taken before that.
 */
import { hasMark } from '../../../src/stages/drain/drain.ts'
import { type Core, type Cores, hasBegun, isOut, masterLabel, skyhook } from './core.ts'
import { bit, type Fleet, type FleetNode, type ScopeName, type SlotEntry } from './state.ts'

export type Judged = { readonly fleet: Fleet; readonly violation: string | undefined }

export const withNode = (fleet: Fleet, who: number, node: FleetNode): Fleet => ({
  ...fleet,
  nodes: fleet.nodes.with(who, node),
})

export function nodeOf(fleet: Fleet, who: number): FleetNode {
  const node = fleet.nodes[who]
  if (!node) throw new Error(`no node ${who}`)
  return node
}

/** The confirming read of the node: what it found. */
export function readLimit(cores: Cores, fleet: Fleet, who: number, limit: number, unseen: number): Fleet {
  const { before, pending } = othersOf(cores, fleet, who, unseen)
  const safe = nodeOf(fleet, who).isExempt.skyhook || before + bitsOf(pending) < limit
  return withNode(fleet, who, { ...nodeOf(fleet, who), admission: safe ? 'safe' : { limit, before, pending } })
}

/** The node is out from now on. `limit`: in force now, for a node that never read it. */
export function goOut(cores: Cores, fleet: Fleet, who: number, limit: number): Judged {
  const read = nodeOf(fleet, who).admission === undefined ? readLimit(cores, fleet, who, limit, 0) : fleet
  const nodes = read.nodes.map((node): FleetNode => {
    const { admission } = node
    if (typeof admission !== 'object' || !(admission.pending & bit(who))) return node
    return {
      ...node,
      admission: { ...admission, before: admission.before + 1, pending: admission.pending & ~bit(who) },
    }
  })
  const over = nodes.find(
    ({ core, admission }, index) =>
      typeof admission === 'object' && admission.before >= admission.limit && (index === who || isOut(cores.at(core))),
  )
  return {
    fleet: { ...read, nodes },
    violation:
      typeof over?.admission === 'object'
        ? `${over.admission.before + 1} nodes are out, the budget was ${over.admission.limit}`
        : undefined,
  }
}

/** Forgets what no rule needs any more: the state stays small. */
export function settled(cores: Cores, fleet: Fleet): Fleet {
  let ended = 0
  let nodes = fleet.nodes.map(withoutDeadSlots).map((node, who): FleetNode => {
    const core = cores.at(node.core)
    if (isOut(core) || hasBegun(core)) {
      const { admission } = node
      const isSafe = typeof admission === 'object' && isOut(core) && admission.pending === 0
      return { ...withoutQuestions(node, fleet), admission: isSafe ? 'safe' : admission }
    }
    if (core.host === 'done' && node.generation !== fleet.generation) return withoutQuestions(node, fleet)
    const isRead = node.slots.some(({ book, confirming }) => book === 'confirmed' || confirming > 0)
    if (!isRead && node.admission !== undefined) ended |= bit(who)
    const isExempt = (scope: ScopeName): boolean =>
      node.isExempt[scope] &&
      node.slots.some((entry) => entry.scope === scope && entry.book !== undefined && !entry.isFormer)
    const exemptions = { skyhook: isExempt('skyhook'), 'control-plane': isExempt('control-plane') }
    const isSame =
      exemptions.skyhook === node.isExempt.skyhook && exemptions['control-plane'] === node.isExempt['control-plane']
    if (isSame && (isRead || node.admission === undefined)) return node
    return { ...node, admission: isRead ? node.admission : undefined, isExempt: exemptions }
  })
  if (ended !== 0)
    nodes = nodes.map((node) => {
      const { admission } = node
      if (typeof admission !== 'object') return node
      const pending = admission.pending & ~ended
      const safe = admission.before + bitsOf(pending) < admission.limit
      return { ...node, admission: safe ? 'safe' : { ...admission, pending } }
    })
  return { ...fleet, nodes }
}

/** Started work asks nothing about budgets: which ones it knew before this one makes no difference any more. */
const withoutQuestions = (node: FleetNode, { generation }: Fleet): FleetNode => ({
  ...node,
  generation: node.isAgentUp ? generation : 0,
  slots: node.slots.map((entry) => ({
    ...entry,
    generation: entry.generation === generation ? generation : 0,
    unseen: entry.scope === 'skyhook' ? 0 : entry.unseen,
  })),
})

const withoutDeadSlots = (node: FleetNode): FleetNode => {
  const isDead = ({ isInApi, book }: SlotEntry): boolean => !isInApi && (book === undefined || book === 'ended')
  return node.slots.some(isDead) ? { ...node, slots: node.slots.filter((entry) => !isDead(entry)) } : node
}

/** Why the node must not lose this slot by a request of its own: nothing else holds capacity for what is under way. */
export function releaseViolation(cores: Cores, node: FleetNode, entry: SlotEntry): string | undefined {
  const { scope } = entry
  if (entry.isFormer || !entry.isInApi || node.isExempt[scope]) return undefined
  if (node.slots.some((other) => other !== entry && other.isInApi && !other.isFormer && other.scope === scope))
    return undefined
  const core = cores.at(node.core)
  if (core.node && hasMark(core.node, skyhook)) return `released the slot (${scope}) before the uncordon`
  if (scope === 'skyhook' && core.host === 'half changed') return 'released the slot of a half changed host'
  return undefined
}

/** Without a mark of ours, the node is cordoned exactly if its administrator wants it so. */
export function cordonViolation(cores: Cores, { core, shouldBeUnschedulable }: FleetNode): string | undefined {
  const { node } = cores.at(core)
  if (!node || hasMark(node, skyhook) || (node.spec?.unschedulable === true) === shouldBeUnschedulable) return undefined
  return shouldBeUnschedulable ? "lost the administrator's cordon" : 'left a cordon behind'
}

/** Nodes that do not count in a scope, because a person took their slot. */
export const exemptMask = (fleet: Fleet, scope: ScopeName): number =>
  fleet.nodes.reduce((mask, { isExempt }, index) => (isExempt[scope] ? mask | bit(index) : mask), 0)

function othersOf(cores: Cores, fleet: Fleet, who: number, unseen: number): { before: number; pending: number } {
  let before = 0
  let pending = 0
  for (const [index, { core, admission, isExempt }] of fleet.nodes.entries()) {
    if (index === who || isExempt.skyhook || unseen & bit(index)) continue
    if (isOut(cores.at(core))) before++
    else if (admission !== undefined) pending |= bit(index)
  }
  return { before, pending }
}

/**
 * The node is cordoned from now on: of the control plane it is the only one. A node that was out already, and lost its
 * Node object, only continues: it has a recovery slot.
 */
export function controlPlaneViolation(cores: Cores, fleet: Fleet, who: number): string | undefined {
  const { core, isExempt, slots } = nodeOf(fleet, who)
  if (!isControlPlane(cores.at(core)) || isExempt['control-plane']) return undefined
  const guards = slots.filter(({ scope, isFormer }) => scope === 'control-plane' && !isFormer)
  if (guards.some(({ at }) => at === 'recovery')) return undefined
  const unseen = guards.reduce((mask, entry) => mask | entry.unseen, 0)
  const other = fleet.nodes.some((node, index) => {
    const { node: object } = cores.at(node.core)
    const isCounted = index !== who && !node.isExempt['control-plane'] && !(unseen & bit(index))
    return isCounted && object !== undefined && isControlPlane(cores.at(node.core)) && hasMark(object, skyhook)
  })
  return other ? 'two nodes of the control plane are out of service' : undefined
}

const isControlPlane = ({ node }: Core): boolean => node !== undefined && masterLabel in (node.metadata.labels ?? {})

const bitsOf = (mask: number): number => mask.toString(2).replaceAll('0', '').length
