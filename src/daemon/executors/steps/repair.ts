import type { HostRoot } from '../../../host/fs/host-root.ts'
import { isTemporary } from '../../../host/fs/temporary.ts'
import { loadPackage } from '../../../packages/step/load-package.ts'
import {
  hasInterruptFlags,
  hasStepFlag,
  publishCheckResults,
  publishInterruptFlags,
  publishStepFlag,
} from '../../../packages/operator-compat/flags.ts'
import { readHistory, recordVersion } from '../../../packages/operator-compat/history.ts'
import { resourceId, stateDir, type HostFolders } from '../../../packages/layout.ts'
import {
  attemptOf,
  type Journal,
  type PackageRecord,
  type PackageWork,
  type SkyhookRecord,
} from '../../../schemas/journal.ts'
import { checkOf, isCheck, type PackageConfig, type Stage, type Step } from '../../../schemas/package-config.ts'
import { ownValue } from '../../../schemas/own-value.ts'
import { publishedState } from '../../../stages/model/package-state.ts'

export type RepairPorts = {
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
