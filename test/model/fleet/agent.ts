/** What the agent of a node does: the plan of the real `decide`, one action at a time, and what is under way. */
import * as slotBook from '../../../src/daemon/slots/slot-book.ts'
import { reasonKey } from '../../../src/schemas/annotations.ts'
import type { NodePatch } from '../../../src/schemas/kubernetes.ts'
import { hasMark } from '../../../src/stages/drain/drain.ts'
import type { Action } from '../../../src/stages/model/plan.ts'
import { bestSlot } from '../../../src/stages/skyhook/slot.ts'
import { changeBook, ownSlotsOf, slotAt } from './book.ts'
import { type Core, hasBegun, isOut, masterLabel, skyhook } from './core.ts'
import { controlPlaneViolation, cordonViolation, goOut, nodeOf, withNode } from './judge.ts'
import { confirm, confirmByList, create, createRecovery, list, release, renewed } from './requests.ts'
import { type Fleet, type FleetNode, noAnswerMissing } from './state.ts'
import { budgetOf, type Step, type World } from './world.ts'

export function* agentSteps(world: World, fleet: Fleet, who: number): Generator<Step> {
  const node = nodeOf(fleet, who)
  yield* observations(world, fleet, who)
  const confirming = node.slots.findIndex((entry) => entry.confirming > 0)
  if (node.creating) yield* create(world, fleet, who, node.creating)
  else if (confirming >= 0) yield* confirmByList(world, fleet, who, confirming)
  if (!world.cores.at(node.core).node) return
  const plan = world.cores.plan(node.core, ownSlotsOf(node), node.isDenied)
  if (plan.next === 'journal') {
    const begins = hasBegun(world.cores.at(plan.core)) && !hasBegun(world.cores.at(node.core))
    return yield {
      action: `n${who} writes its journal`,
      to: withNode(fleet, who, { ...node, core: plan.core }),
      isLocal: !begins, // the agent may see a new spec first
      violation: begins ? beginViolation(node) : undefined,
    }
  }
  const isAsking = node.creating !== undefined || confirming >= 0
  for (const action of plan.actions) yield* actionSteps(world, fleet, who, action, isAsking)
}

/** The watches of the own slots and of the Skyhook: late, and never wrong. */
function* observations(world: World, fleet: Fleet, who: number): Generator<Step> {
  const node = nodeOf(fleet, who)
  if (node.generation < fleet.generation)
    yield { action: `n${who} sees the new spec`, to: withNode(fleet, who, { ...node, generation: fleet.generation }) }
  if (world.rules.followsOwnSlots) {
    const next = followed(node)
    if (next !== node) yield { action: `n${who} sees its slots`, to: withNode(fleet, who, next) }
  }
  const isUnanswered = Object.values(node.unanswered).some((index) => index !== undefined)
  if (isUnanswered && !node.late.some(({ isOfThisAgent }) => isOfThisAgent))
    yield {
      action: `n${who} stops waiting for an answer`,
      to: withNode(fleet, who, { ...node, unanswered: noAnswerMissing }),
    }
}

export function followed(node: FleetNode): FleetNode {
  let next = node
  for (const [place, { isInApi, book }] of node.slots.entries())
    if (isInApi && book === undefined) next = changeBook(next, (held) => slotBook.seen(held, slotAt(node, place), 1))
    else if (!isInApi && (book === 'owned' || book === 'confirmed'))
      next = changeBook(next, (held) => slotBook.deletionSeen(held, String(place)))
  return next
}

function* actionSteps(world: World, fleet: Fleet, who: number, action: Action, isAsking: boolean): Generator<Step> {
  const node = nodeOf(fleet, who)
  const core = world.cores.at(node.core)
  switch (action.do) {
    case 'acquireSlot':
      if (core.host === 'half changed')
        yield { action: 'asks for room', to: fleet, violation: 'a half changed node asks for room' }
      if (!isAsking)
        yield* list(world, fleet, who, action.withControlPlane ? ['skyhook', 'control-plane'] : ['skyhook'])
      return
    case 'acquireControlPlaneSlot':
      if (!isAsking) yield* list(world, fleet, who, ['control-plane'])
      return
    case 'createRecoverySlot':
      if (!isAsking) yield* createRecovery(world, fleet, who, action.scope)
      return
    case 'confirmSlot':
      if (!isAsking) yield* confirm(world, fleet, who, Number(action.slot.uid))
      return
    case 'renewSlot': {
      const result = renewed(node, Number(action.slot.uid))
      const what = result.isOurs ? 'renews its slot' : 'finds its slot gone'
      if (!isAsking) yield { action: `n${who} ${what}`, to: withNode(fleet, who, result.node) }
      return
    }
    case 'releaseSlot':
      if (!isAsking) yield* release(world, fleet, who, Number(action.slot.uid))
      return
    case 'startStep': {
      const { name } = action.record
      const violation = stepViolation(node, core, name)
      const id = world.cores.with(node.core, {
        host: 'half changed',
        applied: [...new Set([...core.applied, name])].sort(),
        attempts: { ...core.attempts, [action.attempt.id]: { state: 'ended', end: { outcome: 'exited', code: 0 } } },
      })
      return yield* moved(world, fleet, who, id, `n${who} applies ${name}`, violation)
    }
    case 'interrupt':
      return yield* interrupt(world, fleet, who, action.run.id)
    case 'publish': {
      const id = world.cores.with(node.core, { node: patched(core, action.patch) })
      return yield* moved(world, fleet, who, id, `n${who} writes its Node`)
    }
    case 'stopStep': {
      if (action.step.id in core.attempts) return
      const end = { outcome: 'failed-to-start', detail: '' } as const
      const id = world.cores.with(node.core, {
        attempts: { ...core.attempts, [action.step.id]: { state: 'ended', end } },
      })
      return yield* moved(world, fleet, who, id, `n${who} gives up a step before its start`)
    }
    case 'recordStep':
    case 'forgetStep':
    case 'recordChecks':
    case 'recordHistory':
    case 'recordInterrupt':
      return // with the journal
    case 'prepare':
    case 'cleanUp':
    case 'readStatus':
    case 'countNodes':
    case 'evict':
      throw new Error(`the model has no ${action.do}`)
  }
}

/** Work of a spec begins under a slot that was confirmed for this very spec. */
function beginViolation({ slots, generation }: FleetNode): string | undefined {
  const isConfirmed = slots.some((entry) => entry.book === 'confirmed' && entry.generation === generation)
  return isConfirmed ? undefined : 'work begins under a slot that was not confirmed for its spec'
}

function stepViolation({ slots }: FleetNode, { applied }: Core, name: string): string | undefined {
  if (applied.includes(name)) return `${name} is applied twice`
  const isOwned = slots.some(({ scope, book }) => scope === 'skyhook' && (book === 'owned' || book === 'confirmed'))
  return isOwned ? undefined : 'a step starts without a slot'
}

/** The slots are written right before; without them nothing is done. */
function* interrupt(world: World, fleet: Fleet, who: number, id: string): Generator<Step> {
  let node = nodeOf(fleet, who)
  const core = world.cores.at(node.core)
  if (id in core.interrupts) return
  const isGuarded = masterLabel in (core.node?.metadata.labels ?? {})
  let isAllowed = true
  for (const scope of isGuarded ? (['skyhook', 'control-plane'] as const) : (['skyhook'] as const)) {
    const slot = bestSlot(ownSlotsOf(node).filter((own) => own.scope === scope))
    const result = slot ? renewed(node, Number(slot.uid)) : { node, isOurs: false }
    node = result.node
    isAllowed &&= result.isOurs
  }
  const done: Partial<Core> = isAllowed
    ? { host: 'done', interrupts: { ...core.interrupts, [id]: { state: 'done' } } }
    : { interrupts: { ...core.interrupts, [id]: { state: 'aborted', why: 'the slot was lost' } } }
  const next = withNode(fleet, who, { ...node, core: world.cores.with(node.core, done) })
  const isLocal = isOut(core) === isOut({ ...core, ...done })
  yield { action: `n${who} ${isAllowed ? 'interrupts' : 'must not interrupt'}`, to: next, isLocal }
}

/** A step of the host or the Node: where the node goes out by it, its admission is judged. */
function* moved(
  world: World,
  fleet: Fleet,
  who: number,
  id: number,
  action: string,
  violation?: string,
): Generator<Step> {
  const node = nodeOf(fleet, who)
  const before = world.cores.at(node.core)
  const after = world.cores.at(id)
  if (before === after) return
  const to = withNode(fleet, who, { ...node, core: id })
  const isCordoned = !isMarked(before) && isMarked(after)
  const cordon =
    cordonViolation(world.cores, nodeOf(to, who)) ??
    (isCordoned ? controlPlaneViolation(world.cores, to, who) : undefined)
  if (isOut(before) || !isOut(after))
    return yield {
      action,
      to,
      violation: violation ?? cordon,
      isLocal: isOut(before) === isOut(after) && isMarked(before) === isMarked(after),
    }
  const judged = goOut(world.cores, to, who, budgetOf(world, fleet.generation))
  yield { action, to: judged.fleet, violation: violation ?? judged.violation ?? cordon }
}

const isMarked = ({ node }: Core): boolean => node !== undefined && hasMark(node, skyhook)

/** Texts for people are left out: no decision reads them. */
function patched({ node }: Core, patch: NodePatch): Core['node'] {
  if (!node) return node
  const changes = Object.entries({ ...node.metadata.annotations, ...patch.annotations })
  const kept = changes.filter(
    (entry): entry is [string, string] => entry[1] !== null && entry[0] !== reasonKey(skyhook),
  )
  const annotations = Object.fromEntries(kept.toSorted(([a], [b]) => (a < b ? -1 : 1)))
  const spec = { ...node.spec, ...(patch.unschedulable !== undefined && { unschedulable: patch.unschedulable }) }
  return { ...node, metadata: { ...node.metadata, annotations }, spec }
}
