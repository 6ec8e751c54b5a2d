import { stepFiles } from '../../host/step-files.ts'
import type { StepHost } from '../../host/step-files.ts'
import { forgetStepUnit } from '../../host/step-unit.ts'
import { collectCopyDirs } from '../../packages/copy-dir.ts'
import { publishCheckResults, publishStepFlag, removeStepFlags } from '../../packages/flags.ts'
import { recordVersion } from '../../packages/history.ts'
import type { HostFolders } from '../../packages/layout.ts'
import { copyDir, stateDir } from '../../packages/layout.ts'
import { packageLogDir, pruneLogs, unkeptLogFiles } from '../../packages/logs.ts'
import { rootDirRecordFile, uninstallRootDir } from '../../packages/root-dir.ts'
import type { Journal, StepAttempt } from '../../schemas/journal.ts'
import { isCheck } from '../../schemas/package-config.ts'
import type { Mode } from '../../schemas/package-config.ts'
import type { Action } from '../../stages/plan.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import type { State } from '../state.ts'

/** What is on the host for people and for the way back to the incumbent: published copies of the journal, which stays the truth. */
export type StepRecords = {
  recordStep(action: Extract<Action, { do: 'recordStep' }>): Promise<void>
  /** Removes a step's unit, its record, its secrets and what was not to be kept of its output. */
  forgetStep(step: StepAttempt): Promise<void>
  recordChecks(action: Extract<Action, { do: 'recordChecks' }>): Promise<void>
  recordHistory(action: Extract<Action, { do: 'recordHistory' }>): Promise<void>
  /** Removes the copy dirs that no package of the journal works from any more. */
  collect(journal: Journal): Promise<void>
}

export function createStepRecords(host: StepHost, folders: HostFolders, state: State, metrics: Metrics, log: Log): StepRecords {
  const { root } = host

  async function forgetStep(step: StepAttempt): Promise<void> {
    const unkept = unkeptLogFiles(folders, step.id)
    await Promise.all([
      forgetStepUnit(host, step),
      root.remove(stepFiles(host, step.id).record),
      root.remove(unkept.stdout),
      root.remove(unkept.stderr),
    ])
    state.attempts.delete(step.id)
  }

  return {
    forgetStep,

    async recordStep({ skyhook, step, config, planned }) {
      const { result, mode } = step
      if (result) metrics.stepEnded(mode, result.result, (result.endedAtMs - step.startedAtMs) / 1000)
      if (result?.result === 'ok' && planned && !isCheck(mode as Mode)) {
        await publishStepFlag(root, stateDir(folders, skyhook), config, planned, result.endedAtMs)
      }
      if (result?.result !== 'skipped') await pruneLogs(root, packageLogDir(folders, skyhook, config), step.path)
      await forgetStep(step)
    },

    async recordChecks({ skyhook, mode, steps }) {
      const results = steps.map(({ path, result }) => ({ path, failed: result?.result === 'failed' }))
      await publishCheckResults(root, stateDir(folders, skyhook), mode, results)
    },

    async recordHistory({ skyhook, name, config, version }) {
      await recordVersion(root, stateDir(folders, skyhook), config.packageName, version, Date.now())
      if (version !== 'uninstalled') return
      await removeStepFlags(root, stateDir(folders, skyhook), config)
      const kept = await uninstallRootDir(root, rootDirRecordFile(folders, skyhook, name))
      if (kept.length > 0) log.info({ skyhook, package: name, kept }, 'files of root_dir left on the host: changed, or there before')
    },

    async collect(journal) {
      for (const [skyhook, { uid, packages }] of Object.entries(journal.skyhooks)) {
        const used = Object.values(packages).flatMap(({ name, version, work }) =>
          work ? [copyDir(folders, { skyhook, skyhookUid: uid, generation: work.generation, name, version })] : [],
        )
        await collectCopyDirs(root, folders, skyhook, new Set(used))
      }
    },
  }
}
