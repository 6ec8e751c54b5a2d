/** What happens to the fleet without its agents: what the API server still does, people, and faults. */
import * as slotBook from '../../../src/daemon/slots/slot-book.ts'
import { cordonState } from '../../../src/stages/drain/drain.ts'
import { changeBook, slotAt, withEntry } from './book.ts'
import { isSelected, masterLabel, newNode, poolLabel } from './core.ts'
import { nodeOf, releaseViolation, withNode } from './judge.ts'
import { isTaken, nameOf } from './requests.ts'
import {
  bit,
  type Creation,
  type Fleet,
  type FleetNode,
  type LateCreation,
  newEntry,
  noAnswerMissing,
  type ScopeName,
} from './state.ts'
import { afterFault, isPossible, type Step, type World } from './world.ts'

export function* environmentSteps(world: World, fleet: Fleet): Generator<Step> {
  if (fleet.generation < world.budgets.length)
    yield {
      action: `the budget becomes ${world.budgets[fleet.generation]}`,
      to: { ...fleet, generation: fleet.generation + 1 },
    }
  for (const who of fleet.nodes.keys()) {
    yield* lateCommits(world, fleet, who)
    yield* recoveries(world, fleet, who)
    for (const step of faults(world, fleet, who)) yield { ...step, to: afterFault(step.to), isFault: true }
  }
}

function* lateCommits(world: World, fleet: Fleet, who: number): Generator<Step> {
  const node = nodeOf(fleet, who)
  for (const late of node.late) {
    const next = { ...node, late: node.late.filter((other) => other !== late) }
    yield { action: `the CREATE of ${nameOf(late)} for n${who} fails`, to: withNode(fleet, who, next) }
    if (isTaken(fleet, late) || node.slots.some((entry) => entry.isInApi && isSecondRecovery(late, entry))) continue
    const isSecond =
      late.isOfThisAgent && node.slots.some((entry) => entry.isInApi && !entry.isFormer && isIndexed(entry, late.scope))
    const entry = newEntry(late, { isFormer: late.isFormer })
    yield {
      action: `n${who} is granted ${nameOf(late)} late`,
      to: withNode(fleet, who, { ...next, slots: [...next.slots, entry] }),
      violation: isSecond && isIndexed(late, late.scope) ? 'the agent created two slots of one scope' : undefined,
    }
  }
  for (const [place, entry] of node.slots.entries()) {
    if (entry.isDeletionLate) {
      const failed = withEntry(node, place, { isDeletionLate: false })
      yield { action: `the DELETE for n${who} fails`, to: withNode(fleet, who, failed) }
      const violation = releaseViolation(world.cores, node, entry)
      const to = withNode(fleet, who, withEntry(node, place, { isDeletionLate: false, isInApi: false }))
      yield { action: `${nameOf(entry)} of n${who} is deleted late`, to, violation }
    }
    if (entry.isFormer && entry.isInApi)
      yield {
        action: `garbage collection takes ${nameOf(entry)} of n${who}`,
        to: withNode(fleet, who, withEntry(node, place, { isInApi: false, isDeletionLate: false })),
      }
  }
}

const isIndexed = (one: Creation, scope: ScopeName): boolean => one.scope === scope && one.at !== 'recovery'

const isSecondRecovery = (late: LateCreation, entry: FleetNode['slots'][number]): boolean =>
  late.at === 'recovery' && entry.at === 'recovery' && entry.scope === late.scope && entry.isFormer === late.isFormer

/** What ends by itself: a killed agent starts, a node registers, and the Skyhook selects it again. */
function* recoveries(world: World, fleet: Fleet, who: number): Generator<Step> {
  const node = nodeOf(fleet, who)
  const core = world.cores.at(node.core)
  if (!node.isAgentUp) {
    // the LIST at its start shows all of the node's slots
    const slots = node.slots.flatMap((entry, place) => (entry.isInApi ? [slotAt(node, place)] : []))
    const listed = changeBook(node, (book) => slotBook.listed(book, slots, 1))
    const to = withNode(fleet, who, { ...listed, isAgentUp: true, generation: fleet.generation })
    yield { action: `the agent of n${who} starts`, to }
  }
  if (core.node && !isSelected(core)) {
    const to = withLabels(world, node, { ...core.node.metadata.labels, ...world.labels })
    yield { action: `the Skyhook selects n${who} again`, to: withNode(fleet, who, to) }
  }
  if (!core.node) {
    const uid = core.journal.nodeUid === 'node-0' ? 1 : 0
    const next = { ...node, core: world.cores.with(node.core, { node: newNode(uid, world.labels) }) }
    yield { action: `n${who} registers again`, to: withNode(fleet, who, next) }
  }
}

function* faults(world: World, fleet: Fleet, who: number): Generator<Step> {
  const node = nodeOf(fleet, who)
  const core = world.cores.at(node.core)
  const can = (fault: Parameters<typeof isPossible>[2]): boolean => isPossible(world, fleet, fault)
  if (can('agent killed') && node.isAgentUp) {
    const dead = killed(node)
    yield { action: `the agent of n${who} is killed`, to: withNode(fleet, who, dead) }
    if (node.creating && can('commit late')) {
      const late: LateCreation = { ...node.creating.slots[0], isFormer: false, isOfThisAgent: false }
      const to = withNode(fleet, who, { ...dead, late: [...dead.late, late] })
      yield { action: `the agent of n${who} is killed during a CREATE`, to }
    }
  }
  if (!core.node) return
  if (can('Node deleted')) {
    const to: FleetNode = {
      ...node,
      core: world.cores.with(node.core, { node: undefined }),
      slots: node.slots.map((entry) => ({ ...entry, isFormer: true })),
      late: node.late.map((late) => ({ ...late, isFormer: true })),
      creating: undefined,
      isExempt: { skyhook: true, 'control-plane': true },
      shouldBeUnschedulable: false,
    }
    yield { action: `Node n${who} is deleted`, to: withNode(withUnseen(fleet, who), who, to) }
  }
  if (can('slot deleted'))
    for (const [place, entry] of node.slots.entries()) {
      if (!entry.isInApi || entry.isFormer) continue
      const next = withEntry(node, place, { isInApi: false, isDeletionLate: false })
      const to = { ...next, isExempt: { ...node.isExempt, [entry.scope]: true } }
      yield { action: `somebody deletes ${nameOf(entry)} of n${who}`, to: withNode(withUnseen(fleet, who), who, to) }
    }
  if (can('control-plane label') && !(masterLabel in (core.node.metadata.labels ?? {}))) {
    const isCordoned = cordonState(core.node).marks.size > 0
    const isExempt = { ...node.isExempt, 'control-plane': isCordoned }
    const to = { ...withLabels(world, node, { ...core.node.metadata.labels, [masterLabel]: '' }), isExempt }
    yield {
      action: `n${who} is labelled control-plane`,
      to: withNode(isCordoned ? withUnseen(fleet, who) : fleet, who, to),
    }
  }
  if (can('selector left') && isSelected(core)) {
    const labels = Object.entries(core.node.metadata.labels ?? {}).filter(([key]) => key !== poolLabel)
    const left = withLabels(world, node, Object.fromEntries(labels))
    const to = { ...left, core: world.cores.with(left.core, core.host === 'half changed' ? { host: 'given up' } : {}) }
    yield { action: `the Skyhook stops to select n${who}`, to: withNode(fleet, who, to) }
  }
  if (can('cordon by the administrator')) yield* administrator(world, fleet, who)
}

function withLabels({ cores }: World, node: FleetNode, labels: Readonly<Record<string, string>>): FleetNode {
  const object = cores.at(node.core).node
  if (!object) return node
  return { ...node, core: cores.with(node.core, { node: { ...object, metadata: { ...object.metadata, labels } } }) }
}

/** A LIST that others have already taken does not show the slot that the node takes instead. */
const withUnseen = (fleet: Fleet, who: number): Fleet => ({
  ...fleet,
  nodes: fleet.nodes.map((node, index) =>
    index === who
      ? node
      : {
          ...node,
          creating: node.creating && { ...node.creating, unseen: node.creating.unseen | bit(who) },
          slots: node.slots.map((entry) =>
            entry.book === 'owned' ? { ...entry, unseen: entry.unseen | bit(who) } : entry,
          ),
        },
  ),
})

/** One change of which the agent has seen the one before: of two unseen ones the API server keeps no trace. */
function* administrator(world: World, fleet: Fleet, who: number): Generator<Step> {
  const node = nodeOf(fleet, who)
  const core = world.cores.at(node.core)
  if (!core.node) return
  const { unschedulable, marks } = cordonState(core.node)
  if (marks.size > 0 && core.journal.lastSeenUnschedulable !== unschedulable) return
  const spec = { ...core.node.spec, unschedulable: !unschedulable }
  const id = world.cores.with(node.core, { node: { ...core.node, spec } })
  const to = withNode(fleet, who, { ...node, core: id, shouldBeUnschedulable: !unschedulable })
  yield { action: `an administrator ${unschedulable ? 'uncordons' : 'cordons'} n${who}`, to }
}

/** The agent's memory is lost; host and API server stay as they are. */
export const killed = (node: FleetNode): FleetNode => ({
  ...node,
  isAgentUp: false,
  generation: 0,
  isDenied: false,
  unanswered: noAnswerMissing,
  creating: undefined,
  late: node.late.map((late) => ({ ...late, isOfThisAgent: false })),
  slots: node.slots.map((entry) => ({ ...entry, book: undefined, generation: 0, confirming: 0 })),
})
