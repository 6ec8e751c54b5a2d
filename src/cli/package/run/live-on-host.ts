/** One life of a package on a host of its own, of which nothing is left afterwards. */
import type { HostRoot } from '../../../host/fs/host-root.ts'
import type { PackageInstance } from '../../../packages/layout.ts'
import type { Variable } from '../../../packages/step/references.ts'
import { stepPaths } from '../../../packages/step/load-package.ts'
import { sleep, type Clock } from '../../../schemas/clock.ts'
import type { PackageConfig } from '../../../schemas/package-config.ts'
import type { Interrupt, StageName } from '../../../schemas/skyhook.ts'
import type { Context } from '../../base/framework/command.ts'
import { CommandError, usageError, exitCodes } from '../../base/framework/command-error.ts'
import { takeSnapshot } from './host-snapshot.ts'
import { lifeOf, lifeOfStage, type LifeOptions, type Version, type InterruptRun } from './life.ts'
import { type ActReport, live, type LifeHost, type LifeReport } from './live.ts'
import { type InstalledPackage, killMode, runMode, type StepRunner } from './steps.ts'
import { bootThrowAwayHost, type ThrowAwayHost } from './throw-away-host.ts'
import { BusError, describeError, isOutcomeUnknown } from '../../../host/dbus/errors.ts'
import type { BusConnection } from '../../../host/dbus/reconnecting.ts'
import { reboot } from '../../../host/systemd/reboot.ts'
import { restartService } from '../../../host/systemd/service-restart.ts'
import { serviceUnit } from '../../../schemas/systemd.ts'

/** A folder of this machine, and what its config.json says. */
export type PackageSource = { readonly folder: string; readonly config: PackageConfig }

export type LifeFlags = {
  readonly network: 'none' | 'host'
  readonly stepTimeout: number
  readonly keep: boolean
  readonly ignore: readonly string[]
  /** Undefined: the whole life. */
  readonly only: StageName | undefined
}

type LifeRequest = {
  readonly context: Context
  /** Of this machine. */
  readonly root: HostRoot
  readonly base: string
  readonly current: PackageSource
  readonly previous: PackageSource | undefined
  readonly interrupt: Interrupt | undefined
  readonly variables: readonly Variable[]
  readonly configMap: Readonly<Record<string, string>>
  readonly flags: LifeFlags
}

/** A unix socket's path ends at 107 bytes, and that of the bus is below the folder of the run. */
const maxFolderLength = 70

/** Boots, lives, and removes the host. Calls back after each act. @throws CommandError where the host cannot be used */
export async function liveOnHost(request: LifeRequest, onAct: (report: ActReport) => void): Promise<LifeReport> {
  const { context, root, base, flags } = request
  const temporary = context.environment['TMPDIR'] ?? '/var/tmp'
  if (!temporary.startsWith('/') || temporary.length > maxFolderLength - 20)
    throw usageError(`TMPDIR ${temporary} is not a short absolute path`, 'set TMPDIR to a folder such as /var/tmp')
  if (`${await root.realPath(temporary)}/`.startsWith(`${base}/`))
    throw usageError(`the base ${base} contains ${temporary}`, 'set TMPDIR to a folder outside of it')
  const folder = await root.makeUniqueFolder(`${temporary}/skyhook-run-`, 0o700)
  try {
    const { clock, random, signal, environment } = context
    context.verbose(`booting a host on ${base}, in ${folder}`)
    const prepare = async (upper: string): Promise<void> => await copyPackages(root, upper, request)
    const { network } = flags
    const host = await bootThrowAwayHost({
      clock,
      random,
      signal,
      environment,
      root,
      base,
      folder,
      network,
      prepare,
    })
    try {
      return await untilHostFails(host, liveThere(host, request, onAct), context)
    } finally {
      await host.stop()
    }
  } finally {
    if (flags.keep) context.stderr.write(`kept: the changes are in ${folder}/upper, the console in console.log\n`)
    else await root.remove(folder)
  }
}

async function liveThere(
  host: ThrowAwayHost,
  request: LifeRequest,
  onAct: (report: ActReport) => void,
): Promise<LifeReport> {
  const { context, current, previous, interrupt, flags } = request
  const { clock, random, signal } = context
  const { root, units, connection } = host
  const runner: StepRunner = {
    clock,
    random,
    root,
    signal,
    stepHost: { units, root },
    killUnit: async (unit) => await killUnit(connection, unit),
    stepTimeoutMs: flags.stepTimeout,
  }
  const uid = uidOf(random.hex(16))
  const packages: Readonly<Record<Version, InstalledPackage | undefined>> = {
    previous: previous && installed(previous, request, { uid, generation: 1, store: storeOf('previous') }),
    current: installed(current, request, { uid, generation: 2, store: storeOf('current') }),
  }
  const packageOf = (version: Version): InstalledPackage => packages[version] as InstalledPackage
  const lifeHost: LifeHost = {
    configs: { current: current.config, ...(previous && { previous: previous.config }) },
    runMode: async (version, mode, skipped) => await runMode(runner, packageOf(version), mode, skipped),
    killMode: async (version, mode) => await killMode(runner, packageOf(version), mode),
    interrupt: async (one, run) => await interruptHost(host, one, run, { clock, signal }),
    snapshot: async () => await takeSnapshot(runner),
  }
  const options: LifeOptions = {
    ...(previous && { previous: previous.config }),
    ...(interrupt && { interrupt }),
    ignored: flags.ignore,
  }
  const { only } = flags
  const acts = only === undefined ? lifeOf(current.config, options) : lifeOfStage(only, current.config, options)
  return await live(acts, lifeHost, onAct)
}

/** A host of our own goes down within seconds. */
const shutdownMs = 30_000

/** Ends with the life, or as soon as the host is gone, which no step may cause. */
async function untilHostFails(
  host: ThrowAwayHost,
  life: Promise<LifeReport>,
  { clock, signal }: Context,
): Promise<LifeReport> {
  const failed = host.failed.then((why) => {
    const remedy = 'let no step reboot or stop the host: the interrupt of the Skyhook does it when the node is drained'
    throw new CommandError(exitCodes.failed, why, remedy)
  })
  try {
    const report = await Promise.race([life, failed])
    // its end stopped the step, which failed before the host was gone
    if (!report.isOk && !(await host.isUp())) await Promise.race([failed, sleep(clock, shutdownMs, signal)])
    return report
  } catch (error) {
    // a host that goes down refuses units, then closes its bus, then ends: that says most
    if (!(error instanceof CommandError)) await Promise.race([failed, sleep(clock, shutdownMs, signal)])
    throw error
  }
}

const storeOf = (version: Version): string => `/var/lib/skyhook/.agent/package-run/${version}`

async function copyPackages(root: HostRoot, upper: string, { current, previous }: LifeRequest): Promise<void> {
  for (const [version, source] of [['current', current] as const, ['previous', previous] as const]) {
    if (source === undefined) continue
    const target = `${upper}${storeOf(version)}`
    await root.makeFolder(target, 0o755)
    await root.copyTree(source.folder, target, {
      trustTimes: false,
      executables: new Set([...stepPaths(source.config).keys()].map((path) => `skyhook_dir/${path}`)),
      excludedPaths: new Set(['.git']),
    })
  }
}

function installed(
  { config }: PackageSource,
  { previous, configMap, variables, current }: LifeRequest,
  { uid, generation, store }: { readonly uid: string; readonly generation: number; readonly store: string },
): InstalledPackage {
  const instance: PackageInstance = {
    skyhook: 'package-run',
    skyhookUid: uid,
    generation,
    name: config.packageName,
    version: config.packageVersion,
  }
  const previousVersion = (previous ?? current).config.packageVersion
  return { config, store, instance, configMap, variables, previousVersion }
}

/** In the form of a UID of Kubernetes. */
const uidOf = (hex: string): string =>
  [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join('-')

/** The effect of the operator's restartAllServices: it reloads kernel settings and restarts no service. */
const sysctlUnit = 'systemd-sysctl.service'
/** Services have started to stop by then. */
const powerCutDelayMs = 200
/** Units restart by themselves, or stay failed, within that. */
const afterKillMs = 500

type Surroundings = { readonly clock: Clock; readonly signal: AbortSignal }

/** Returns what went wrong, for people; undefined when the interrupt took place. @throws CommandError */
async function interruptHost(
  host: ThrowAwayHost,
  { type, services = [] }: Interrupt,
  run: InterruptRun,
  around: Surroundings,
): Promise<string | undefined> {
  switch (type) {
    case 'noop':
      return undefined
    case 'reboot':
      return await rebootHost(host, run, around)
    case 'restartAllServices':
      return await restartUnits(host, [sysctlUnit], run, around)
    case 'service':
      return await restartUnits(host, services.map(serviceUnit), run, around)
  }
}

async function rebootHost(
  host: ThrowAwayHost,
  run: InterruptRun,
  { clock, signal }: Surroundings,
): Promise<string | undefined> {
  const request = async (): Promise<void> => {
    const outcome = await reboot(host.connection)
    if (outcome.outcome === 'refused')
      throw new CommandError(exitCodes.failed, `the host refused to reboot: ${outcome.reason}`)
    if (run !== 'killed') return
    await sleep(clock, powerCutDelayMs, signal)
    host.cutPower()
  }
  try {
    await host.restart(run === 'killed' ? 'power-cut' : 'reboot', request)
    return undefined
  } catch (error) {
    // A host that refuses, or does not boot any more, is the doing of the package.
    if (error instanceof CommandError) return error.message
    throw error
  }
}

async function restartUnits(
  host: ThrowAwayHost,
  names: readonly string[],
  run: InterruptRun,
  { clock, signal }: Surroundings,
): Promise<string | undefined> {
  const { units, connection } = host
  await units.reload({ signal })
  const failures: string[] = []
  for (const unit of names) {
    if (run === 'killed') {
      try {
        await units.restart(unit, { signal })
      } catch (error) {
        if (error instanceof BusError) return `restarting ${unit}: ${describeError(error)}` // not there, masked, …
        throw error
      }
      await killUnit(connection, unit)
      await sleep(clock, afterKillMs, signal)
      continue
    }
    const previousInvocation = (await units.readState(unit)).invocationId ?? ''
    const outcome = await restartService({ units, clock, unit, previousInvocation, signal })
    if (outcome.outcome !== 'restarted' && outcome.outcome !== 'not-needed') failures.push(outcome.detail)
  }
  return failures.length === 0 ? undefined : failures.join('\n')
}

/** Kills every process of a unit at once (SIGKILL); a unit that has ended is fine. */
async function killUnit(connection: BusConnection, unit: string): Promise<void> {
  const call = {
    destination: 'org.freedesktop.systemd1',
    path: '/org/freedesktop/systemd1',
    interface: 'org.freedesktop.systemd1.Manager',
    member: 'KillUnit',
    signature: 'ssi',
    body: [unit, 'all', sigkill],
  }
  try {
    await connection.withBus((bus) => bus.call(call))
  } catch (error) {
    if (!(error instanceof BusError) || isOutcomeUnknown(error)) throw error
  }
}

const sigkill = 9
