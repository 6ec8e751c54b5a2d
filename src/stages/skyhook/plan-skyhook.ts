import type { PackageRecord, SkyhookRecord } from '../../schemas/journal.ts'
import type { NodeStatus } from '../../schemas/skyhook.ts'
import { appliedHash } from '../model/applied-hash.ts'
import { owesRequiredOnly } from '../interrupt/pending.ts'
import { cordonState, disruptionOf, protectedNow } from '../drain/drain.ts'
import type { Disruption, DrainReason, PodWatch } from '../drain/drain.ts'
import { drainPause, isOverdue, losesPatience, noteDrain, pauseDrain } from '../drain/drain-timeout.ts'
import type { Draft } from '../model/plan-builder.ts'
import { newDraft, setEntry, wakeAt } from '../model/plan-builder.ts'
import { beginGate, holdGate } from './gates.ts'
import { haltAll, isInterrupting, stopSteps } from '../package/cancel.ts'
import { inherit } from './bootstrap.ts'
import { advanceInterrupt, foldInterrupt } from '../interrupt/run.ts'
import type { InterruptStand } from '../interrupt/run.ts'
import { advancePackage } from '../package/advance-package.ts'
import type { PackageState, Permission } from '../model/package-state.ts'
import type { Reason } from '../model/reasons.ts'
import { statusFor } from '../model/reasons.ts'
import { whyNotReady } from '../interrupt/node-ready.ts'
import { askForSlot, keepSlot, ownSlot, releaseSlot } from './slot.ts'
import { isMidChange } from '../package/next-stage.ts'
import type { SlotPhase } from '../../schemas/skyhook.ts'
import type { OwnSlot, SkyhookView, World } from '../model/snapshot.ts'

/** What one selected Skyhook does on this node now. */
export type SkyhookPlan = {
  readonly draft: Draft
  readonly status: NodeStatus
  readonly reason?: Reason
  /** Nothing is left to do for this spec; later Skyhooks may begin. */
  readonly complete: boolean
  /** What this Skyhook wants of the cordon: its mark on the Node, off it, or as it is. */
  readonly cordon: 'on' | 'off' | 'as-is'
  readonly watchPods: PodWatch
}

/** Attempts of one stage after which the slot says `failed` (it is kept all the same while the host is half changed). */
const failuresUntilFailed = 3

export function planSkyhook(world: World, view: SkyhookView, before: SkyhookRecord | undefined, earlier: string | undefined): SkyhookPlan {
  const inherited = before === undefined && !view.stale ? inherit(world, view) : undefined
  const draft = newDraft(world, view, inherited?.record ?? sameSkyhook(before, view))
  if (inherited?.event) draft.events.push(inherited.event)
  if (view.stale) return holdStill(draft)
  const slot = ownSlot(world, view)
  const begun = draft.record.lifecycle !== undefined
  const gate = begun ? holdGate(view, world) : beginGate(view, world, earlier)
  const isFree = gate === undefined && slot?.confirmed === true
  const isStopped = stopSteps(draft)
  const under = foldInterrupt(draft, isFree)
  if (!begun && !(isStopped && under === undefined)) return ending(draft, slot)
  const mayStart = isFree && under === undefined && !anotherInterrupts(world, view)
  const disruption = disruptionOf(world, view.metadata.name, view.spec)
  const permission = { mayStart, drained: disruption.drained }
  notePolicies(draft)

  const names = [
    ...new Set([...Object.keys(view.spec.packages ?? {}), ...Object.values(draft.record.packages).map(({ name }) => name)]),
  ].sort()
  const quiet = gate !== undefined && !begun // nothing is fetched for work that may not begin
  const states = quiet ? [] : inTurn(draft, names, advanceAll(draft, names, permission))
  const isDone = quiet ? !hasWork(world, draft, names) : states.every(({ state }) => state === 'complete')
  if (isDone && under === undefined && draft.record.stopping === undefined) return complete(draft, slot)

  openLifecycle(draft, states, mayStart)
  if (!draft.record.lifecycle) return waiting(draft, slot, gate, states)
  return working(draft, { slot, gate, states, disruption, under })
}

/** Packages that wait for others are looked at again: those may have become complete in this very decision. */
function advanceAll(draft: Draft, names: readonly string[], permission: Permission): readonly PackageState[] {
  const states = names.map((name) => advancePackage(draft, name, permission))
  for (let moved = true; moved; ) {
    moved = false
    for (const [index, name] of names.entries()) {
      if (states[index]?.state !== 'dependency') continue
      const state = advancePackage(draft, name, permission)
      if (state.state !== 'dependency') moved = true
      states[index] = state
    }
  }
  return states
}

/** Of a serial Skyhook the node is not drained for one package while another is at work. */
function inTurn({ view, record }: Draft, names: readonly string[], states: readonly PackageState[]): readonly PackageState[] {
  if (view.spec.serial !== true) return states
  const atWork = Object.values(record.packages).filter(({ state, attempt }) => state === 'in_progress' && attempt !== undefined)
  const mustWait = (name: string | undefined): boolean => atWork.some((entry) => entry.name !== name)
  return states.map((state, index) => (state.state === 'drain' && mustWait(names[index]) ? { state: 'dependency' } : state))
}

/** What a person's reset or another Skyhook of this name left behind has to end before anything is decided anew. */
function ending(draft: Draft, slot: OwnSlot | undefined): SkyhookPlan {
  if (slot) keepSlot(draft, slot, 'working')
  const reason: Reason = { reason: 'Preparing', message: 'waiting for what was begun before to end' }
  return { draft, status: statusFor(reason.reason, slot !== undefined), reason, complete: false, cordon: 'as-is', watchPods: 'no' }
}

/** Steps do not start under the interrupt of another Skyhook on this node. */
const anotherInterrupts = (world: World, view: SkyhookView): boolean =>
  Object.entries(world.journal.skyhooks).some(([name, { interrupt }]) => name !== view.metadata.name && isInterrupting(world, interrupt))

/** What the spec says last about uninstalling has to be known when the package is no longer in it. */
function notePolicies(draft: Draft): void {
  for (const entry of Object.values(draft.record.packages)) {
    const spec = draft.view.spec.packages?.[entry.name]
    if (spec === undefined || entry.kept || JSON.stringify(entry.uninstall) === JSON.stringify(spec.uninstall)) continue
    const { uninstall: _, ...rest } = entry
    setEntry(draft, { ...rest, ...(spec.uninstall && { uninstall: spec.uninstall }) })
  }
}

/** A Skyhook re-created under its name: what is complete stays complete, unfinished work starts over, or is uninstalled. */
function sameSkyhook(record: SkyhookRecord | undefined, view: SkyhookView): SkyhookRecord | undefined {
  if (!record) return undefined
  const { orphaned, ...rest } = record
  if (record.uid === view.metadata.uid && !orphaned) return record
  const { lifecycle: _, ...kept } = haltAll(rest)
  const packages = Object.entries(kept.packages).flatMap(([key, entry]) => {
    if (entry.work === undefined) return []
    return [[key, isMidChange(entry) ? toBeginAnew(entry) : entry]]
  })
  return { ...kept, uid: view.metadata.uid, packages: Object.fromEntries(packages) }
}

/** In the incumbent's words: uninstalled as far as the next step is concerned, without having been. */
function toBeginAnew(entry: PackageRecord): PackageRecord {
  const { owes: _, retryAtMs: __, failure: ___, changedKeys: ____, interruptRequired: _____, ...kept } = entry
  return { ...kept, stage: 'uninstall', state: 'skipped', restarts: 0 }
}

/** The spec at hand is old: nothing new is decided until the new one is read; what is published stays. */
function holdStill(draft: Draft): SkyhookPlan {
  const status = draft.record.published?.status ?? 'waiting'
  return { draft, status, complete: false, cordon: 'as-is', watchPods: 'no' }
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
    return { draft, status: 'in_progress', reason: notReady, complete: false, cordon: 'as-is', watchPods: 'no' }
  }
  const { lifecycle, inheritedReboots, ...rest } = draft.record
  const applied = appliedHash(draft.view.spec)
  if (lifecycle) draft.events.push({ type: 'completed', skyhook: draft.view.metadata.name })
  // what this life of the host has completed without is not held against its later interrupts
  if (lifecycle || inheritedReboots || rest.applied !== applied)
    draft.record = { ...rest, applied, reboots: rebootsKept(rest.reboots, applied) }
  if (slot && isPublishedComplete(draft)) releaseSlot(draft, slot)
  return { draft, status: 'complete', complete: true, cordon: 'off', watchPods: 'no' }
}

/** Whatever it took, it has led to completion: only that there was a reboot stays on record, for hosts that forget. */
const rebootsKept = (reboots: SkyhookRecord['reboots'], applied: string): SkyhookRecord['reboots'] =>
  Object.fromEntries(Object.keys(reboots).flatMap((key) => (key.startsWith(`${applied}/`) ? [[key, 1]] : [])))

/** The slot goes only after the Node shows completion: whoever takes it next must not find us half done. */
function isPublishedComplete({ record, world, view }: Draft): boolean {
  const { published } = record
  if (published?.status !== 'complete' || cordonState(world.node).marks.has(view.metadata.name)) return false
  const companion = world.node.metadata.annotations?.[`skyhook.nvidia.com/journal_${view.metadata.name}`] ?? ''
  return (
    companion.includes(`"rev":${published.rev},`) &&
    world.node.metadata.annotations?.[`skyhook.nvidia.com/status_${view.metadata.name}`] === 'complete'
  )
}

/** Work begins with the first stage, or with taking the node out of service for it. */
function openLifecycle(draft: Draft, states: readonly PackageState[], mayStart: boolean): void {
  const mayDrain = mayStart && wantsDrain(states) && drainHold(draft) === undefined
  const begins = Object.values(draft.record.packages).some(({ attempt }) => attempt !== undefined) || mayDrain
  if (draft.record.lifecycle || !begins) return
  const generation = draft.view.metadata.generation ?? 0
  draft.record = { ...draft.record, lifecycle: { startedAtMs: draft.world.nowMs, generation } }
  draft.events.push({ type: 'began', skyhook: draft.view.metadata.name, generation })
}

/** Nothing has started on the host: the slot is asked for once some package is prepared, and given back when it is of no use. */
function waiting(draft: Draft, slot: OwnSlot | undefined, gate: Reason | undefined, states: readonly PackageState[]): SkyhookPlan {
  const { world, view } = draft
  const ready = states.filter((state) => state.state === 'ready' || state.state === 'drain' || state.state === 'interrupt')
  const isPreparing = states.some(({ state }) => state === 'preparing')
  const needsDrain = ready.length > 0 && ready.every((state) => state.state !== 'ready' || state.owes)
  const hold = needsDrain ? drainHold(draft) : undefined
  const held = gate ?? (hold === 'unknown' ? undefined : hold)
  if (held === undefined && ready.length > 0 && hold !== 'unknown') askForSlot(draft, slot, 'working')
  else if (slot && !isPreparing) releaseSlot(draft, slot)
  if (draft.record.drain?.untilMs !== undefined) wakeAt(draft, Math.max(draft.record.drain.untilMs, world.nowMs + 1))

  const reason = held ?? whyWaiting(draft, states)
  const watchPods = needsDrain && view.spec.drain?.cordon === 'late' && gate === undefined ? 'any' : 'no'
  return { draft, status: statusFor(reason.reason, false), reason, complete: false, cordon: 'off', watchPods }
}

const preparing: Reason = { reason: 'Preparing', message: 'fetching the package images' }

function whyWaiting({ world, view }: Draft, states: readonly PackageState[]): Reason {
  const asked = world.waiting.get(view.metadata.name)
  if (states.some(({ state }) => state === 'ready' || state === 'interrupt')) {
    return { reason: 'WaitingForSlot', message: asked?.message ?? (world.slots.known ? 'asking for a slot' : world.slots.why) }
  }
  return reasonOf(states.find((state) => state.state === 'blocked')) ?? preparing
}

/** What keeps the node from being taken out of service: an earlier drain that lasted too long, or protected pods under `cordon: late`. */
function drainHold(draft: Draft): DrainReason | 'unknown' | undefined {
  const late = protectedNow(draft.world, draft.view.spec)
  return drainPause(draft) ?? (late === 'none' ? undefined : late)
}

const reasonOf = (state: Reason | undefined): Reason | undefined => state && { reason: state.reason, message: state.message }

const wantsDrain = (states: readonly PackageState[]): boolean =>
  states.some(({ state }) => state === 'drain' || state === 'interrupt') && !states.some(({ state }) => state === 'preparing')

type Working = {
  readonly slot: OwnSlot | undefined
  readonly gate: Reason | undefined
  readonly states: readonly PackageState[]
  readonly disruption: Disruption
  /** The interrupt under way. */
  readonly under: InterruptStand | undefined
}

/** Work has begun on the host: it goes on to its end under its slot, whatever priorities, taints or selectors say now. */
function working(draft: Draft, { slot, gate, states, disruption, under }: Working): SkyhookPlan {
  const isFree = gate === undefined && slot?.confirmed === true
  const wants = wantsDrain(states) || states.some(({ state }) => state === 'interrupt') // an interrupt owed waits for nobody's image
  const hold = wants ? drainHold(draft) : undefined
  const draining = disruption.marked || (isFree && wants && hold === undefined)
  const waitsForDrain = wants && !disruption.drained
  noteDrain(draft, waitsForDrain && draining)
  const stand = under ?? advanceInterrupt(draft, states, isFree && disruption.drained)

  const allBlocked = states.filter((state) => state.state === 'blocked')
  const blocked = allBlocked.find(({ atPreparation }) => !atPreparation) ?? allBlocked[0] // what failed on the host is the worse news
  const isRunning = stand.state === 'running' || states.some(({ state }) => state === 'running')
  const why =
    slot && !isRunning && !isHalfChanged(draft)
      ? whyStandBack(draft, { wants, draining, hold: hold === 'unknown' ? undefined : hold, blocked, reason: disruption.reason })
      : undefined
  if (slot && why) return standBack(draft, slot, why)
  if (isFree && draining) askToLeave(draft, disruption)

  keepSlot(draft, slot, phaseOf(draft, stand, draining && !disruption.drained ? disruption.phase : undefined))
  const held = isGoingDown(draft, stand) ? undefined : gate
  const reason =
    held ??
    (stand.state === 'none' ? undefined : stand.reason) ??
    (waitsForDrain ? (disruption.reason ?? (hold === 'unknown' ? undefined : hold)) : undefined) ??
    reasonOf(blocked) ??
    preparingReason(states)
  const isMoving = isRunning || states.some(({ state }) => state === 'drain')
  const status = held ? statusFor(held.reason, true) : reason && !isMoving ? statusFor(reason.reason, slot !== undefined) : 'in_progress'
  const watchPods: PodWatch = draining ? disruption.watchPods : hold !== undefined ? 'any' : 'no'
  return { draft, status, ...(reason && { reason }), complete: false, cordon: draining ? 'on' : 'as-is', watchPods }
}

/** The bus ends before the agent does when the host goes down for a reboot of ours: that is no trouble of the host's. */
const isGoingDown = ({ world }: Draft, stand: InterruptStand): boolean =>
  world.host.state === 'unusable' && stand.state === 'running' && stand.run.interrupt.type === 'reboot'

const isHalfChanged = ({ record }: Draft): boolean =>
  record.stopping !== undefined || Object.values(record.packages).some((entry) => isMidChange(entry) && !owesRequiredOnly(entry))

const preparingReason = (states: readonly PackageState[]): Reason | undefined =>
  states.some(({ state }) => state === 'preparing') ? preparing : undefined

type Standing = {
  readonly wants: boolean
  readonly draining: boolean
  readonly hold: Reason | undefined
  readonly blocked: Reason | undefined
  readonly reason: DrainReason | undefined
}

/** Why a node on which nothing is half changed gives its slot back: nothing can start, or its drain has lasted too long. */
function whyStandBack(draft: Draft, { wants, draining, hold, blocked, reason }: Standing): Reason | undefined {
  if (!wants) return reasonOf(blocked)
  if (!draining) return hold
  if (!reason || !losesPatience(draft)) return undefined
  pauseDrain(draft, reason)
  return reason
}

function standBack(draft: Draft, slot: OwnSlot, why: Reason): SkyhookPlan {
  const { lifecycle: _, ...rest } = draft.record
  draft.record = rest
  if (!cordonState(draft.world.node).marks.has(draft.view.metadata.name)) releaseSlot(draft, slot) // uncordon always precedes release
  return { draft, status: statusFor(why.reason, false), reason: why, complete: false, cordon: 'off', watchPods: 'no' }
}

function askToLeave(draft: Draft, { evict, againAtMs }: Disruption): void {
  const { drain } = draft.view.spec
  wakeAt(draft, againAtMs)
  if (drain?.singleNode === 'skip' && draft.world.singleNode === undefined) {
    draft.actions.push({ do: 'countNodes', key: 'countNodes' })
    return
  }
  const isForced = drain?.onTimeout === 'delete' && isOverdue(draft)
  for (const pod of evict) draft.actions.push({ do: 'evict', key: `evict/${pod.metadata.uid}`, pod, ...(isForced && { delete: true }) })
}

function phaseOf(draft: Draft, stand: InterruptStand, drainPhase: SlotPhase | undefined): SlotPhase {
  if (stand.state === 'running') return stand.run.interrupt.type === 'reboot' ? 'rebooting' : 'interrupting'
  if (Object.values(draft.record.packages).some(({ restarts }) => restarts >= failuresUntilFailed)) return 'failed'
  return drainPhase ?? 'working'
}
