import { NoReplyError, NotConnectedError } from '../../host/dbus/errors.ts'
import type { BusConnection } from '../../host/dbus/reconnecting.ts'
import { isRuntimeUnit } from '../../host/kubelet/process.ts'
import { isShuttingDown, reboot } from '../../host/systemd/reboot.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { agentFolder } from '../../host/fs/journal-file.ts'
import {
  confirmRestart,
  readInvocation,
  restartService,
  type RestartFailure,
  type RestartOutcome,
} from '../../host/systemd/service-restart.ts'
import type { Units } from '../../host/systemd/units.ts'
import type { Clock } from '../../schemas/clock.ts'
import type { ReasonName } from '../../schemas/catalogue/reasons.ts'
import type { Journal } from '../../schemas/journal.ts'
import type { InterruptRun } from '../../schemas/package-record.ts'
import { serviceUnit } from '../../schemas/systemd.ts'
import { blockingPod } from '../../stages/drain/drain.ts'
import { drainFacts } from '../../stages/drain/pods.ts'
import type { Action } from '../../stages/model/plan.ts'
import type { InterruptObservation, ShutdownObservation } from '../../stages/model/snapshot.ts'
import { causeOf, isForeseen } from '../failures/reason-of.ts'
import { errorField, type Log } from '../telemetry/log.ts'
import type { NodeCounter } from '../state/fleet-size.ts'
import type { PodSource } from '../state/pods.ts'
import type { Settings } from '../settings/settings.ts'
import type { Evictor } from './evictions.ts'
import { publishInterrupt } from './publish-interrupt.ts'
import type { SlotManager } from '../slots/slot-manager.ts'

/**
 * Runs a merged interrupt from the journal. It records each change of the host before it makes it. After a crash the
 * next agent checks the outcome instead of repeating the change.
 */
export type Interrupter = {
  /**
   * Afterwards `current` has the outcome, including a failure. Rejects without an outcome only while the API server or
   * the host does not answer: the caller repeats it.
   */
  interrupt(action: Extract<Action, { do: 'interrupt' }>): Promise<void>
  record(action: Extract<Action, { do: 'recordInterrupt' }>): Promise<void>
  /** By id of the interrupt. */
  readonly current: () => ReadonlyMap<string, InterruptObservation>
}

/** Stored durably beside the journal, in one file per running interrupt. */
type InterruptProgress = {
  readonly v: 1
  readonly bootId: string
  /** The reboot was requested. */
  readonly asked?: boolean
  /** A daemon-reload was requested, and did not end before the agent's timeout. */
  readonly reloadAsked?: boolean
  /** Invocation of each unit before its restart was requested. */
  readonly before: Readonly<Record<string, string>>
}

const progressFolder = `${agentFolder}/interrupts`

/** The effect of the operator's restartAllServices: it reloads kernel settings and restarts no service. */
const sysctlUnit = 'systemd-sysctl.service'

type InterruptAction = Extract<Action, { do: 'interrupt' }>

const readLog = (unit: string): string => `run journalctl -u ${unit} on the host`

/** The remedy for a unit, if systemd's message does not contain one. */
const remedies: Partial<Record<RestartFailure, (unit: string) => string>> = {
  'no-unit-name': () => "correct the services of the package's interrupt",
  'no-such-unit': () => "correct the services of the package's interrupt, or let one of its steps install the unit",
  masked: () => "unmask it on the host, or remove it from the package's interrupt",
  'job-failed': readLog,
  'not-active': readLog,
  timeout: readLog,
}

/** These failures are transient: the same interrupt continues after them, without restarting a service again. */
const passingReasons: ReadonlySet<ReasonName> = new Set(['ApiServerUnavailable', 'HostUnreachable'])

export type InterruptPorts = {
  readonly root: HostRoot
  readonly units: Units
  readonly connection: BusConnection
  readonly settings: Pick<Settings, 'copyDirRoot' | 'agentLogRoot' | 'drain'>
  readonly journal: () => Journal
  readonly nodeCounter: Pick<NodeCounter, 'count'>
  readonly evictedOwners: Evictor['evictedOwners']
  readonly pods: Pick<PodSource, 'listNow'>
  readonly slots: Pick<SlotManager, 'report'>
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
}

export function createInterrupter(ports: InterruptPorts): Interrupter {
  const { root, units, connection, settings, pods, slots, clock, log, signal } = ports
  const observations = new Map<string, InterruptObservation>()
  const progressFile = (run: InterruptRun): string => `${progressFolder}/${run.id}.json`

  async function readProgress(run: InterruptRun): Promise<InterruptProgress | undefined> {
    if ((await root.stat(progressFile(run))) === undefined) return undefined
    return JSON.parse((await root.readFile(progressFile(run))).toString()) as InterruptProgress
  }

  async function writeProgress(run: InterruptRun, progress: InterruptProgress): Promise<void> {
    await root.mkdirp(progressFolder, 0o700)
    await root.writeFileDurable(progressFile(run), JSON.stringify(progress), 0o600)
  }

  /** The last check before a disruption of the host: it has no pods now, and this node still holds the slot. */
  async function findBlocker({ run, view }: InterruptAction): Promise<string | undefined> {
    if (run.abandoned) return 'the interrupt was canceled'
    // the cluster may have grown since an earlier count
    const nodeCount = view.spec.drain?.singleNode === 'skip' ? await ports.nodeCounter.count() : undefined
    const found = await pods.listNow(signal)
    const known = { settings: settings.drain, journal: ports.journal(), evictedOwners: ports.evictedOwners() }
    const pod = blockingPod(found, view.spec, { ...drainFacts(known, view.metadata.name), nodeCount })
    if (pod) return `pod ${pod.metadata.namespace}/${pod.metadata.name} is on the node`
    const isSlotHeld = await slots.report(
      view.metadata.uid,
      run.interrupt.type === 'reboot' ? 'rebooting' : 'interrupting',
    )
    return isSlotHeld ? undefined : 'the slot was lost'
  }

  /**
   * Applies unit files that packages changed. A reload that exceeds the agent's timeout is not requested again: systemd
   * processes requests in order, so later requests see the new files.
   */
  async function reloadUnits(run: InterruptRun, progress: InterruptProgress): Promise<void> {
    observations.set(run.id, { state: 'running', reloadSinceMs: clock.steadyMs() })
    try {
      await units.reload({ signal })
      observations.set(run.id, { state: 'running' })
    } catch (error) {
      if (error instanceof NoReplyError && error.reason === 'timeout')
        await writeProgress(run, { ...progress, reloadAsked: true })
      throw error
    }
  }

  /**
   * `wasVerified`: this agent has just checked the state. Otherwise (a previous agent started the interrupt, or D-Bus
   * was unavailable) the state is checked before the request.
   */
  async function restartServices(
    action: InterruptAction,
    progress: InterruptProgress,
    wasVerified: boolean,
  ): Promise<InterruptObservation> {
    const { run } = action
    const services = run.interrupt.type === 'service' ? (run.interrupt.services ?? []) : []
    const serviceByUnit = new Map(services.map((service) => [serviceUnit(service), service]))
    const unitNames = [
      ...(run.interrupt.type === 'restartAllServices' || run.interrupt.alsoRestartAllServices ? [sysctlUnit] : []),
      ...serviceByUnit.keys(),
    ]
    const failures: string[] = []
    const failedServices: string[] = []
    let latest = progress
    let isVerified = wasVerified
    if (Object.keys(latest.before).length === 0 && !latest.reloadAsked) await reloadUnits(run, progress)
    for (const unit of unitNames) {
      let before = latest.before[unit]
      let outcome: RestartOutcome = { outcome: 'not-requested', detail: unit }
      if (before !== undefined) {
        outcome = await confirmRestart({ units, clock, unit, previousInvocation: before, signal })
      }
      if (outcome.outcome === 'not-requested' && !isVerified) {
        const why = await findBlocker(action)
        if (why !== undefined) return { state: 'aborted', why }
        isVerified = true
      }
      const known = before === undefined ? await readInvocation({ units, unit, signal }) : undefined
      if (known?.outcome === 'failed') outcome = known
      else if (known) {
        before = known.invocationId
        latest = { ...latest, before: { ...latest.before, [unit]: before } }
        await writeProgress(run, latest)
      }
      if (outcome.outcome === 'not-requested' && before !== undefined) {
        outcome = await restartService({ units, clock, unit, previousInvocation: before, signal })
        if (outcome.outcome === 'unknown')
          outcome = await confirmRestart({ units, clock, unit, previousInvocation: before, signal })
      }
      if (outcome.outcome === 'not-needed')
        log.info({ skyhook: action.view.metadata.name, detail: outcome.detail }, 'service not restarted')
      if (outcome.outcome === 'restarted' || outcome.outcome === 'not-needed') continue
      // D-Bus is unavailable, or the host shuts down: the same interrupt continues later
      if (outcome.outcome === 'not-requested') throw new NotConnectedError(`${unit}: ${outcome.detail}`)
      const remedy = outcome.outcome === 'failed' ? remedies[outcome.reason]?.(unit) : undefined
      failures.push(`${unit}: ${outcome.detail}${remedy === undefined ? '' : `: ${remedy}`}`)
      const service = serviceByUnit.get(unit)
      if (service !== undefined) failedServices.push(service)
    }
    if (failures.length > 0) return { state: 'failed', message: failures.join('; '), services: failedServices }
    return { state: 'done', ...(unitNames.some(isRuntimeUnit) && { restartedRuntime: true }) }
  }

  async function rebootHost(run: InterruptRun, progress: InterruptProgress): Promise<InterruptObservation> {
    if (progress.asked)
      return { state: 'unknown', message: 'the reboot was requested, but the boot id is still the same' }
    await writeProgress(run, { ...progress, asked: true })
    log.info({ bootId: run.bootId }, 'requesting a reboot')
    const result = await reboot(connection)
    switch (result.outcome) {
      case 'accepted':
        return { state: 'unknown', message: 'the host accepted the request' }
      case 'unknown':
        return { state: 'unknown', message: result.detail }
      case 'refused':
        return { state: 'refused', message: result.reason }
    }
  }

  /** The outcome of the interrupt after an error; undefined if the error is transient. */
  function observationOf({ abandoned, interrupt }: InterruptRun, error: unknown): InterruptObservation | undefined {
    const { reason, detail, remedy } = causeOf(error)
    if (passingReasons.has(reason)) return undefined
    const message = [detail, remedy].filter((part) => part !== '').join(': ')
    return abandoned
      ? { state: 'aborted', why: message }
      : { state: 'failed', reason, message, services: interrupt.services ?? [] }
  }

  async function begin(action: InterruptAction): Promise<InterruptObservation> {
    const { run } = action
    const progress = await readProgress(run)
    if (!progress) {
      const why = await findBlocker(action)
      if (why !== undefined) return { state: 'aborted', why }
    }
    observations.set(run.id, { state: 'running' })
    const currentProgress: InterruptProgress = progress ?? { v: 1, bootId: run.bootId, before: {} }
    switch (run.interrupt.type) {
      case 'noop':
        return { state: 'done' }
      case 'reboot':
        return await rebootHost(run, currentProgress)
      case 'service':
      case 'restartAllServices':
        return await restartServices(action, currentProgress, !progress)
    }
  }

  async function observeShutdown(before: ShutdownObservation | undefined): Promise<ShutdownObservation> {
    const progress = await isShuttingDown(connection, { signal }).then(
      (isUnderWay) => (isUnderWay ? 'under-way' : 'none'),
      () => 'no-answer' as const,
    )
    const atMs = clock.steadyMs()
    if (progress !== before?.progress)
      log.info({ detail: progress }, 'reboot requested, asked whether the host shuts down')
    return { progress, sinceMs: progress === before?.progress ? before.sinceMs : atMs, atMs }
  }

  return {
    async interrupt(action) {
      const { run } = action
      const latest = observations.get(run.id)
      if (latest?.state === 'unknown')
        observations.set(run.id, { ...latest, shutdown: await observeShutdown(latest.shutdown) })
      if (latest && latest.state !== 'running') return
      try {
        const outcome = await begin(action)
        if (outcome.state === 'aborted')
          log.info({ skyhook: action.view.metadata.name, detail: outcome.why }, 'interrupt postponed')
        observations.set(run.id, outcome)
      } catch (error) {
        observations.delete(run.id)
        signal.throwIfAborted()
        const outcome = observationOf(run, error)
        if (outcome) observations.set(run.id, outcome)
        if (!outcome || !isForeseen(error)) throw error
        log.warn({ skyhook: action.view.metadata.name, ...errorField(error) }, 'interrupt failed')
      }
    },

    async record({ skyhook, run, records }) {
      const outcome = observations.get(run.id)
      if (outcome?.state !== 'aborted')
        for (const record of records) await publishInterrupt(ports, skyhook, record, run, outcome)
      await root.remove(progressFile(run))
      observations.delete(run.id)
    },

    current: () => observations,
  }
}
