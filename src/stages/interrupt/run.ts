import type { InterruptRun, PackageRecord } from '../../schemas/journal.ts'
import { openStepsOf } from '../../schemas/journal.ts'
import { appliedHash } from '../model/applied-hash.ts'
import { retryWaitMs } from '../model/backoff.ts'
import { sha256Hex } from '../../schemas/canonical-json.ts'
import type { Draft } from '../model/plan-builder.ts'
import { setEntry, wakeAt } from '../model/plan-builder.ts'
import { isInterrupting, mayRun } from '../package/cancel.ts'
import { mergeInterrupts } from './merge.ts'
import type { PackageState } from '../model/package-state.ts'
import type { Reason } from '../model/reasons.ts'

/** Of the same merged interrupt: a package that needs more reboots than this to be content will not be content. */
const mostReboots = 3
/** Failed attempts of a sibling that an interrupt waits for; after them it goes without. */
const siblingAttempts = 3
/** A host that did not go down within this was not going to. */
const rebootTakesMs = 300_000

export type InterruptStand =
  /** Nothing to interrupt now. */
  | { readonly state: 'none' }
  | { readonly state: 'running'; readonly run: InterruptRun; readonly reason?: Reason }
  /** Held back: by siblings at work, or for good by too many reboots. */
  | { readonly state: 'waiting'; readonly reason?: Reason }

type Owing = Extract<PackageState, { state: 'interrupt' }>

/** Folds the outcome of an interrupt under way into its owners; undefined when none is under way (any more). */
export const foldInterrupt = (draft: Draft, mayAsk: boolean): InterruptStand | undefined =>
  draft.record.interrupt && follow(draft, draft.record.interrupt, mayAsk)

/** Decides on a new interrupt, when all that can be done without one is done and nothing runs on the host. */
export function advanceInterrupt(draft: Draft, states: readonly PackageState[], mayInterrupt: boolean): InterruptStand {
  const owing = states.filter((state): state is Owing => state.state === 'interrupt')
  if (owing.length === 0) return { state: 'none' }
  if (states.some((state) => isStillAtWork(draft, state))) return { state: 'waiting' }
  const due = owing.filter(({ key }) => (draft.record.packages[key]?.retryAtMs ?? 0) <= draft.world.nowMs)
  if (due.length === 0 || !mayInterrupt || isHostBusy(draft)) return { state: 'waiting' }
  return open(draft, due.map(({ key }) => key).sort())
}

/** A step of any Skyhook that may run would be torn down, an interrupt of another would be mixed with ours. */
function isHostBusy({ record, world, view }: Draft): boolean {
  const others = Object.entries(world.journal.skyhooks).filter(([name]) => name !== view.metadata.name)
  const records = [record, ...others.map(([, other]) => other)]
  return records.some((each) => openStepsOf(each).some((step) => mayRun(world, step)) || isInterrupting(world, each.interrupt))
}

/** A sibling in its first attempts is waited for; one that keeps failing is not. */
function isStillAtWork(draft: Draft, state: PackageState): boolean {
  if (state.state === 'running' || state.state === 'ready' || state.state === 'preparing' || state.state === 'drain') return true
  if (state.state !== 'blocked' || state.atPreparation) return false
  return Object.values(draft.record.packages).some(
    ({ state, stage, restarts }) => state === 'erroring' && stage !== 'interrupt' && restarts < siblingAttempts,
  )
}

function open(draft: Draft, owners: readonly string[]): InterruptStand {
  const { world, view, record } = draft
  const owed = mergeInterrupts(owners.flatMap((key) => record.packages[key]?.owes ?? []))
  if (!owed) return { state: 'none' }
  const { when: _, ...merged } = owed
  const names = owners.map((key) => record.packages[key]?.name ?? key).join(',')
  const count = `${appliedHash(view.spec)}/${names}`
  const reboots = record.reboots[count] ?? 0
  if (merged.type === 'reboot' && (record.inheritedReboots?.[count] ?? 0) > 0) return skipReboot(draft, owners, count)
  if (merged.type === 'reboot' && reboots >= mostReboots) {
    return {
      state: 'waiting',
      reason: {
        reason: 'RebootLoop',
        message: `${names} asked for a reboot after ${mostReboots} reboots of this spec; no further one is made`,
      },
    }
  }
  const id = sha256Hex([view.metadata.uid, ...owners, world.nowMs].join('\n')).slice(0, 16)
  if (world.interrupts.has(id)) {
    wakeAt(draft, world.nowMs + 1) // put off in this very millisecond, which is being recorded under that id
    return { state: 'waiting' }
  }
  const run: InterruptRun = { id, interrupt: merged, owners, bootId: world.bootId, startedAtMs: world.nowMs }
  for (const key of owners) {
    const entry = record.packages[key]
    if (!entry) continue
    const { retryAtMs: __, failure: ___, ...kept } = entry
    setEntry(draft, { ...kept, stage: 'interrupt', state: 'in_progress' })
  }
  draft.record = {
    ...draft.record,
    interrupt: run,
    ...(merged.type === 'reboot' && { reboots: { ...record.reboots, [count]: reboots + 1 } }),
  }
  return start(draft, run)
}

/** The host was rebooted for this spec before its disk was lost: it booted since, and is not rebooted again. */
function skipReboot(draft: Draft, owners: readonly string[], count: string): InterruptStand {
  const { [count]: _, ...inheritedReboots } = draft.record.inheritedReboots ?? {}
  draft.record = { ...draft.record, inheritedReboots }
  for (const key of owners) {
    const entry = draft.record.packages[key]
    if (!entry) continue
    const { owes: __, interruptRequired: ___, ...kept } = entry
    setEntry(draft, { ...kept, stage: 'interrupt', state: 'complete' })
  }
  draft.events.push({ type: 'rebootNotRepeated', skyhook: draft.view.metadata.name })
  return { state: 'none' }
}

function start(draft: Draft, run: InterruptRun): InterruptStand {
  draft.actions.push({ do: 'interrupt', key: `interrupt/${draft.view.metadata.name}`, run, view: draft.view })
  return { state: 'running', run, ...pendingReason(run) }
}

const pendingReason = ({ interrupt }: InterruptRun): { reason?: Reason } =>
  interrupt.type === 'reboot' ? { reason: { reason: 'RebootPending', message: 'the host is about to reboot' } } : {}

/** Undefined when the run is over and folded. */
function follow(draft: Draft, run: InterruptRun, mayAsk: boolean): InterruptStand | undefined {
  const { world } = draft
  const isReboot = run.interrupt.type === 'reboot'
  if (isReboot && world.bootId !== run.bootId) return done(draft, run, false) // the boot id in its nodeInfo says that the kubelet is new
  const seen = world.interrupts.get(run.id)
  switch (seen?.state) {
    case undefined:
      return mayAsk || run.abandoned ? start(draft, run) : { state: 'running', run, ...pendingReason(run) }
    case 'running':
      return { state: 'running', run, ...pendingReason(run) }
    case 'unknown':
      if (isReboot && world.nowMs - run.startedAtMs > rebootTakesMs)
        return failed(draft, run, run.owners, `the host did not reboot: ${seen.message}`)
      draft.wakeAtMs = Math.min(draft.wakeAtMs, run.startedAtMs + rebootTakesMs + 1)
      return { state: 'running', run, ...pendingReason(run) }
    case 'aborted':
      close(draft, run)
      for (const key of run.owners) restore(draft, key)
      return undefined
    case 'done':
      return done(draft, run, seen.restartedRuntime === true)
    case 'refused':
      return failed(draft, run, run.owners, seen.message)
    case 'failed': {
      const hit = run.owners.filter((key) => {
        const owed = draft.record.packages[key]?.owes
        return owed?.type !== 'service' || (owed.services ?? []).some((service) => seen.services.includes(service))
      })
      return failed(draft, run, hit.length === 0 ? run.owners : hit, seen.message)
    }
  }
}

/** Back to where the interrupt was owed. */
function restore(draft: Draft, key: string): void {
  const entry = draft.record.packages[key]
  if (entry?.stage === 'interrupt') setEntry(draft, { ...entry, stage: 'config', state: 'complete' })
}

function close(draft: Draft, run: InterruptRun): void {
  const { interrupt: _, ...rest } = draft.record
  draft.record = rest
  draft.actions.push({
    do: 'recordInterrupt',
    key: `interrupted/${run.id}`,
    skyhook: draft.view.metadata.name,
    run,
    records: ownersOf(draft, run),
  })
}

const ownersOf = (draft: Draft, run: InterruptRun): PackageRecord[] => run.owners.flatMap((key) => draft.record.packages[key] ?? [])

function complete(draft: Draft, run: InterruptRun, owners: readonly string[], restartedRuntime: boolean): void {
  for (const key of owners) {
    const entry = draft.record.packages[key]
    if (entry?.stage !== 'interrupt') continue // restarted by a person meanwhile
    const { owes: _, retryAtMs: __, failure: ___, interruptRequired: ____, ...kept } = entry
    setEntry(draft, { ...kept, stage: 'interrupt', state: 'complete', restarts: 0, interrupted: run.interrupt })
  }
  const { lifecycle } = draft.record
  if (lifecycle && run.interrupt.type !== 'noop' && owners.length > 0) {
    draft.record = {
      ...draft.record,
      lifecycle: { ...lifecycle, interruptedAtMs: draft.world.nowMs, ...(restartedRuntime && { restartedRuntime }) },
    }
  }
}

function done(draft: Draft, run: InterruptRun, restartedRuntime: boolean): undefined {
  complete(draft, run, run.owners, restartedRuntime)
  draft.events.push({ type: 'interrupted', skyhook: draft.view.metadata.name, interrupt: describe(run) })
  close(draft, run)
}

function failed(draft: Draft, run: InterruptRun, owners: readonly string[], message: string): undefined {
  const { world, view } = draft
  complete(
    draft,
    run,
    run.owners.filter((key) => !owners.includes(key)),
    false,
  )
  for (const key of owners) {
    const entry = draft.record.packages[key]
    if (entry?.stage !== 'interrupt') continue
    const failures = entry.restarts + 1
    const retryAtMs = world.nowMs + retryWaitMs(failures, `${world.node.metadata.uid}/${key}/${failures}`)
    const reason = run.interrupt.type === 'reboot' ? 'RebootRefused' : 'StepFailed'
    setEntry(draft, { ...entry, stage: 'interrupt', state: 'erroring', restarts: failures, retryAtMs, failure: { reason, message } })
    draft.events.push({
      type: 'stageFailed',
      skyhook: view.metadata.name,
      package: entry.name,
      stage: 'interrupt',
      reason,
      message,
      failures,
    })
  }
  close(draft, run)
}

export function describe({ interrupt }: InterruptRun): string {
  if (interrupt.type !== 'service') return interrupt.type
  return `service ${(interrupt.services ?? []).join(', ')}${interrupt.alsoRestartAllServices ? ' and restartAllServices' : ''}`
}
