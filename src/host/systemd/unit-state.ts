/** What systemd reports about a unit. */
import type { Variant } from 'dbus-next/lib/variant.js'

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
