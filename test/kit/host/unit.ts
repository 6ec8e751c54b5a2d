/** A unit of a simulated systemd. */
import { constants } from 'node:os'
import type { UnitEnd } from '../../../src/host/systemd/unit-state.ts'
import type { HostStep } from './observer.ts'
import type { UnitRequest } from './unit-request.ts'

export type Unit = {
  readonly name: string
  activeState: string
  subState: string
  /** 0: none is pending. */
  job: number
  invocationId: string
  result: string
  execMainCode: number
  execMainStatus: number
  nRestarts: number
  conditionResult: boolean
  readonly isOneshot: boolean
  /** Connections that keep it loaded. */
  readonly references: Set<object>
  /** Of transient units. */
  readonly request: UnitRequest | undefined
  readonly step: HostStep | undefined
  isStopRequested: boolean
  /** From TERM to the end of its process. */
  stopMs: number
  /** Of what happens to it next. */
  cancelTimer: () => void
}

export const newUnit = (name: string, state: Partial<Unit>): Unit => ({
  name,
  activeState: 'inactive',
  subState: 'dead',
  job: 0,
  invocationId: '',
  result: 'success',
  execMainCode: 0,
  execMainStatus: 0,
  nRestarts: 0,
  conditionResult: true,
  isOneshot: false,
  references: new Set(),
  request: undefined,
  step: undefined,
  isStopRequested: false,
  stopMs: 0,
  cancelTimer: () => undefined,
  ...state,
})

export const exitedWith = (code: number): UnitEnd => ({
  result: code === 0 ? 'success' : 'exit-code',
  code: 'exited',
  status: String(code),
})

export const killedBy = (signal: 'TERM' | 'KILL', result: string): UnitEnd => ({
  result,
  code: 'killed',
  status: signal,
})

const mainCodes = { '': 0, exited: 1, killed: 2, dumped: 3 } as const

/** What systemd shows of a unit that has ended so. */
export function endedUnit({ result, code, status }: UnitEnd): Partial<Unit> {
  const isSuccess = result === 'success'
  const signals: Readonly<Record<string, number>> = constants.signals
  return {
    activeState: isSuccess ? 'inactive' : 'failed',
    subState: isSuccess ? 'dead' : 'failed',
    result,
    execMainCode: mainCodes[code],
    execMainStatus: code === 'killed' ? (signals[`SIG${status}`] ?? 0) : Number(status),
  }
}
