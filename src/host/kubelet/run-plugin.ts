/**
 * Runs a plugin of the kubelet on the host: a program that reads a request from its standard input and writes an answer
 * with secrets to its standard output. It runs as a transient unit, like under the kubelet: in the namespaces of the
 * host, without the limits of the agent. It reads and writes files in `/run` that only root can read, because every
 * user of the host can read arguments and properties of units.
 */
import type { Clock, Random } from '../../schemas/clock.ts'
import { describeError } from '../dbus/errors.ts'
import type { BusConnection } from '../dbus/reconnecting.ts'
import type { HostRoot } from '../fs/host-root.ts'
import { defaultEnvironment, formatEnvironment, recorderVariables } from '../step/environment.ts'
import {
  command,
  flag,
  path,
  text,
  timeout,
  type UnitProperty,
  variableNamePattern,
} from '../systemd/unit-properties.ts'
import { endOfUnit, stepEndOf } from '../systemd/unit-state.ts'
import { createUnits, type Units } from '../systemd/units.ts'
import type { EnvironmentFile } from './process.ts'

export type PluginHost = {
  readonly root: HostRoot
  /** Not used yet. */
  readonly connection: BusConnection
  readonly clock: Clock
  readonly random: Random
}

export type PluginRequest = {
  readonly name: string
  /** Of the program on the host. */
  readonly program: string
  readonly args: readonly string[]
  /** Of the kubelet, below the plugin's own. */
  readonly kubelet: {
    readonly environment: Readonly<Record<string, string>>
    readonly environmentFiles: readonly EnvironmentFile[]
  }
  readonly environment: Readonly<Record<string, string>>
  /** For its standard input. */
  readonly input: string
  readonly timeoutMs?: number
}

const folder = '/run/skyhook/credential-providers'
const unitPrefix = 'skyhookd-credential-provider'
/** What the kubelet gives a plugin. */
const defaultTimeoutMs = 60_000
const stopTimeoutMs = 5_000
/** Added to the unit's own limits: by then systemd must have reported its end. */
const overdueMs = 10_000
const maxOutputBytes = 256 * 1024
const errorSuffix = '.err'

/**
 * Runs the plugin to its end and returns its standard output. The standard error of a failed plugin stays in a file
 * that only root can read, until it succeeds. It may hold secrets, so the error only names the file.
 * @throws Error with a message for people; the signal's reason
 */
export async function runPlugin(host: PluginHost, request: PluginRequest, signal: AbortSignal): Promise<string> {
  const { root, random } = host
  const units = createUnits(host.connection)
  const id = `${request.name
    .toLowerCase()
    .slice(0, 60)
    .replace(/[^a-z0-9]+/g, '-')}-${random.hex(8)}`
  const files = filesOf(id)
  const errorFile = `${folder}/${request.name}${errorSuffix}`
  try {
    await root.makeFolder(folder, 0o700)
    const contents = { [files.input]: request.input, [files.environment]: await environmentOf(units, request) }
    for (const file of Object.values(files)) await root.writeFile(file, contents[file] ?? '', 0o600)
    const properties = await propertiesOf(host, request, files)
    const { timeoutMs = defaultTimeoutMs } = request
    const problem = await runUnit(
      { units, clock: host.clock },
      `${unitPrefix}-${id}.service`,
      properties,
      timeoutMs,
      signal,
    )
    signal.throwIfAborted()
    if (problem !== undefined) {
      const hasWritten = ((await root.stat(files.errors))?.size ?? 0) > 0
      if (hasWritten) await root.rename(files.errors, errorFile)
      throw new Error(hasWritten ? `${problem}; see ${errorFile} on the host` : problem)
    }
    const { bytes, sizeBytes } = await root.readFrom(files.output, 0, maxOutputBytes)
    if (sizeBytes > maxOutputBytes) throw new Error(`its answer has more than ${maxOutputBytes} bytes`)
    await root.remove(errorFile)
    return bytes.toString()
  } finally {
    for (const file of Object.values(files)) await root.remove(file)
  }
}

/** Removes the files that runs of a dead agent left, except those that explain a failure. */
export async function sweepPluginFiles(root: Pick<HostRoot, 'list' | 'remove'>): Promise<void> {
  for (const name of (await root.list(folder)) ?? []) if (runSuffixes.test(name)) await root.remove(`${folder}/${name}`)
}

type Files = ReturnType<typeof filesOf>
const runSuffixes = /\.run-(?:in|out|err|env)(?:\.|$)/

function filesOf(id: string) {
  const base = `${folder}/${id}.run`
  return { input: `${base}-in`, output: `${base}-out`, errors: `${base}-err`, environment: `${base}-env` }
}

/** As under the kubelet: its own variables, and the plugin's over them. */
async function environmentOf(units: Units, { kubelet, environment }: PluginRequest): Promise<string> {
  const ofKubelet = Object.entries(kubelet.environment).filter(
    ([name]) => variableNamePattern.test(name) && !recorderVariables.has(name),
  )
  const variables = { ...defaultEnvironment, ...Object.fromEntries(ofKubelet), ...environment }
  return await formatEnvironment(variables, units)
}

async function propertiesOf(host: PluginHost, request: PluginRequest, files: Files): Promise<UnitProperty[]> {
  const { name, program, args, kubelet, timeoutMs = defaultTimeoutMs } = request
  // as for steps: under SELinux, systemd's own domain may not execute every file that a shell may
  const isEnforcing = (await host.root.readText('/sys/fs/selinux/enforce'))?.trim() === '1'
  if (program.includes('=')) throw new Error(`${program}: "=" in the path of a program is not supported`)
  return [
    text('Description', `credential provider ${name} of the kubelet, asked by skyhookd`),
    text('Type', 'oneshot'),
    { ...text('CollectMode', 'inactive-or-failed'), optional: true },
    { ...flag('AddRef', true), optional: true }, // so that its result can be read; it goes with the connection
    path('WorkingDirectory', '/'),
    {
      name: 'EnvironmentFiles',
      signature: 'a(sb)',
      value: [...kubelet.environmentFiles, [files.environment, false]],
    },
    path('StandardInputFile', files.input),
    path('StandardOutputFileToAppend', files.output),
    path('StandardErrorFileToAppend', files.errors),
    timeout('TimeoutStartUSec', timeoutMs),
    timeout('TimeoutStopUSec', stopTimeoutMs),
    text('KillMode', 'mixed'),
    command('ExecStart', isEnforcing ? ['/usr/bin/env', program, ...args] : [program, ...args]),
  ]
}

/** Undefined: it ran and succeeded. Else why not. */
async function runUnit(
  { units, clock }: { readonly units: Units; readonly clock: Clock },
  unit: string,
  properties: readonly UnitProperty[],
  timeoutMs: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  const ended = Promise.withResolvers<{ readonly jobResult: string } | 'interrupted' | 'overdue' | 'aborted'>()
  const stops = [
    units.onJobEnd((job) => job.unit === unit && ended.resolve({ jobResult: job.result })),
    units.onInterrupted(() => ended.resolve('interrupted')),
    clock.startTimer(timeoutMs + stopTimeoutMs + overdueMs, () => ended.resolve('overdue')),
  ]
  const onAbort = (): void => ended.resolve('aborted')
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    const start = await units.startTransient(unit, properties)
    // the published message stays the same for the same failure, so it does not have the name of this run
    if (start.outcome === 'refused' || start.outcome === 'unknown')
      return `systemd: ${start.message.replaceAll(unit, 'its unit')}`
    if (signal.aborted) onAbort()
    const end = await ended.promise
    if (typeof end === 'string') {
      await units.stop(unit).catch(() => false)
      return 'the connection to systemd ended while it ran'
    }
    return await problemOf(units, unit, end.jobResult)
  } catch (error) {
    return `systemd: ${describeError(error)}`
  } finally {
    signal.removeEventListener('abort', onAbort)
    for (const stop of stops) stop()
    await units.resetFailed(unit).catch(() => false)
    await units.unref(unit).catch(() => false)
  }
}

async function problemOf(units: Units, unit: string, jobResult: string): Promise<string | undefined> {
  const snapshot = await units.readSnapshot(unit)
  if (snapshot.loadState === 'not-found')
    // without a system bus, no reference kept it
    return jobResult === 'done' ? undefined : `it failed (job ${jobResult}), and systemd has no details`
  const end = stepEndOf(endOfUnit(snapshot))
  switch (end.outcome) {
    case 'exited':
      return end.code === 0 ? undefined : `it ended with exit code ${end.code}`
    case 'timeout':
      return 'it did not answer in time'
    case 'killed':
      return `it was ended by ${end.signal}`
    case 'failed-to-start':
    case 'unknown':
      return `it did not start: ${end.detail}`
    default:
      return end satisfies never
  }
}
