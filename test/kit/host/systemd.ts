/** systemd of a simulated host: transient units and services on virtual time, with what the agent asks of it. */
import type { Clock, Random } from '../../../src/schemas/clock.ts'
import { BusError } from '../../../src/host/dbus/errors.ts'
import type { Disk } from './disk.ts'
import type { HostEvent, HostStep } from './observer.ts'
import { createStepProcesses, type StepScript } from './step-processes.ts'
import { readSkyhookOf, readStepDescription, type UnitRequest } from './unit-request.ts'
import { type Unit, endedUnit, exitedWith, newUnit } from './unit.ts'

/** How a service takes a restart. */
export type ServiceRestart = {
  readonly durationMs: number
  /** `dies`: its job is done, and it ends right after and is started again. */
  readonly result: 'done' | 'failed' | 'dies' | 'condition'
}
export type Service = { readonly restart: (count: number) => ServiceRestart }

const systemdError = (name: string, text: string): BusError => new BusError(`org.freedesktop.systemd1.${name}`, text)

export type SimulatedSystemd = ReturnType<typeof createSystemd>

export function createSystemd(host: {
  readonly clock: Clock
  readonly random: Random
  readonly disk: Disk
  readonly bootId: () => string
  readonly isStopping: () => boolean
  readonly runStep: StepScript
  readonly tell: (event: HostEvent) => void
  readonly jobRemoved: (job: string, unit: string, result: string) => void
}) {
  const { clock, random, tell } = host
  const units = new Map<string, Unit>()
  const services = new Map<string, Service>()
  const restarts = new Map<string, number>()
  let lastJob = 0
  let refusesSteps = false
  let version = '252'

  const newJob = (): number => ++lastJob
  const jobPath = (job: number): string => `/org/freedesktop/systemd1/job/${job}`

  function endJob(unit: Unit, result: string): void {
    if (unit.job === 0) return
    const job = jobPath(unit.job)
    unit.job = 0
    host.jobRemoved(job, unit.name, result)
  }

  function expectRunning(): void {
    if (host.isStopping()) throw systemdError('TransactionIsDestructive', 'the host is going down')
  }

  function existing(name: string): Unit {
    const unit = units.get(name)
    if (unit === undefined) throw systemdError('NoSuchUnit', `Unit ${name} not loaded.`)
    return unit
  }

  /** A unit that nobody refers to and that has ended is forgotten, a failed one only once it was reset. */
  function collect(unit: Unit): void {
    const isIdle = unit.activeState === 'inactive' && unit.job === 0 && unit.references.size === 0
    if (isIdle && unit.step !== undefined) units.delete(unit.name)
  }

  const processes = createStepProcesses({
    ...host,
    onEnded(unit, end) {
      Object.assign(unit, endedUnit(end))
      endJob(unit, unit.isStopRequested || end.result === 'success' ? 'done' : 'failed')
      collect(unit)
    },
  })

  return {
    /** Services of the host that can be restarted. A new one runs. */
    addService(name: string, service: Service): void {
      services.set(name, service)
      units.set(name, newUnit(name, { activeState: 'active', subState: 'running', invocationId: random.hex(16) }))
    },
    version: () => version,
    /** As systemd says it. */
    setVersion: (next: string): void => void (version = next),
    get: (name: string): Unit | undefined => units.get(name),
    /** A unit as it is, whoever made it so; undefined: it is gone. */
    setUnit: (name: string, state: Partial<Unit> | undefined): void =>
      void (state === undefined ? units.delete(name) : units.set(name, newUnit(name, state))),
    all: (): Iterable<Unit> => units.values(),
    runningSteps: (): readonly HostStep[] =>
      [...units.values()].flatMap(({ step, activeState }) =>
        step && activeState !== 'inactive' && activeState !== 'failed' ? [step] : [],
      ),

    /** A drop-in of the host contradicts the units of steps: each is refused, and its name stays taken. */
    setRefusingSteps: (next: boolean): void => void (refusesSteps = next),

    startTransient(request: UnitRequest, sender: object): string {
      const { unit: name, description, record } = request
      if (units.has(name)) throw systemdError('UnitExists', `Unit ${name} was already loaded or has a fragment file.`)
      const invocationId = random.hex(16)
      const job = newJob()
      const step: HostStep = {
        ...readStepDescription(description),
        ...readSkyhookOf(request),
        unit: name,
        attempt: record?.attempt ?? '',
        invocationId,
        startedAtMs: clock.monotonicMs(),
      }
      if (host.isStopping()) tell({ event: 'stepRefused', step })
      expectRunning()
      if (refusesSteps) {
        units.set(name, newUnit(name, { step, references: new Set(request.isReferenced ? [sender] : []) }))
        throw systemdError('BadUnitSetting', `Unit ${name} has a bad unit file setting.`)
      }
      const state = { activeState: 'activating', subState: 'start', invocationId, isOneshot: true, job, request, step }
      const unit = newUnit(name, state)
      if (request.isReferenced) unit.references.add(sender)
      units.set(name, unit)
      processes.run(unit, request, step)
      return jobPath(job)
    },

    stop(name: string): string {
      const unit = existing(name)
      const isLive = unit.activeState !== 'inactive' && unit.activeState !== 'failed'
      const job = newJob()
      if (!isLive) {
        host.jobRemoved(jobPath(job), name, 'done')
        return jobPath(job)
      }
      endJob(unit, 'canceled')
      Object.assign(unit, { job, isStopRequested: true })
      if (unit.subState !== 'stop-post') processes.terminate(unit, 'signal')
      return jobPath(job)
    },

    restart(name: string): string {
      expectRunning()
      const service = services.get(name)
      const unit = existing(name)
      if (service === undefined) throw systemdError('NoSuchUnit', `Unit ${name} not found.`)
      const count = (restarts.get(name) ?? 0) + 1
      restarts.set(name, count)
      const { durationMs, result } = service.restart(count)
      endJob(unit, 'canceled')
      unit.cancelTimer()
      Object.assign(unit, { job: newJob(), activeState: 'deactivating', subState: 'stop-sigterm', nRestarts: 0 })
      const job = jobPath(unit.job)
      tell({ event: 'restartRequested', unit: name })
      unit.cancelTimer = clock.startTimer(durationMs, () => {
        tell({ event: 'restartEnded', unit: name, result })
        if (result === 'condition') Object.assign(unit, endedUnit(exitedWith(0)), { conditionResult: false })
        else if (result === 'failed') Object.assign(unit, endedUnit(exitedWith(1)))
        else Object.assign(unit, { activeState: 'active', subState: 'running', invocationId: random.hex(16) })
        endJob(unit, result === 'failed' ? 'failed' : 'done')
        if (result !== 'dies') return
        unit.cancelTimer = clock.startTimer(100, () => {
          unit.nRestarts++
          unit.invocationId = random.hex(16)
        })
      })
      return job
    },

    reference(name: string, sender: object): void {
      existing(name).references.add(sender)
    },
    unreference(name: string, sender: object): void {
      const unit = existing(name)
      if (!unit.references.delete(sender))
        throw systemdError('NotReferenced', `Unit ${name} has not been referenced yet.`)
      collect(unit)
    },
    /** A connection has ended. */
    forget(sender: object): void {
      for (const unit of units.values()) if (unit.references.delete(sender)) collect(unit)
    },
    resetFailed(name: string): void {
      const unit = existing(name)
      if (unit.activeState !== 'failed') return
      unit.activeState = 'inactive'
      collect(unit)
    },

    /** The host shuts down: what runs is asked to end, and its recorder still writes. */
    stopAll(): void {
      for (const unit of units.values()) {
        if (unit.step === undefined) continue
        const isLive = unit.activeState === 'activating'
        endJob(unit, 'canceled')
        if (isLive) processes.terminate(unit, 'signal')
      }
    },
    /** All processes are gone. */
    killAll(): void {
      for (const { cancelTimer, step, activeState } of units.values()) {
        cancelTimer()
        if (step && activeState !== 'inactive' && activeState !== 'failed') tell({ event: 'stepLost', step })
      }
      units.clear()
    },
    /** The services come up. */
    boot(): void {
      for (const name of services.keys())
        units.set(name, newUnit(name, { activeState: 'active', subState: 'running', invocationId: random.hex(16) }))
    },
  }
}
