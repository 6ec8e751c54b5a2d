import { canonicalJson, sha256Hex } from '../../schemas/canonical-json.ts'
import type { ReasonName } from '../../schemas/catalogue/reasons.ts'
import type { Reason } from '../../schemas/catalogue/reason.ts'
import { openStepsOf } from '../../schemas/journal.ts'
import { type InterruptRun, isRetrying, type PackageRecord } from '../../schemas/package-record.ts'
import { ownValue } from '../../schemas/json.ts'
import { leftPods, leftText } from '../drain/drain.ts'
import { isInterrupting, mayBeRunning, type PackageState } from '../model/package-state.ts'
import { type PlanBuilder, reasonMessage, requeueAt, setEntry } from '../model/plan-builder.ts'
import { type InterruptObservation, keyOf, type SkyhookView, type Snapshot } from '../model/snapshot.ts'
import {
  completeInterrupt,
  failInterrupt,
  returnToConfig,
  stageRetryDelayMs,
  startInterrupt,
} from '../model/transitions.ts'
import { mergeForRun } from './merge.ts'
import { pendingForSpec } from './pending.ts'
import {
  aboutToReboot,
  awaitShutdown,
  countReboot,
  isAnnounced,
  maxReboots,
  rebootKeyOf,
  rebootPending,
} from './reboots.ts'

/** How many failed attempts of a sibling an interrupt waits for; then it runs without the sibling. */
const maxSiblingAttempts = 3

/** After this an unanswered daemon-reload becomes a reason. */
const slowReloadMs = 30_000

const reloadPending: Reason = {
  reason: 'HostUnreachable',
  message: 'systemd has not answered the daemon-reload before the restart of services yet',
}

/** An edit may pause the Skyhook, or protect a pod of the node. */
const unknownEdits: Reason = {
  reason: 'ApiServerUnavailable',
  message: 'the agent interrupts no node while it cannot watch the Skyhooks, which somebody may have edited',
}

export type InterruptStatus =
  /** Nothing to interrupt now. */
  | { readonly state: 'none' }
  | { readonly state: 'running'; readonly run: InterruptRun; readonly reason?: Reason }
  /** Delayed by work of siblings or of another Skyhook, or stopped for good by too many reboots. */
  | { readonly state: 'waiting'; readonly reason?: Reason }

type PendingState = Extract<PackageState, { state: 'interrupt' }>

/** Records the outcome of a running interrupt in its packages; undefined when none is running (any longer). */
export const applyInterruptOutcome = (builder: PlanBuilder, mayRequest: boolean): InterruptStatus | undefined =>
  builder.record.interrupt && trackInterrupt(builder, builder.record.interrupt, mayRequest)

/** Decides on a new interrupt, when all other work is done and nothing runs on the host. */
export function advanceInterrupt(
  builder: PlanBuilder,
  states: readonly PackageState[],
  mayInterrupt: boolean,
): InterruptStatus {
  const pendingStates = states.filter((state): state is PendingState => state.state === 'interrupt')
  if (pendingStates.length === 0) return { state: 'none' }
  if (states.some((state) => isStillAtWork(builder, state))) return { state: 'waiting' }
  const due = pendingStates.filter(({ key }) => retryAtMs(builder.record.packages[key]) <= builder.snapshot.nowMs)
  const isBusy = openStepsOf(builder.record).some((step) => mayBeRunning(builder.snapshot, step))
  if (due.length === 0 || !mayInterrupt || isBusy) return { state: 'waiting' }
  if (builder.snapshot.areSkyhooksInDoubt === true) return { state: 'waiting', reason: unknownEdits }
  const reason = otherWork(builder)
  if (reason) return { state: 'waiting', reason }
  return beginInterrupt(builder, due.map(({ key }) => key).sort())
}

const retryAtMs = (entry: PackageRecord | undefined): number =>
  entry?.progress.state === 'retrying' ? entry.progress.retryAtMs : 0

/** The interrupt waits for a sibling in its first attempts, not for one that keeps failing. */
function isStillAtWork(builder: PlanBuilder, state: PackageState): boolean {
  if (state.state === 'running' || state.state === 'ready' || state.state === 'preparing' || state.state === 'drain')
    return true
  if (state.state !== 'blocked' || state.atPreparation) return false
  return Object.values(builder.record.packages).some(
    (entry) => isRetrying(entry) && entry.restarts < maxSiblingAttempts,
  )
}

function beginInterrupt(builder: PlanBuilder, owners: readonly string[]): InterruptStatus {
  const { snapshot, view, record } = builder
  const entries = owners.flatMap((key) => record.packages[key] ?? [])
  const merged = mergeForRun(entries.flatMap(({ pendingInterrupt }) => pendingInterrupt?.interrupt ?? []))
  if (!merged) return { state: 'none' }
  const names = entries.map(({ name }) => name).join(',')
  const isReboot = merged.type === 'reboot'
  const rebootKey = rebootKeyOf(builder, entries)
  if (isReboot && (record.priorReboots?.[rebootKey] ?? 0) > 0) return skipReboot(builder, entries, rebootKey)
  if (isReboot && (record.reboots[rebootKey] ?? 0) >= maxReboots) {
    return {
      state: 'waiting',
      reason: {
        reason: 'RebootLoop',
        message: `${names} reached the limit of ${maxReboots} reboots for this spec`,
      },
    }
  }
  const id = sha256Hex([view.metadata.uid, ...owners, snapshot.nowMs].join('\n')).slice(0, 16)
  if (snapshot.interrupts.has(id)) {
    requeueAt(builder, snapshot.nowMs + 1) // abandoned in this same millisecond, and recorded under the same id
    return { state: 'waiting' }
  }
  const { bootId, nowMs: startedAtMs } = snapshot
  const inputs = inputsOfOwners(builder, owners)
  const run: InterruptRun = {
    id,
    interrupt: merged,
    owners,
    inputs,
    bootId,
    startedAtMs,
    ...(isReboot && { rebootKey }),
  }
  for (const entry of entries) setEntry(builder, startInterrupt(entry))
  builder.record = { ...builder.record, interrupt: run }
  return requestInterrupt(builder, run)
}

/** The spec of the packages: an interrupt decided for another spec no longer starts. */
function inputsOfOwners({ view, record }: PlanBuilder, owners: readonly string[]): string {
  const names = owners.flatMap((key) => record.packages[key]?.name ?? [])
  const specs = names.map((name) => ownValue(view.spec.packages, name) ?? null)
  return sha256Hex(canonicalJson(specs)).slice(0, 16)
}

/** The run to continue: an edit of its packages abandons it unless it has a result. */
function currentRun(builder: PlanBuilder, run: InterruptRun): InterruptRun {
  if (run.abandoned || run.inputs === undefined || run.inputs === inputsOfOwners(builder, run.owners)) return run
  const abandoned: InterruptRun = { ...run, abandoned: true }
  builder.record = { ...builder.record, interrupt: abandoned }
  return abandoned
}

/** The host was rebooted for this spec before it lost its disk: it does not reboot again. */
function skipReboot(builder: PlanBuilder, entries: readonly PackageRecord[], rebootKey: string): InterruptStatus {
  const others = Object.entries(builder.record.priorReboots ?? {}).filter(([key]) => key !== rebootKey)
  builder.record = { ...builder.record, priorReboots: Object.fromEntries(others) }
  for (const entry of entries) setEntry(builder, completeInterrupt(entry, undefined))
  builder.events.push({ type: 'rebootNotRepeated', skyhook: builder.view.metadata.name })
  return { state: 'none' }
}

function requestInterrupt(builder: PlanBuilder, run: InterruptRun): InterruptStatus {
  if (!run.abandoned && !isAnnounced(builder, run))
    return running(builder, run, 'the Node must show the reboot before the agent requests it')
  carryOut(builder, run)
  if (run.interrupt.type !== 'reboot') requeueAt(builder, builder.snapshot.nowMs + slowReloadMs)
  return running(builder, run)
}

/** systemd answers no calls while it reads its unit files. That takes a second, and on some hosts minutes. */
function slowReload(
  builder: PlanBuilder,
  { reloadSinceMs }: Extract<InterruptObservation, { state: 'running' }>,
): { readonly reason?: Reason } {
  if (reloadSinceMs === undefined) return {}
  const slowAtMs = reloadSinceMs + slowReloadMs
  if (builder.snapshot.nowMs >= slowAtMs) return { reason: reloadPending }
  requeueAt(builder, slowAtMs)
  return {}
}

const carryOut = ({ actions, view }: PlanBuilder, run: InterruptRun): void =>
  void actions.push({ do: 'interrupt', key: `interrupt/${view.metadata.name}`, run, view })

/** The reason of a reboot names the pods that end with it. */
function running({ snapshot, view }: PlanBuilder, run: InterruptRun, why = aboutToReboot): InterruptStatus {
  if (run.interrupt.type !== 'reboot') return { state: 'running', run }
  const left = leftPods(snapshot, view)
  return { state: 'running', run, reason: rebootPending(left.length === 0 ? why : `${why}; ${leftText(left)}`) }
}

/** Undefined when the run is over and recorded. */
function trackInterrupt(builder: PlanBuilder, run: InterruptRun, mayRequest: boolean): InterruptStatus | undefined {
  const { snapshot } = builder
  // the boot id in its nodeInfo shows that the kubelet has restarted
  if (run.interrupt.type === 'reboot' && snapshot.bootId !== run.bootId) {
    builder.record = countReboot(builder.record, run)
    return recordCompletedRun(builder, run, false)
  }
  const observed = snapshot.interrupts.get(run.id)
  switch (observed?.state) {
    case undefined: {
      const current = currentRun(builder, run)
      const isHeld = !mayRequest || snapshot.areSkyhooksInDoubt === true
      return isHeld && !current.abandoned ? running(builder, current) : requestInterrupt(builder, current)
    }
    case 'running':
      return { ...running(builder, run), ...slowReload(builder, observed) }
    case 'unknown': {
      const shutdown = awaitShutdown(builder, observed)
      if (shutdown.wait === 'over') return recordFailedRun(builder, run, run.owners, shutdown)
      if (shutdown.looks) carryOut(builder, run)
      return { state: 'running', run, ...(run.interrupt.type === 'reboot' && { reason: shutdown.reason }) }
    }
    case 'aborted':
      closeInterrupt(builder, run)
      for (const entry of interruptedEntries(builder, run.owners)) {
        const pendingInterrupt = run.abandoned ? pendingNow(builder, entry) : entry.pendingInterrupt
        setEntry(builder, returnToConfig(entry, { ...entry, pendingInterrupt }))
      }
      return undefined
    case 'done':
      return recordCompletedRun(builder, run, observed.restartedRuntime === true)
    case 'refused':
      return recordFailedRun(builder, run, run.owners, observed)
    case 'failed': {
      const affected = run.owners.filter((key) => {
        const pending = builder.record.packages[key]?.pendingInterrupt?.interrupt
        return (
          pending?.type !== 'service' || (pending.services ?? []).some((service) => observed.services.includes(service))
        )
      })
      return recordFailedRun(builder, run, affected.length === 0 ? run.owners : affected, observed)
    }
  }
}

/** By the current spec, where it still has this version. */
function pendingNow({ view }: PlanBuilder, entry: PackageRecord): PackageRecord['pendingInterrupt'] {
  const spec = ownValue(view.spec.packages, entry.name)
  return spec?.version === entry.version ? pendingForSpec(entry, spec) : entry.pendingInterrupt
}

/** Without packages that a person restarted at another stage meanwhile, or that stay as they are. */
const interruptedEntries = (builder: PlanBuilder, keys: readonly string[]): PackageRecord[] =>
  keys
    .flatMap((key) => builder.record.packages[key] ?? [])
    .filter(({ progress }) => progress.stage === 'interrupt' && progress.state !== 'retained')

function closeInterrupt(builder: PlanBuilder, run: InterruptRun): void {
  builder.record = { ...builder.record, interrupt: undefined }
  builder.actions.push({
    do: 'recordInterrupt',
    key: `interrupted/${run.id}`,
    skyhook: builder.view.metadata.name,
    run,
    records: ownerRecords(builder, run),
  })
}

const ownerRecords = (builder: PlanBuilder, run: InterruptRun): PackageRecord[] =>
  run.owners.flatMap((key) => builder.record.packages[key] ?? [])

function completeOwners(
  builder: PlanBuilder,
  run: InterruptRun,
  owners: readonly string[],
  restartedRuntime: boolean,
): void {
  for (const entry of interruptedEntries(builder, owners)) setEntry(builder, completeInterrupt(entry, run.interrupt))
  const { lifecycle } = builder.record
  if (lifecycle && run.interrupt.type !== 'noop' && owners.length > 0) {
    builder.record = {
      ...builder.record,
      lifecycle: {
        ...lifecycle,
        interruptedAtMs: builder.snapshot.nowMs,
        ...(restartedRuntime && { restartedRuntime }),
      },
    }
  }
}

function recordCompletedRun(builder: PlanBuilder, run: InterruptRun, restartedRuntime: boolean): undefined {
  completeOwners(builder, run, run.owners, restartedRuntime)
  builder.events.push({ type: 'interrupted', skyhook: builder.view.metadata.name, interrupt: describeInterrupt(run) })
  closeInterrupt(builder, run)
}

function recordFailedRun(
  builder: PlanBuilder,
  run: InterruptRun,
  owners: readonly string[],
  { message: text, reason: why }: { readonly message: string; readonly reason?: ReasonName },
): undefined {
  const { snapshot, view } = builder
  completeOwners(
    builder,
    run,
    run.owners.filter((key) => !owners.includes(key)),
    false,
  )
  const isReboot = run.interrupt.type === 'reboot'
  const reason = why ?? (isReboot ? 'RebootRefused' : 'StepFailed')
  const message = reasonMessage(text)
  const failure = { reason, message, ...(isReboot && { refusedInBoot: run.bootId }) } as const
  for (const entry of interruptedEntries(builder, owners)) {
    const failures = entry.restarts + 1
    const seed = `${snapshot.node.metadata.uid}/${keyOf(entry)}/${failures}`
    const { nowMs } = snapshot
    setEntry(builder, failInterrupt(entry, { failure, nowMs, retryAtMs: nowMs + stageRetryDelayMs(failures, seed) }))
    builder.events.push({
      type: 'stageFailed',
      skyhook: view.metadata.name,
      package: entry.name,
      stage: 'interrupt',
      reason,
      message,
      failures,
    })
  }
  closeInterrupt(builder, run)
}

export function describeInterrupt({ interrupt }: InterruptRun): string {
  if (interrupt.type !== 'service') return interrupt.type
  const more = interrupt.alsoRestartAllServices ? ' and restartAllServices' : ''
  return `service ${(interrupt.services ?? []).join(', ')}${more}`
}

type Asking = { readonly snapshot: Snapshot; readonly view: Pick<SkyhookView, 'metadata'> }

const othersOf = ({ snapshot, view }: Asking) =>
  Object.entries(snapshot.journal.skyhooks).filter(([name]) => name !== view.metadata.name)

/** Why no step starts: another Skyhook restarts services or reboots on this node. */
export function otherInterrupt(asking: Asking): Reason | undefined {
  const other = othersOf(asking).find(([, { interrupt }]) => isInterrupting(asking.snapshot, interrupt))
  return other && waitsFor(`the interrupt of Skyhook ${other[0]} ends`)
}

/** Why no interrupt starts: it would kill a step of another Skyhook, or mix with the other Skyhook's interrupt. */
export function otherWork(asking: Asking): Reason | undefined {
  const other = othersOf(asking).find(([, record]) =>
    openStepsOf(record).some((step) => mayBeRunning(asking.snapshot, step)),
  )
  return otherInterrupt(asking) ?? (other && waitsFor(`the step of Skyhook ${other[0]} ends`))
}

const waitsFor = (end: string): Reason => ({
  reason: 'WaitingForOtherSkyhook',
  message: `work continues on this node when ${end}`,
})
