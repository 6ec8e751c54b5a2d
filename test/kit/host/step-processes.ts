/** The processes of steps on a simulated host: what a script decides, timeouts, TERM and KILL, and the recorder. */
import { stepEndOf, type UnitEnd } from '../../../src/host/systemd/unit-state.ts'
import type { Clock } from '../../../src/schemas/clock.ts'
import type { Disk } from './disk.ts'
import type { HostEvent, HostStep } from './observer.ts'
import { writeRecord } from './result-recorder.ts'
import { exitedWith, killedBy, type Unit } from './unit.ts'
import type { UnitRequest } from './unit-request.ts'

/** What a step does once it runs. */
export type StepRun = {
  readonly durationMs: number
  /** Default 0. */
  readonly exitCode?: number
  /** From TERM to its end; Infinity: it ignores TERM. Default 0. */
  readonly stopMs?: number
  /** What it changes on its host, at its end. */
  readonly act?: () => void
}

/** Decides what a step does. `script` is the file's content, or undefined where it is missing. */
export type StepScript = (step: HostStep, script: string | undefined) => StepRun

/** A running ExecStopPost takes this long. */
const recorderMs = 5

export function createStepProcesses(host: {
  readonly clock: Clock
  readonly disk: Disk
  readonly bootId: () => string
  readonly isStopping: () => boolean
  readonly runStep: StepScript
  readonly tell: (event: HostEvent) => void
  /** Nothing of the unit runs any more. */
  readonly onEnded: (unit: Unit, end: UnitEnd) => void
}) {
  const { clock, disk, tell } = host

  /** The main process has ended; the recorder runs before the unit has. */
  function endProcess(unit: Unit, end: UnitEnd): void {
    unit.cancelTimer()
    Object.assign(unit, { activeState: 'deactivating', subState: 'stop-post' })
    const { request, step, invocationId } = unit
    if (request === undefined || step === undefined) return
    const state = { bootId: host.bootId(), isStopping: host.isStopping(), invocationId }
    const sync = request.record && writeRecord(disk, request.record, end, state)
    unit.cancelTimer = clock.startTimer(recorderMs, () => {
      tell({ event: 'stepEnded', step, end: stepEndOf(end), isRecorded: sync?.() === true })
      host.onEnded(unit, end)
    })
  }

  /** TERM, and KILL when that has had no effect in time. */
  function terminate(unit: Unit, result: UnitEnd['result']): void {
    if (unit.activeState === 'deactivating') return
    unit.cancelTimer()
    const limitMs = unit.request?.stopTimeoutMs ?? Infinity
    const isStubborn = unit.stopMs > limitMs
    Object.assign(unit, { activeState: 'deactivating', subState: 'stop-sigterm' })
    unit.cancelTimer = clock.startTimer(Math.min(unit.stopMs, limitMs), () =>
      endProcess(unit, killedBy(isStubborn ? 'KILL' : 'TERM', isStubborn ? 'timeout' : result)),
    )
  }

  function scriptOf({ program, argv }: UnitRequest): string | undefined {
    const path = program === '/usr/bin/env' ? argv.at(-1) : program
    try {
      return disk.read(disk.locate(path ?? '')).toString()
    } catch {
      return undefined
    }
  }

  return {
    terminate,
    run(unit: Unit, request: UnitRequest, step: HostStep): void {
      const { environmentFile, timeoutMs } = request
      if (environmentFile !== undefined && disk.locate(environmentFile).node === undefined)
        return endProcess(unit, { result: 'resources', code: '', status: '' })
      const script = scriptOf(request)
      tell({ event: 'stepStarted', step })
      if (script === undefined || script === '') return endProcess(unit, exitedWith(203))
      const { durationMs, exitCode = 0, act, stopMs = 0 } = host.runStep(step, script)
      unit.stopMs = stopMs
      unit.cancelTimer = clock.startTimer(Math.min(durationMs, timeoutMs), () => {
        if (durationMs > timeoutMs) return terminate(unit, 'timeout')
        act?.()
        endProcess(unit, exitedWith(exitCode))
      })
    },
  }
}
