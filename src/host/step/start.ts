/**
 * One attempt of a step as a transient unit of the host's systemd. The unit continues without the agent, leaves a
 * record of its end, and is found again by its name. Nothing here waits: see `Units.onJobEnd` and
 * `BusConnection.onState` for when to observe.
 */
import { BusError, describeError, NoReplyError, NotConnectedError } from '../dbus/errors.ts'
import type { HostRoot } from '../fs/host-root.ts'
import { defaultEnvironment, formatEnvironment } from './environment.ts'
import { stepFiles, type StepFiles, type StepHost } from './files.ts'
import type { StepIdentity } from './observe.ts'
import { ensureRecorder } from './result-record.ts'
import type { StartOutcome } from '../systemd/units.ts'
import {
  assertUnitName,
  command,
  type CommandArgument,
  count,
  environmentFile,
  flag,
  reloadSafeCommand,
  path,
  text,
  timeout,
  type UnitProperty,
  UnitValueError,
} from '../systemd/unit-properties.ts'

/** TimeoutStopUSec is also the recorder's time limit, and a busy disk needs time. */
const minStopTimeoutMs = 2_000

export type StepUnitRequest = {
  /** Of this attempt alone: [a-z0-9-], names its files. */
  readonly id: string
  /** Of this attempt alone, ending in `.service`. */
  readonly unit: string
  /** For people, in `systemctl` and the journal: what runs, and for which package. */
  readonly description: string
  /** Absolute path on the host, and arguments, which arrive exactly as given; secret ones as variables. */
  readonly command: readonly [string, ...CommandArgument[]]
  readonly workingDirectory: string
  /** PATH and HOME are added unless given. */
  readonly environment: Readonly<Record<string, string>>
  /** Appended to; their folder exists. */
  readonly stdoutFile: string
  readonly stderrFile: string
  /** From the start to the end of the step; no limit if absent. */
  readonly timeoutMs?: number
  /** From TERM to KILL. At least 2 s are given. */
  readonly stopTimeoutMs: number
  /** For the agent that observes the attempt later (`readStepNote`); kept as secret as the environment, and as long. */
  readonly note?: string
  /** Further properties of the unit, in systemd's names and units: unsigned numbers above 0, and texts. */
  readonly properties?: Readonly<Record<string, number | string>>
}

export type StepStart =
  /** `found`: a unit of that name existed already, running or ended; observe it. */
  { readonly started: true; readonly found: boolean } | { readonly started: false; readonly error: StepStartError }

export type StepStartError = {
  /**
   * invalid: the request can never work. refused: systemd refused it. host: a file on the host could not be written.
   * stopping: the host is going down. not-connected: nothing was asked. unknown: it may have started, observe it.
   */
  readonly kind: 'invalid' | 'refused' | 'host' | 'stopping' | 'not-connected' | 'unknown'
  readonly message: string
  readonly cause: Error
  /** A retry needs a new unit name. */
  readonly isUnitNameTaken?: true
}

/** The unit is new, so its start can only conflict with the jobs of a shutdown of the host. */
const transactionIsDestructive = 'org.freedesktop.systemd1.TransactionIsDestructive'

/**
 * Starts the attempt. Safe to repeat: a unit of that name is found, not started again. The caller has recorded that it
 * is about to start this attempt, and has observed that it is absent.
 */
export async function startStepUnit(host: StepHost, request: StepUnitRequest): Promise<StepStart> {
  const files = stepFiles(host, request.id)
  let environment: string
  let properties: readonly UnitProperty[]
  try {
    assertUnitName(request.unit)
    environment = await formatEnvironment({ ...defaultEnvironment, ...request.environment }, host.units)
    properties = propertiesOf(request, files)
  } catch (error) {
    if (error instanceof UnitValueError) return startFailure('invalid', error)
    if (error instanceof NotConnectedError) return startFailure('not-connected', error)
    throw error
  }
  const removeSecrets = async (): Promise<unknown> =>
    await Promise.all([host.root.remove(files.environment), host.root.remove(files.note)])
  const preparations = await Promise.allSettled([
    ensureRecorder(host.root, files.recorder, files.resultsFolder),
    writeSecret(host.root, files.runFolder, files.environment, environment),
    request.note === undefined ? undefined : writeSecret(host.root, files.runFolder, files.note, request.note),
    host.root.remove(files.record), // from before this host's journal was lost
  ])
  const failedPreparation = preparations.find((one) => one.status === 'rejected')
  if (failedPreparation) {
    // if nothing can be written, perhaps nothing can be removed either; the sweep tries again
    await removeSecrets().catch(() => {})
    return startFailure('host', failedPreparation.reason)
  }
  let start: StartOutcome
  try {
    start = await host.units.startTransient(request.unit, properties)
  } catch (error) {
    await removeSecrets()
    if (error instanceof NotConnectedError) return startFailure('not-connected', error)
    throw error
  }
  switch (start.outcome) {
    case 'started':
      return { started: true, found: false }
    case 'exists':
      await host.units.ref(request.unit)
      return { started: true, found: true }
    case 'unknown':
      // the environment file stays: the unit may be about to read it
      return startFailure('unknown', new NoReplyError('connection-lost', start.message))
    case 'refused': {
      await removeSecrets()
      if (start.error === transactionIsDestructive)
        return startFailure('stopping', new BusError(start.error, `the host is shutting down: ${start.message}`))
      const cause = new BusError(start.error, start.message)
      const error = { kind: 'refused', message: describeError(cause), cause } as const
      return { started: false, error: start.isUnitNameTaken ? { ...error, isUnitNameTaken: true } : error }
    }
    default:
      return start satisfies never
  }
}

/**
 * Removes the unit and the secrets of an ended attempt whose result is recorded. `sweepStepFiles` removes the record
 * itself.
 */
export async function forgetStepUnit(host: StepHost, step: Pick<StepIdentity, 'id' | 'unit'>): Promise<void> {
  const { environment, note, printed } = stepFiles(host, step.id)
  await Promise.all([
    host.root.remove(environment),
    host.root.remove(note),
    host.root.remove(printed),
    host.units.resetFailed(step.unit), // a failed unit left behind makes the host `degraded`
    host.units.unref(step.unit),
  ])
}

function propertiesOf(request: StepUnitRequest, files: StepFiles): UnitProperty[] {
  return [
    text('Description', request.description),
    text('Type', 'oneshot'),
    { ...text('CollectMode', 'inactive'), optional: true }, // a failed unit stays until its result is read
    { ...flag('AddRef', true), optional: true }, // a successful one too
    path('WorkingDirectory', request.workingDirectory),
    environmentFile(files.environment), // not Environment: every local user can read that over the bus
    path('StandardOutputFileToAppend', request.stdoutFile),
    path('StandardErrorFileToAppend', request.stderrFile),
    timeout('TimeoutStartUSec', request.timeoutMs), // RuntimeMaxUSec does nothing for oneshot units
    timeout('TimeoutStopUSec', Math.max(request.stopTimeoutMs, minStopTimeoutMs)),
    text('KillMode', 'mixed'),
    command('ExecStart', request.command),
    // Through the shell: that works on a /var mounted noexec, and needs no label of its own under SELinux.
    reloadSafeCommand('ExecStopPost', ['/bin/sh', files.recorder, files.resultsFolder, request.id]),
    ...Object.entries(request.properties ?? {}).map(([name, value]) =>
      typeof value === 'number' ? count(name, value) : text(name, value),
    ),
  ]
}

async function writeSecret(root: HostRoot, folder: string, file: string, content: string): Promise<void> {
  try {
    await root.writeFile(file, content, 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    await root.mkdirp(folder, 0o700) // first step since the boot
    await root.writeFile(file, content, 0o600)
  }
}

function startFailure(kind: StepStartError['kind'], error: unknown): StepStart {
  const cause = error instanceof Error ? error : new Error(describeError(error))
  return { started: false, error: { kind, message: describeError(cause), cause } }
}
