import type { HostRoot } from '../../../host/fs/host-root.ts'
import { isTemporary } from '../../../host/fs/temporary.ts'
import { type StepHost, stepFiles } from '../../../host/step/files.ts'
import { forgetStepUnit } from '../../../host/step/start.ts'
import { collectCopyDirs } from '../../../packages/install/copy-dir.ts'
import { rootDirRecordFile } from '../../../packages/install/root-dir-record.ts'
import { sweepRootDirs, uninstallRootDir } from '../../../packages/install/root-dir.ts'
import { copyDir, type HostFolders, resourceId, stateDir } from '../../../packages/layout.ts'
import {
  hasInterruptFlags,
  hasStepFlag,
  publishCheckResults,
  publishInterruptFlags,
  publishStepFlag,
  removeStepFlags,
} from '../../../packages/operator-compat/flags.ts'
import { readHistory, recordVersion } from '../../../packages/operator-compat/history.ts'
import { loadPackage } from '../../../packages/step/load-package.ts'
import {
  attemptsWithTemporaryLogs,
  packageLogDir,
  pruneLogs,
  removeTemporaryLogs,
} from '../../../packages/step/log-files.ts'
import { type Clock, toWallMs } from '../../../schemas/clock.ts'
import { type Journal, openSteps, type SkyhookRecord } from '../../../schemas/journal.ts'
import { attemptOf, type PackageRecord, type PackageWork, type StepAttempt } from '../../../schemas/package-record.ts'
import { messageOf, ownValue } from '../../../schemas/json.ts'
import {
  checkOf,
  isCheck,
  type Mode,
  type PackageConfig,
  type Stage,
  type Step,
} from '../../../schemas/package-config.ts'
import type { StepOfLine } from '../../../schemas/step-log.ts'
import { publishedState } from '../../../stages/model/package-state.ts'
import type { Action } from '../../../stages/model/plan.ts'
import type { CleanUpResult } from '../../../stages/model/snapshot.ts'
import { retain } from '../../state/retain.ts'
import { listRunningSteps, stepIdOf } from '../../state/stray-steps.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { type EndedSteps, endFields, lineOf, stepOfLine } from './ended-steps.ts'
import type { Attempts } from './observe.ts'
import type { StepOutput } from './output.ts'

/** Publishes records on the host, for people and for a return to the operator. The journal is authoritative. */
export type StepRecords = {
  recordStep(action: Extract<Action, { do: 'recordStep' }>): Promise<void>
  /** Removes a step's unit, its record, its secrets and output beyond the limit. */
  forgetStep(step: StepAttempt): Promise<void>
  recordChecks(action: Extract<Action, { do: 'recordChecks' }>): Promise<void>
  recordHistory(action: Extract<Action, { do: 'recordHistory' }>): Promise<void>
  /** Removes the last traces of an uninstalled package from the host. Repeatable. */
  cleanUp(action: Extract<Action, { do: 'cleanUp' }>): Promise<void>
  /**
   * Writes records that a previous agent did not write, and removes its temporary files. Called before any `collect`.
   */
  repair(journal: Journal): Promise<void>
  /**
   * Removes copy dirs that no package of the journal uses, and temporary output of ended steps. Only with a complete
   * journal.
   */
  collect(): Promise<void>
  /** The results of clean-ups, by id of the request. */
  cleanUps(): ReadonlyMap<string, CleanUpResult>
  retain(needed: ReadonlySet<string>): void
}

export type RecordPorts = {
  readonly host: StepHost
  readonly folders: HostFolders
  readonly journal: () => Journal
  readonly attempts: Attempts
  readonly output: StepOutput
  readonly endedSteps: EndedSteps
  /** Folder on the host with the unpacked content of an image. */
  readonly contentOf: (digest: string) => string
  readonly clock: Clock
  readonly metrics: Metrics
  readonly log: Log
}

export function createStepRecords(ports: RecordPorts): StepRecords {
  const { host, folders, attempts, output, endedSteps, contentOf, clock, metrics, log } = ports
  const { root } = host
  const cleanUps = new Map<string, CleanUpResult>()

  async function removeTraces(step: StepAttempt): Promise<void> {
    await Promise.all([
      forgetStepUnit(host, step),
      root.remove(stepFiles(host, step.id).record),
      removeTemporaryLogs(root, folders, step.id),
    ])
    attempts.forget(step.id)
    output.forget(step.id)
  }

  /** Logs the rest of its output, then its end. */
  async function logEnd(step: StepAttempt, of: StepOfLine, isCanceled = false): Promise<void> {
    await output.finish(of)
    await endedSteps.add({ ...of, ...endFields(step, attempts.current().get(step.id), clock, isCanceled) })
  }

  /** Whether its step is open, or has ended and is not recorded. */
  const isPending = (id: string): boolean =>
    attempts.stateOf(id) !== undefined || openSteps(ports.journal()).some((step) => step.id === id)

  /** Removes output of steps that no agent will record, because one died between its journal and its records. */
  async function collectOutput(): Promise<void> {
    const leftIds = (await attemptsWithTemporaryLogs(root, folders)).filter((id) => !isPending(id))
    if (leftIds.length === 0) return
    const runningIds = new Set((await listRunningSteps(host.units)).map(stepIdOf))
    for (const id of leftIds) if (!runningIds.has(id) && !isPending(id)) await removeTemporaryLogs(root, folders, id)
  }

  /** Removes copy dirs of packages that have no work in the journal. */
  async function collectContent(): Promise<void> {
    const isUsed = (skyhook: string, path: string): boolean => {
      const record = ownValue(ports.journal().skyhooks, skyhook)
      return Object.values(record?.packages ?? {}).some(
        ({ name, version, work }) =>
          record !== undefined &&
          work !== undefined &&
          path === copyDir(folders, { skyhook, skyhookUid: record.uid, generation: work.generation, name, version }),
      )
    }
    for (const skyhook of Object.keys(ports.journal().skyhooks)) {
      await collectCopyDirs(root, folders, skyhook, (path) => isUsed(skyhook, path))
    }
  }

  async function publishChecks(skyhook: string, mode: Mode, steps: readonly StepAttempt[]): Promise<void> {
    if (steps.length === 0) return
    const results = steps.map(({ path, result }) => ({ path, failed: result?.result === 'failed' }))
    await publishCheckResults(root, stateDir(folders, skyhook), mode, results)
  }

  async function cleanUp({
    skyhook,
    name,
    config,
    checks,
    passedAtWallMs,
  }: Extract<Action, { do: 'cleanUp' }>): Promise<void> {
    const dir = stateDir(folders, skyhook)
    const kept = await uninstallRootDir(root, rootDirRecordFile(skyhook, name))
    if (kept.length > 0)
      log.info(
        { skyhook, package: name, kept },
        'files of root_dir stay on the host: changed, older than the package, or of another package',
      )
    await publishChecks(skyhook, 'uninstall-check', checks)
    if (hasSibling(skyhook, name, config)) return // both share flags and history
    await removeStepFlags(root, dir, config)
    await recordVersion(root, dir, config.packageName, 'uninstalled', passedAtWallMs)
  }

  /** Whether another installed package of the Skyhook has the same image. */
  function hasSibling(skyhook: string, name: string, { packageName, packageVersion }: PackageConfig): boolean {
    const { packages = {}, installedVersions = {} } = ownValue(ports.journal().skyhooks, skyhook) ?? {}
    return Object.values(packages).some(
      ({ name: other, work }) =>
        other !== name &&
        work?.packageName === packageName &&
        work.packageVersion === packageVersion &&
        ownValue(installedVersions, other) === packageVersion,
    )
  }

  return {
    /** A canceled step: its outcome is not needed. */
    async forgetStep(step) {
      const of = output.stepOf(step.id)
      if (of) await logEnd(step, of, true)
      await removeTraces(step)
    },

    async recordStep({ skyhook, name, version, step, config, planned }) {
      const { result, mode } = step
      if (result) metrics.stepEnded(mode, result.result, (result.endedAtMs - step.startedAtMs) / 1000)
      if (result?.result === 'ok' && planned && !isCheck(mode)) {
        await publishStepFlag(root, stateDir(folders, skyhook), config, planned, toWallMs(clock, result.endedAtMs))
      }
      if (result?.result !== 'skipped') await pruneLogs(root, packageLogDir(folders, skyhook, config), step.path)
      const known = output.stepOf(step.id) ?? stepOfLine(ports.journal(), step.id)
      await logEnd(step, known ?? lineOf({ skyhook, package: name, version }, step))
      await removeTraces(step)
    },

    recordChecks: async ({ skyhook, mode, steps }) => await publishChecks(skyhook, mode, steps),

    async recordHistory({ skyhook, config, version }) {
      await recordVersion(root, stateDir(folders, skyhook), config.packageName, version, clock.wallMs())
    },

    async cleanUp(action) {
      try {
        await cleanUp(action)
        cleanUps.set(action.requestId, { state: 'done' })
      } catch (error) {
        cleanUps.set(action.requestId, { state: 'failed', message: messageOf(error) })
        throw error
      }
    },

    cleanUps: () => cleanUps,
    retain: (needed) => retain(cleanUps, needed),

    async repair(journal) {
      await repairRecords({ root, folders, contentOf, nowMs: clock.wallMs() }, journal)
      await sweepRootDirs(root)
    },

    async collect() {
      await Promise.all([collectContent(), collectOutput()])
    },
  }
}

type RepairPorts = {
  readonly root: HostRoot
  readonly folders: HostFolders
  /** Folder on the host with the unpacked content of an image. */
  readonly contentOf: (digest: string) => string
  readonly nowMs: number
}

/**
 * Writes published records that are missing because an agent died right after it wrote its journal: flags, the summary
 * of checks and the history of the last work of each package. Existing records stay unchanged.
 */
export async function repairRecords(ports: RepairPorts, { skyhooks }: Journal): Promise<void> {
  for (const [skyhook, record] of Object.entries(skyhooks)) {
    await removeTemporaries(ports.root, stateDir(ports.folders, skyhook))
    for (const entry of Object.values(record.packages))
      if (entry.work) await repairEntry(ports, skyhook, record, entry, entry.work)
  }
}

/** Removes temporary files of interrupted writes. */
async function removeTemporaries(root: HostRoot, folder: string): Promise<void> {
  if ((await root.stat(folder)) === undefined) return
  for (const path of await root.readTree(folder)) if (isTemporary(path)) await root.remove(`${folder}/${path}`)
}

async function repairEntry(
  { root, folders, contentOf, nowMs }: RepairPorts,
  skyhook: string,
  { uid, installedVersions, packages }: SkyhookRecord,
  entry: PackageRecord,
  { digest, generation, packageName, packageVersion }: PackageWork,
): Promise<void> {
  const content = contentOf(digest)
  if ((await root.stat(content)) === undefined) return
  const loaded = await loadPackage(root, content)
  if (loaded.outcome === 'invalid') return // someone changed the store: the next preparation reports it
  const { config } = loaded
  const state = stateDir(folders, skyhook)
  for (const step of completedSteps(entry, config))
    if (!(await hasStepFlag(root, state, config, step))) await publishStepFlag(root, state, config, step, nowMs)

  let isMissing = false // writes all from the first missing one on, because check_results must show the last
  for (const completedStage of completedStages(entry)) {
    const check = checkOf(completedStage)
    const results = check === undefined ? [] : (config.modes[check] ?? []).map(({ path }) => ({ path, failed: false }))
    if (check === undefined || results.length === 0) continue
    isMissing ||= (await root.stat(`${state}/flags/${check}_ALL_CHECKED`)) === undefined
    if (isMissing) await publishCheckResults(root, state, check, results)
  }
  const { name, version, lastInterrupt } = entry
  const id = resourceId({ skyhook, skyhookUid: uid, generation, name, version })
  if (lastInterrupt && wasInterrupted(entry) && !(await hasInterruptFlags(root, state, id, lastInterrupt)))
    await publishInterruptFlags(root, state, id, lastInterrupt, nowMs)
  if (ownValue(installedVersions, entry.name) !== packageVersion) return
  // packages of one image share a history: the latest entry may be another package's version or uninstall
  const isUninstalling = Object.values(packages).some(
    ({ progress }) => progress.stage === 'uninstall' && publishedState(progress) !== 'skipped',
  )
  const current = new Set([...Object.values(installedVersions), ...(isUninstalling ? ['uninstalled'] : [])])
  const history = await readHistory(root, state, packageName)
  const isRecorded =
    history.state === 'found' &&
    (history.currentVersion === packageVersion ||
      (current.has(history.currentVersion) && history.entries.some(({ version }) => version === packageVersion)))
  if (!isRecorded) await recordVersion(root, state, packageName, packageVersion, nowMs)
}

/** Whether the interrupt ran for the current inputs, not for an earlier configuration or version. */
const wasInterrupted = ({ progress }: PackageRecord): boolean =>
  progress.stage === 'post-interrupt' || (progress.stage === 'interrupt' && publishedState(progress) === 'complete')

/** The stages with records before the current one. An interrupt has no records and follows config. */
function completedStages({ progress, installedBy }: PackageRecord): readonly Stage[] {
  const { stage } = progress
  const isComplete = publishedState(progress) === 'complete'
  const installStages: readonly Stage[] = installedBy ? [installedBy] : []
  switch (stage) {
    case 'apply':
    case 'upgrade':
      return isComplete ? [stage] : []
    case 'config':
      return isComplete ? [...installStages, 'config'] : installStages
    case 'interrupt':
      return [...installStages, 'config']
    case 'post-interrupt':
      return isComplete ? [...installStages, 'config', stage] : [...installStages, 'config']
    case 'uninstall':
      return []
  }
}

/** The completed steps of the passed stages and of the current stage. */
function completedSteps(entry: PackageRecord, config: PackageConfig): readonly Step[] {
  const completedStage = completedStages(entry).flatMap((stage) => config.modes[stage] ?? [])
  const steps = entry.progress.stage === 'uninstall' ? [] : (attemptOf(entry.progress)?.steps ?? [])
  const succeeded = steps.filter(({ mode, result }) => result?.result === 'ok' && !isCheck(mode))
  return [...completedStage, ...succeeded.flatMap(({ mode, index }) => config.modes[mode]?.[index] ?? [])]
}
