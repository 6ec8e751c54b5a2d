/** Runs the modes of a package on a host as the agent does: copy dir, environment, one unit per step, its end. */
import type { HostRoot } from '../../../host/fs/host-root.ts'
import type { StepHost } from '../../../host/step/files.ts'
import { observeStepUnit, type StepObservation } from '../../../host/step/observe.ts'
import { forgetStepUnit, startStepUnit, type StepUnitRequest } from '../../../host/step/start.ts'
import { ensureCopyDir } from '../../../packages/install/copy-dir.ts'
import { installRootDir, uninstallRootDir } from '../../../packages/install/root-dir.ts'
import { rootDirRecordFile } from '../../../packages/install/root-dir-record.ts'
import { copyDir, type HostFolders, type PackageInstance, scriptsDir } from '../../../packages/layout.ts'
import { composeStep } from '../../../packages/step/environment.ts'
import type { Variable } from '../../../packages/step/references.ts'
import { stepPaths, whyNotExecutable } from '../../../packages/step/load-package.ts'
import { claimLogFiles, packageLogDir } from '../../../packages/step/log-files.ts'
import { stepUnitRequest } from '../../../packages/step/unit-request.ts'
import { type Clock, type Random, sleep, toWallMs } from '../../../schemas/clock.ts'
import { isCheck, type Mode, type PackageConfig, type Step } from '../../../schemas/package-config.ts'
import { CommandError, exitCodes } from '../../base/framework/command-error.ts'
import type { KilledMode, ModeEnd } from './live.ts'

export type StepRunner = {
  readonly clock: Clock
  readonly random: Random
  readonly root: HostRoot
  readonly stepHost: StepHost
  readonly signal: AbortSignal
  /** Kills every process of a unit at once (SIGKILL); a unit that has ended is fine. */
  readonly killUnit: (unit: string) => Promise<void>
  /** A step that takes longer fails. */
  readonly stepTimeoutMs: number
}

/** A version of the package on the host. */
export type InstalledPackage = {
  readonly config: PackageConfig
  /** Host path of its unpacked content. */
  readonly store: string
  readonly instance: PackageInstance
  readonly configMap: Readonly<Record<string, string>>
  readonly variables: readonly Variable[]
  readonly previousVersion: string
}

export const folders: HostFolders = { copyDirRoot: '/var/lib/skyhook', agentLogRoot: '/var/log/skyhook' }
const pollMs = 50 // on a host of our own, for minutes: no signal of the bus can be lost
const stopTimeoutMs = 30_000

/** Ends at the first step that fails, except in checks, of which all run. */
export async function runMode(
  runner: StepRunner,
  one: InstalledPackage,
  mode: Mode,
  skipped: ReadonlySet<number>,
): Promise<ModeEnd> {
  await prepare(runner, one)
  const conflict = await installRootFiles(runner, one, mode)
  if (conflict !== undefined) return { isOk: false, output: `${conflict}\n`, succeeded: [] }
  let output = ''
  let isOk = true
  const succeeded: number[] = []
  for (const [index, step] of (one.config.modes[mode] ?? []).entries()) {
    if (skipped.has(index)) continue
    const request = await requestOf(runner, one, mode, step)
    if (typeof request === 'string') return { isOk: false, output: `${output}${request}\n`, succeeded }
    await start(runner, request)
    const end = await awaitEnd(runner, request)
    const text = await outputOf(runner, request)
    await forget(runner, request)
    const passed = hasPassed(end, step)
    output += passed ? text : `${text}${mode} ${step.path}: ${describe(end)}\n`
    if (passed) succeeded.push(index)
    isOk &&= passed
    if (!passed && !isCheck(mode)) break
  }
  if (isOk && mode === 'uninstall-check') await uninstallRootDir(runner.root, recordFileOf(one))
  return { isOk, output, succeeded }
}

/** Moments of a step at which it is killed, until one hits. A short script takes 10 ms. */
const killDelaysMs = [100, 20, 5, 0, 0, 0]

/** Runs the mode up to its middle step and kills that. A step that may run once only is tried once. */
export async function killMode(runner: StepRunner, one: InstalledPackage, mode: Mode): Promise<KilledMode> {
  const steps = one.config.modes[mode] ?? []
  const middle = Math.floor(steps.length / 2)
  const others = new Set([...steps.keys()].filter((index) => index >= middle))
  const { isOk, succeeded } = await runMode(runner, one, mode, others)
  const step = steps[middle]
  if (!isOk || step === undefined) return { isKilled: false, succeeded }
  const delays = step.idempotence === 'agent' ? killDelaysMs.slice(0, 1) : killDelaysMs
  for (const delayMs of delays) {
    const request = await requestOf(runner, one, mode, step)
    if (typeof request === 'string') break
    await start(runner, request)
    if (delayMs > 0) await sleep(runner.clock, delayMs, runner.signal)
    await runner.killUnit(request.unit)
    const end = await awaitEnd(runner, request)
    await forget(runner, request)
    if (end.state === 'ended' && end.result.outcome !== 'exited') return { isKilled: true, succeeded }
    if (step.idempotence === 'agent' && hasPassed(end, step))
      return { isKilled: false, succeeded: [...succeeded, middle] }
  }
  return { isKilled: false, succeeded }
}

const hasPassed = (end: End, step: Step): boolean =>
  end.state === 'ended' && end.result.outcome === 'exited' && step.returncodes.includes(end.result.code)

async function prepare(runner: StepRunner, one: InstalledPackage): Promise<void> {
  const dir = copyDir(folders, one.instance)
  const ensured = await ensureCopyDir({
    nowMs: toWallMs(runner.clock, runner.clock.steadyMs()),
    host: runner.root,
    store: one.store,
    digest: `sha256:${one.instance.version}`,
    copyDir: dir,
    stepPaths: stepPaths(one.config).keys(),
    configMap: one.configMap, // an uninstall starts with what the package was installed with
    nodeMetadata: { labels: '{}', annotations: '{}', packages: '{}' },
  })
  if (ensured.outcome === 'invalid') throw new CommandError(exitCodes.usage, ensured.problems.join('; '))
}

const recordFileOf = ({ instance }: InstalledPackage): string => rootDirRecordFile(instance.skyhook, instance.name)

/**
 * The package's root_dir, as at the start of every stage but uninstall; not before a check, which alone must not find
 * what its stage brings. Returns what stands in its way.
 */
async function installRootFiles({ root }: StepRunner, one: InstalledPackage, mode: Mode): Promise<string | undefined> {
  if (mode === 'uninstall' || isCheck(mode)) return undefined
  const installed = await installRootDir(root, one.store, recordFileOf(one))
  return installed.outcome === 'conflict' ? installed.problems.join('; ') : undefined
}

/** The unit of a step, or why it cannot run. */
async function requestOf(
  { root, random, clock, stepTimeoutMs }: StepRunner,
  { config, instance, variables, previousVersion }: InstalledPackage,
  mode: Mode,
  step: Step,
): Promise<StepUnitRequest | string> {
  const composed = composeStep({ config, mode, step, instance, folders, variables, previousVersion })
  if (composed.outcome === 'missing')
    return `${step.path} expects ${composed.variables.map((name) => `--env ${name}=VALUE`).join(' ')}`
  const dir = copyDir(folders, instance)
  const why = await whyNotExecutable(root, `${scriptsDir(dir)}/${step.path}`, composed.environment['PATH'] ?? '')
  if (why !== undefined) return why
  const id = random.hex(8)
  return stepUnitRequest({
    attempt: { id, unit: `skyhookd-${instance.name}-${mode}-${id}.service`, mode },
    instance,
    step,
    composed,
    copyDir: dir,
    logs: await claimLogFiles(
      root,
      packageLogDir(folders, instance.skyhook, config),
      step.path,
      toWallMs(clock, clock.steadyMs()),
    ),
    properties: {},
    timeoutMs: stepTimeoutMs,
    stopTimeoutMs,
    isSelinuxEnforcing: false,
  })
}

/** @throws Error where systemd does not start it */
export async function start({ stepHost }: StepRunner, request: StepUnitRequest): Promise<void> {
  const started = await startStepUnit(stepHost, request)
  if (!started.started) throw new Error(`systemd did not start ${request.unit}: ${started.error.message}`)
}

type End = Exclude<StepObservation, { state: 'running' }>

/** Polls until the unit has ended. */
export async function awaitEnd(runner: StepRunner, request: StepUnitRequest): Promise<End> {
  for (;;) {
    const observation = await observeStepUnit(runner.stepHost, request)
    if (observation.state !== 'running') return observation
    await sleep(runner.clock, pollMs, runner.signal)
  }
}

/** Lets systemd forget an ended unit. */
export const forget = async ({ stepHost }: StepRunner, request: StepUnitRequest): Promise<void> =>
  await forgetStepUnit(stepHost, request)

async function outputOf({ root }: StepRunner, { stdoutFile, stderrFile }: StepUnitRequest): Promise<string> {
  const texts = await Promise.all([stdoutFile, stderrFile].map((path) => root.readText(path)))
  return texts.map((text) => text ?? '').join('')
}

function describe(end: End): string {
  if (end.state === 'absent') return 'systemd has forgotten it'
  const { result } = end
  switch (result.outcome) {
    case 'exited':
      return `exited with ${result.code}`
    case 'killed':
      return `killed by ${result.signal}`
    case 'timeout':
      return 'not finished within --step-timeout'
    case 'failed-to-start':
      return `not started: ${result.detail}`
    case 'unknown':
      return `how it ended is unknown: ${result.detail}`
  }
}
