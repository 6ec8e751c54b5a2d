/** How a step ended, from what systemd reports about its unit. */
import { constants } from 'node:os'
import type { StepEnd } from '../../schemas/step-end.ts'

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
