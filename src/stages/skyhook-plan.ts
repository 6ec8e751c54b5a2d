import type { SkyhookRecord } from '../schemas/journal.ts'
import type { NodeStatus } from '../schemas/skyhook.ts'
import { appliedHash } from './applied.ts'
import { cordonState, disruptionOf, isReadyFromThisBoot } from './disruption.ts'
import type { Disruption } from './disruption.ts'
import type { Draft } from './draft.ts'
import { newDraft, wakeAt } from './draft.ts'
import { beginGate, holdGate } from './eligibility.ts'
import { advanceInterrupt } from './interrupt-run.ts'
import type { InterruptStand } from './interrupt-run.ts'
import { advancePackage } from './package-work.ts'
import type { PackageState } from './package-work.ts'
import type { Reason } from './reasons.ts'
import { statusFor } from './reasons.ts'
import { isMidChange } from './transitions.ts'
import type { OwnSlot, SkyhookView, SlotPhase, World } from './world.ts'

/** What one selected Skyhook does on this node now. */
export type SkyhookPlan = {
  readonly draft: Draft
  readonly status: NodeStatus
  readonly reason?: Reason
  /** Nothing is left to do for this spec; later Skyhooks may begin. */
  readonly complete: boolean
  /** What this Skyhook wants of the cordon: its mark on the Node, off it, or as it is. */
  readonly cordon: 'on' | 'off' | 'as-is'
  readonly watchPods: boolean
}

/** Attempts of one stage after which the slot says `failed` (it is kept all the same while the host is half changed). */
const failuresUntilFailed = 3
const renewEveryMs = 60_000
const phasesEveryMs = 1_000

export function planSkyhook(world: World, view: SkyhookView, before: SkyhookRecord | undefined, earlier: string | undefined): SkyhookPlan {
  const draft = newDraft(world, view, sameSkyhook(before, view))
  if (view.stale) return holdStill(draft)
  const slot = ownSlot(world, view)
  const begun = draft.record.lifecycle !== undefined
  const gate = begun ? holdGate(view, world) : beginGate(view, world, earlier)
  const mayStart = gate === undefined && slot?.confirmed === true
  const disruption = disruptionOf(world, view.metadata.name, view.spec)
  const permission = { mayStart, drained: disruption.drained }

  const names = [
    ...new Set([...Object.keys(view.spec.packages ?? {}), ...Object.values(draft.record.packages).map(({ name }) => name)]),
  ].sort()
  const quiet = gate !== undefined && !begun // nothing is fetched for work that may not begin
  const states = quiet ? [] : names.map((name) => advancePackage(draft, name, permission))
  if (quiet ? !hasWork(world, draft, names) : states.every(({ state }) => state === 'complete')) return complete(draft, slot)

  openLifecycle(draft, states, mayStart)
  if (!draft.record.lifecycle) return waiting(draft, slot, gate, states)
  return working(draft, { slot, gate, states, disruption })
}

/** A Skyhook re-created under its name: what is complete stays complete, unfinished work starts over. */
function sameSkyhook(record: SkyhookRecord | undefined, view: SkyhookView): SkyhookRecord | undefined {
  if (!record) return undefined
  const { orphaned, ...rest } = record
  if (record.uid === view.metadata.uid) return orphaned ? rest : record
  const { lifecycle: _, interrupt: __, ...kept } = rest
  const packages = Object.fromEntries(
    Object.entries(record.packages).filter(([, entry]) => !isMidChange(entry) && entry.work !== undefined),
  )
  return { ...kept, uid: view.metadata.uid, packages }
}

const ownSlot = (world: World, view: SkyhookView): OwnSlot | undefined =>
  world.slots.known ? world.slots.value.find(({ skyhookUid }) => skyhookUid === view.metadata.uid) : undefined

/** The spec at hand is old: nothing new is decided until the new one is read; what is published stays. */
function holdStill(draft: Draft): SkyhookPlan {
  const status = draft.record.published?.status ?? 'waiting'
  return { draft, status, complete: false, cordon: 'as-is', watchPods: false }
}

/** Asks the stage machine on a copy whether anything is due, without starting or fetching. */
function hasWork(world: World, draft: Draft, names: readonly string[]): boolean {
  const trial = newDraft(world, draft.view, draft.record)
  return names.some((name) => advancePackage(trial, name, { mayStart: false, drained: false }).state !== 'complete')
}

function complete(draft: Draft, slot: OwnSlot | undefined): SkyhookPlan {
  const notReady = whyNotReady(draft)
  if (notReady) {
    keepSlot(draft, slot, 'working')
    return { draft, status: 'in_progress', reason: notReady, complete: false, cordon: 'as-is', watchPods: false }
  }
  const { lifecycle, ...rest } = draft.record
  const applied = appliedHash(draft.view.spec)
  if (lifecycle) draft.events.push({ type: 'completed', skyhook: draft.view.metadata.name })
  if (lifecycle || rest.applied !== applied) draft.record = { ...rest, applied }
  if (slot && isPublishedComplete(draft)) release(draft, slot)
  return { draft, status: 'complete', complete: true, cordon: 'off', watchPods: false }
}

/** A kubelet or a container runtime that was restarted says Ready before it is; this long it has to go on saying so. */
const readyHoldsMs = 10_000

/** After an interrupt the node goes back to service only when it reports Ready from this boot. */
function whyNotReady(draft: Draft): Reason | undefined {
  const { lifecycle } = draft.record
  if (lifecycle?.interruptedAtMs === undefined) return undefined
  if (!isReadyFromThisBoot(draft.world)) return { reason: 'NodeNotReady', message: 'the node has not reported Ready since its interrupt' }
  const heldAtMs = lifecycle.interruptedAtMs + readyHoldsMs
  if (!lifecycle.restartedRuntime || draft.world.nowMs >= heldAtMs) return undefined
  wakeAt(draft, heldAtMs)
  return { reason: 'NodeNotReady', message: 'the kubelet or the container runtime was restarted: Ready has to hold for 10 s' }
}

/** The slot goes only after the Node shows completion: whoever takes it next must not find us half done. */
function isPublishedComplete({ record, world, view }: Draft): boolean {
  const { published } = record
  if (published?.status !== 'complete') return false
  const companion = world.node.metadata.annotations?.[`skyhook.nvidia.com/journal_${view.metadata.name}`] ?? ''
  return (
    companion.includes(`"rev":${published.rev},`) &&
    world.node.metadata.annotations?.[`skyhook.nvidia.com/status_${view.metadata.name}`] === 'complete'
  )
}

/** Work begins with the first stage, or with taking the node out of service for it. */
function openLifecycle(draft: Draft, states: readonly PackageState[], mayStart: boolean): void {
  const begins = Object.values(draft.record.packages).some(({ attempt }) => attempt !== undefined) || (mayStart && wantsDrain(states))
  if (draft.record.lifecycle || !begins) return
  const generation = draft.view.metadata.generation ?? 0
  draft.record = { ...draft.record, lifecycle: { startedAtMs: draft.world.nowMs, generation } }
  draft.events.push({ type: 'began', skyhook: draft.view.metadata.name, generation })
}

/** Nothing has started on the host: the slot is asked for once some package is prepared, and given back when it is of no use. */
function waiting(draft: Draft, slot: OwnSlot | undefined, gate: Reason | undefined, states: readonly PackageState[]): SkyhookPlan {
  const { world, view } = draft
  const blocked = states.find((state) => state.state === 'blocked')
  const ready = states.some(({ state }) => state === 'ready')
  const preparing = states.some(({ state }) => state === 'preparing')
  const asked = world.waiting.get(view.metadata.name)

  if (!gate && ready) askForSlot(draft, slot, 'working')
  else if (slot && !preparing) release(draft, slot)

  const reason: Reason =
    gate ??
    (ready
      ? { reason: 'WaitingForSlot', message: asked?.message ?? (world.slots.known ? 'asking for a slot' : world.slots.why) }
      : blocked
        ? { reason: blocked.reason, message: blocked.message }
        : { reason: 'Preparing', message: 'fetching the package images' })
  return { draft, status: statusFor(reason.reason, false), reason, complete: false, cordon: 'off', watchPods: false }
}

function askForSlot(draft: Draft, slot: OwnSlot | undefined, phase: SlotPhase): void {
  const { world, view } = draft
  const { name } = view.metadata
  if (slot) {
    if (!slot.confirmed) draft.actions.push({ do: 'confirmSlot', key: `slot/${name}`, slot, view })
    return
  }
  if (!world.slots.known) return
  const asked = world.waiting.get(name)
  if (asked && asked.askAgainAtMs > world.nowMs) wakeAt(draft, asked.askAgainAtMs)
  else draft.actions.push({ do: 'acquireSlot', key: `slot/${name}`, view, phase })
}

function release(draft: Draft, slot: OwnSlot): void {
  draft.actions.push({ do: 'releaseSlot', key: `slot/${draft.view.metadata.name}`, slot })
}

const wantsDrain = (states: readonly PackageState[]): boolean =>
  states.some(({ state }) => state === 'drain') && !states.some(({ state }) => state === 'preparing')

type Working = {
  readonly slot: OwnSlot | undefined
  readonly gate: Reason | undefined
  readonly states: readonly PackageState[]
  readonly disruption: Disruption
}

/** Work has begun on the host: it goes on to its end under its slot, whatever priorities, taints or selectors say now. */
function working(draft: Draft, { slot, gate, states, disruption }: Working): SkyhookPlan {
  const draining =
    disruption.marked ||
    (gate === undefined && slot?.confirmed === true && (wantsDrain(states) || states.some(({ state }) => state === 'interrupt')))
  if (gate === undefined && draining) askToLeave(draft, disruption)
  const stand = advanceInterrupt(draft, states, gate === undefined && slot?.confirmed === true && disruption.drained)

  const allBlocked = states.filter((state) => state.state === 'blocked')
  const blocked = allBlocked.find(({ atPreparation }) => !atPreparation) ?? allBlocked[0] // what failed on the host is the worse news
  const midChange = Object.values(draft.record.packages).some(isMidChange)
  const moving = stand.state === 'running' || states.some(({ state }) => state === 'running' || state === 'drain')
  if (!midChange && !moving && blocked && slot) return standBack(draft, slot, blocked)

  keepSlot(draft, slot, phaseOf(draft, stand, draining && !disruption.drained ? disruption.phase : undefined))
  const waitsForDrain = draining && states.some(({ state }) => state === 'drain' || state === 'interrupt') ? disruption.reason : undefined
  const reason =
    gate ??
    (stand.state === 'none' ? undefined : stand.reason) ??
    waitsForDrain ??
    (blocked && { reason: blocked.reason, message: blocked.message }) ??
    preparingReason(states)
  const status = reason && !moving ? statusFor(reason.reason, slot !== undefined) : gate ? statusFor(gate.reason, true) : 'in_progress'
  return {
    draft,
    status,
    ...(reason && { reason }),
    complete: false,
    cordon: draining ? 'on' : 'as-is',
    watchPods: draining && disruption.watchPods,
  }
}

/** Nothing on the host is half changed and nothing can start: others may have the slot meanwhile, and the node goes back to service. */
function standBack(draft: Draft, slot: OwnSlot, why: Reason): SkyhookPlan {
  const { lifecycle: _, ...rest } = draft.record
  draft.record = rest
  if (!cordonState(draft.world.node).marks.has(draft.view.metadata.name)) release(draft, slot) // uncordon always precedes release
  return {
    draft,
    status: statusFor(why.reason, false),
    reason: { reason: why.reason, message: why.message },
    complete: false,
    cordon: 'off',
    watchPods: false,
  }
}

function askToLeave(draft: Draft, { evict, againAtMs }: Disruption): void {
  for (const pod of evict) draft.actions.push({ do: 'evict', key: `evict/${pod.metadata.uid}`, pod })
  wakeAt(draft, againAtMs)
}

function phaseOf(draft: Draft, stand: InterruptStand, drainPhase: SlotPhase | undefined): SlotPhase {
  if (stand.state === 'running') return stand.run.interrupt.type === 'reboot' ? 'rebooting' : 'interrupting'
  if (Object.values(draft.record.packages).some(({ restarts }) => restarts >= failuresUntilFailed)) return 'failed'
  return drainPhase ?? 'working'
}

const preparingReason = (states: readonly PackageState[]): Reason | undefined =>
  states.some(({ state }) => state === 'preparing') ? { reason: 'Preparing', message: 'fetching the package images' } : undefined

/** The slot of begun work: taken again without asking if a person deleted it, and kept fresh with its phase. */
function keepSlot(draft: Draft, slot: OwnSlot | undefined, phase: SlotPhase): void {
  const { world, view } = draft
  const name = view.metadata.name
  if (!slot) {
    if (world.slots.known) draft.actions.push({ do: 'adoptSlot', key: `slot/${name}`, view, phase })
    return
  }
  if (!slot.confirmed) {
    draft.actions.push({ do: 'confirmSlot', key: `slot/${name}`, slot, view })
    return
  }
  // a phase that passes within a second is not worth a request; those of an interrupt are written by the interrupt itself
  const quick = phase !== 'failed' && world.nowMs - slot.renewedAtMs < phasesEveryMs
  const due =
    slot.phase === phase || phase === 'interrupting' || phase === 'rebooting'
      ? slot.renewedAtMs + renewEveryMs
      : slot.renewedAtMs + (quick ? phasesEveryMs : 0)
  if (due <= world.nowMs) draft.actions.push({ do: 'renewSlot', key: `slot/${name}`, slot, phase })
  else wakeAt(draft, due)
}
