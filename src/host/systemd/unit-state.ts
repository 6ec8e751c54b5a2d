/** What systemd reports about a unit. */
import { constants } from 'node:os'
import type { Variant } from 'dbus-next/lib/variant.js'
import type { StepEnd } from '../../schemas/step-end.ts'

export type UnitState = {
  readonly loadState: string
  readonly activeState: string
  readonly subState: string
  readonly isJobPending: boolean
}

/** 32 hex digits; absent when the unit has not run since it was loaded. */
export type Invocation = { readonly invocationId?: string }

export type UnitSnapshot = UnitState &
  Invocation & {
    /** Of services, else `unknown`. Means nothing unless the unit ran: a missing unit answers `success`. */
    readonly result: string
    /** 0 not ended, 1 exited, 2 killed, 3 dumped core. */
    readonly execMainCode: number
    /** Exit code or number of the signal. */
    readonly execMainStatus: number
    /** Automatic restarts since the last requested one. */
    readonly nRestarts: number
    /** False when a Condition… of the unit did not hold: its start then counts as done. */
    readonly conditionResult: boolean
    /** A service that completes when its program ends (Type=oneshot). */
    readonly isOneshot: boolean
  }

export const notFoundState: UnitState = {
  loadState: 'not-found',
  activeState: 'inactive',
  subState: 'dead',
  isJobPending: false,
}

/** True while the unit is active: it is up, starting or stopping, or has a pending job. */
export function isLive(state: UnitState): boolean {
  if (state.isJobPending) return true // just queued: still inactive, without an invocation
  return state.activeState !== 'inactive' && state.activeState !== 'failed'
}

/** A row of ListUnitsByNames; the columns after the job's id are not used here. */
export type ListedRow = readonly [
  name: string,
  description: string,
  load: string,
  active: string,
  sub: string,
  following: string,
  path: string,
  jobId: number,
]

export function stateOf([, , loadState, activeState, subState, , , jobId]: ListedRow): UnitState {
  return { loadState, activeState, subState, isJobPending: jobId !== 0 }
}

export function invocationOf(value: unknown): Invocation {
  return Buffer.isBuffer(value) && value.length === 16 ? { invocationId: value.toString('hex') } : {}
}

/** From all properties of all of the unit's interfaces. */
export function snapshotOf(values: Readonly<Record<string, Variant>>): UnitSnapshot {
  const text = (name: string, fallback: string) => (values[name]?.value as string | undefined) ?? fallback
  const number = (name: string) => Number(values[name]?.value ?? 0)
  const job = values['Job']?.value as readonly [number, string] | undefined
  return {
    loadState: text('LoadState', notFoundState.loadState),
    activeState: text('ActiveState', notFoundState.activeState),
    subState: text('SubState', notFoundState.subState),
    isJobPending: job !== undefined && job[0] !== 0,
    ...invocationOf(values['InvocationID']?.value),
    result: text('Result', 'unknown'),
    execMainCode: number('ExecMainCode'),
    execMainStatus: number('ExecMainStatus'),
    nRestarts: number('NRestarts'),
    isOneshot: values['Type']?.value === 'oneshot',
    // before the first check its conditions read as false
    conditionResult: values['ConditionResult']?.value !== false || number('ConditionTimestamp') === 0,
  }
}

/** How a step ended, from what systemd reports about its unit. */

export type UnitEnd = {
  /** Service property Result, or SERVICE_RESULT. */
  readonly result: string
  /** How the main process ended; empty when it never was. */
  readonly code: 'exited' | 'killed' | 'dumped' | ''
  /** Exit code, or the signal's name without SIG. */
  readonly status: string
}

/**
 * Exit codes of systemd when it cannot set up the process (systemd.exec(5)). A step that exits with one of these codes
 * itself cannot be distinguished.
 */
const startFailures: Readonly<Record<number, string>> = {
  200: 'CHDIR: its working directory cannot be entered',
  203: 'EXEC: it cannot be executed (missing, not executable, no interpreter, or environment and arguments too long)',
  205: 'LIMITS: its resource limits cannot be set',
  206: 'OOM_ADJUST: its OOM score cannot be set',
  208: 'STDIN: its standard input cannot be set up',
  209: 'STDOUT: its log file cannot be opened',
  214: 'SETSCHEDULER: its scheduling cannot be set',
  216: 'GROUP: its group cannot be set',
  217: 'USER: its user cannot be set',
  218: 'CAPABILITIES: its capabilities cannot be set',
  219: 'CGROUP: its control group cannot be set up',
  222: 'STDERR: its error log cannot be opened',
  226: 'NAMESPACE: its mount namespace cannot be set up',
  228: 'SECCOMP: its system call filter cannot be set',
  229: 'SELINUX_CONTEXT: its SELinux context cannot be set',
  231: 'APPARMOR_PROFILE: its AppArmor profile cannot be set',
  243: 'CREDENTIALS: its credentials cannot be set up',
}

export function stepEndOf({ result, code, status }: UnitEnd): StepEnd {
  if (result === 'timeout') return { outcome: 'timeout' }
  if (result === 'oom-kill') return { outcome: 'killed', signal: 'SIGKILL' }
  if (code === 'killed' || code === 'dumped') return { outcome: 'killed', signal: `SIG${status}` }
  if (code === 'exited' && /^\d+$/.test(status)) {
    const exitCode = Number(status)
    const detail = startFailures[exitCode]
    return detail
      ? { outcome: 'failed-to-start', detail: `${exitCode}/${detail}` }
      : { outcome: 'exited', code: exitCode }
  }
  if (result === 'resources')
    return {
      outcome: 'failed-to-start',
      detail: 'resources: its environment file is missing or unreadable, or the host is out of memory or processes',
    }
  if (result !== 'success') return { outcome: 'failed-to-start', detail: result }
  return { outcome: 'unknown', detail: 'the unit ended without a main process' }
}

const exitCodeKinds = ['', 'exited', 'killed', 'dumped'] as const
const signalNames = new Map(
  Object.entries(constants.signals).map(([name, number]) => [number, name.slice('SIG'.length)]),
)

/** From the properties of a unit: ExecMainCode is a CLD_ number, ExecMainStatus an exit code or a signal's number. */
export function endOfUnit(unit: {
  readonly result: string
  readonly execMainCode: number
  readonly execMainStatus: number
}): UnitEnd {
  const code = exitCodeKinds[unit.execMainCode] ?? ''
  const status =
    code === 'killed' || code === 'dumped'
      ? (signalNames.get(unit.execMainStatus) ?? String(unit.execMainStatus))
      : String(unit.execMainStatus)
  return { result: unit.result, code, status }
}
