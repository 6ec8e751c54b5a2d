import type { BusConnection } from '../../../host/dbus/reconnecting.ts'
import type { HostRoot } from '../../../host/fs/host-root.ts'
import type { StepHost } from '../../../host/step/files.ts'
import { type StepStartError, startStepUnit } from '../../../host/step/start.ts'
import type { Units } from '../../../host/systemd/units.ts'
import { ensureCopyDir, nodeMetadata } from '../../../packages/install/copy-dir.ts'
import { rootDirRecordFile } from '../../../packages/install/root-dir-record.ts'
import { type InstalledRootDir, installRootDir } from '../../../packages/install/root-dir.ts'
import { copyDir, type HostFolders, type PackageInstance, stateDir } from '../../../packages/layout.ts'
import { publishStart } from '../../../packages/operator-compat/flags.ts'
import { missingConfigFiles, stepPaths } from '../../../packages/step/load-package.ts'
import type { ReferencePort } from '../../../packages/step/references.ts'
import type { Clock } from '../../../schemas/clock.ts'
import { type Journal, openSteps } from '../../../schemas/journal.ts'
import type { StepAttempt } from '../../../schemas/package-record.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import { stepRunningMessage, stepStartedMessage } from '../../../schemas/step-log.ts'
import { version } from '../../../schemas/version.ts'
import type { StartStep } from '../../../stages/model/plan.ts'
import type { AttemptObservation } from '../../../stages/model/snapshot.ts'
import type { FailureBook } from '../../failures/book.ts'
import type { Settings } from '../../settings/settings.ts'
import type { HostSource } from '../../state/host.ts'
import type { NodeSource } from '../../state/node.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { createEndedSteps, startFields, stepOfLine } from './ended-steps.ts'
import { createAttempts, startStepObserver } from './observe.ts'
import { createStepOutput } from './output.ts'
import { createStepRecords, type StepRecords } from './record.ts'
import { buildStepRequest } from './request.ts'

/** Runs steps of packages on the host: starts each once, finds it again, stops and records it. */
export type StepRunner = StepRecords & {
  start(action: StartStep): Promise<void>
  stop(step: StepAttempt): Promise<void>
  observeOpen(): Promise<void>
  /** By attempt id. */
  attempts(): ReadonlyMap<string, AttemptObservation>
  /** Steps continue. Resolves when the printed amount of their output is stored. */
  close(): Promise<void>
}

export type StepPorts = {
  readonly root: HostRoot
  readonly units: Units
  readonly connection: BusConnection
  readonly hostSource: HostSource
  readonly node: NodeSource['current']
  readonly journal: () => Journal
  readonly settings: Pick<Settings, 'copyDirRoot' | 'agentLogRoot' | 'stepLogLimitBytes' | 'fieldValues'>
  readonly references: ReferencePort
  /** Folder on the host with the unpacked content of an image. */
  readonly contentOf: (digest: string) => string
  readonly failures: Pick<FailureBook, 'record' | 'clear'>
  readonly metrics: Metrics
  readonly clock: Clock
  readonly log: Log
  readonly wake: () => void
}

/** A unit that still runs this long after a stop request gets another one. Longer than most units need to stop. */
const stopRepeatMs = 60_000

export function startStepRunner(ports: StepPorts): StepRunner {
  const { root, units, settings: folders, contentOf, clock, log } = ports
  const host: StepHost = { root, units }
  const endedSteps = createEndedSteps({ root, log })
  const output = createStepOutput({ host, clock, log, logLimitBytes: folders.stepLogLimitBytes })
  const attempts = createAttempts((id) => {
    const of = stepOfLine(ports.journal(), id)
    if (of) output.follow(of)
  })
  const observer = startStepObserver({ ...ports, host, attempts })
  const startsUnderWay = new Map<string, Promise<void>>()

  /** The attempt cannot run: its outcome is known without a unit. */
  function recordStartFailure(id: string, detail: string): void {
    attempts.ended(id, { outcome: 'failed-to-start', detail })
  }

  function logStart(step: StepAttempt, message: string): void {
    const of = stepOfLine(ports.journal(), step.id)
    if (of) log.info({ ...of, ...startFields(step, clock) }, message)
  }

  async function start(action: StartStep): Promise<void> {
    const { attempt, record, view } = action
    await observer.observe(attempt)
    if (attempts.isCanceled(attempt.id) || attempts.stateOf(attempt.id) !== 'absent') return
    const { digest, generation } = record.work
    const source = { store: contentOf(digest), digest, node: ports.node() }
    const { name: skyhook, uid: skyhookUid } = view.metadata
    const instance: PackageInstance = {
      skyhook,
      skyhookUid,
      generation,
      name: record.name,
      version: record.version,
    }
    const built = await buildStepRequest(
      {
        clock: ports.clock,
        root,
        units,
        folders,
        references: ports.references,
        fields: folders.fieldValues,
        whyUnfit: ports.hostSource.checkFitness,
        prepareFiles: async () =>
          action.needsCopyDir
            ? await ensureStageFiles({ root, folders, log }, source, instance, action)
            : { outcome: 'ready' },
      },
      instance,
      action,
    )
    if (built.outcome === 'refused') return recordStartFailure(attempt.id, built.why)
    if (attempts.isCanceled(attempt.id)) return
    const started = await startStepUnit(host, built.request)
    if (started.started) {
      if (!started.found) logStart(attempt, stepStartedMessage)
      // its end may have been observed already
      if (attempts.stateOf(attempt.id) === 'absent') attempts.running(attempt.id)
      if (started.found) await observer.observe(attempt)
      if (action.needsCopyDir) await publishStart(root, stateDir(folders, skyhook))
      return
    }
    const { kind, cause } = started.error
    if (kind === 'invalid' || kind === 'refused') recordStartFailure(attempt.id, refusalText(attempt, started.error))
    else throw cause // not the step's fault: requested again after its state was observed
  }

  /** Requests the stop. systemd then stops the unit within its TimeoutStopUSec. */
  async function requestStop({ id, unit }: StepAttempt): Promise<void> {
    const nowMs = ports.clock.steadyMs()
    if (nowMs < (attempts.stopRequestedAtMs(id) ?? -Infinity) + stopRepeatMs) return
    if (await host.units.stop(unit)) attempts.stopRequested(id, nowMs)
  }

  return {
    ...createStepRecords({ ...ports, host, folders, attempts, output, endedSteps }),
    attempts: () => attempts.current(),
    async observeOpen() {
      await endedSteps.repeat()
      await observer.observeOpen()
      for (const step of openSteps(ports.journal()))
        if (attempts.stateOf(step.id) === 'running') logStart(step, stepRunningMessage)
    },
    async close() {
      observer.close()
      await output.close()
    },

    /** The journal has the intent. An existing unit is found and never started twice. */
    async start(action) {
      const { id } = action.attempt
      if (attempts.isCanceled(id)) return
      const started = start(action).finally(() => startsUnderWay.delete(id))
      startsUnderWay.set(id, started)
      await started
    },

    async stop(step) {
      attempts.cancel(step.id)
      // Without this wait, systemd could answer that there is nothing to stop, and then start the unit of an unanswered
      // request. systemd processes requests in order: after a start that was never answered, its answer to the stop
      // refers to the started unit.
      await startsUnderWay.get(step.id)?.catch(ignoreError)
      await requestStop(step)
      await observer.observe(step)
      if (attempts.stateOf(step.id) === 'absent')
        attempts.ended(step.id, { outcome: 'failed-to-start', detail: 'stopped before it started' })
    },
  }
}

/** systemd's message about a failed start, with a remedy if settings of the host contradict the unit. */
function refusalText({ unit }: StepAttempt, { message, isUnitNameTaken }: StepStartError): string {
  if (!isUnitNameTaken) return message
  const remedy = `correct the drop-in for services that contradicts it; \`journalctl -u ${unit}\` names the setting`
  return `systemd: ${message}: ${remedy}`
}

const ignoreError = (): void => undefined // its own caller handles the error

type StageFiles = { readonly outcome: 'ready' } | { readonly outcome: 'refused'; readonly why: string }

/** The package's unpacked content with its digest, and the Node for the facts in the copy dir. */
type StageSource = {
  readonly store: string
  readonly digest: string
  readonly node: KubernetesNode | undefined
}

/**
 * Installs the files of a stage on the host: the copy dir with configuration and facts of the node, and the package's
 * root_dir over the host's root. Runs once per stage, because steps may change the files. Rejects for errors of the
 * disk.
 */
async function ensureStageFiles(
  { root, folders, log }: { readonly root: HostRoot; readonly folders: HostFolders; readonly log: Log },
  { store, digest, node }: StageSource,
  instance: PackageInstance,
  action: StartStep,
): Promise<StageFiles> {
  const { attempt, config, spec, view, stage } = action
  const dir = copyDir(folders, instance)
  const { labels, annotations } = node?.metadata ?? {}
  const ensured = await ensureCopyDir({
    host: root,
    store,
    digest,
    copyDir: dir,
    stepPaths: stepPaths(config).keys(),
    configMap: spec.configMap ?? {},
    nowMs: attempt.startedAtMs,
    nodeMetadata: nodeMetadata({ labels, annotations, agentVersion: version, packages: view.spec.packages ?? {} }),
  })
  if (ensured.outcome === 'invalid') return { outcome: 'refused', why: ensured.problems.join('; ') }
  if (stage !== 'uninstall') {
    const installed = await installRootDir(root, store, rootDirRecordFile(instance.skyhook, instance.name))
    if (installed.outcome === 'conflict') return { outcome: 'refused', why: installed.problems.join('; ') }
    logInstalled(log, instance, installed)
  }
  const missing = await missingConfigFiles(root, dir, config, attempt.mode)
  if (missing.length > 0)
    return { outcome: 'refused', why: `the package expects ${missing.join(', ')} in the configMap of the Skyhook` }
  return { outcome: 'ready' }
}

/** The most paths in a log line; their folders indicate the rest. */
const maxLoggedPaths = 20

function logInstalled(log: Log, { skyhook, name }: PackageInstance, installed: InstalledRootDir): void {
  const of = { skyhook, package: name }
  if (installed.outcome === 'restored')
    log.warn(
      { ...of, count: installed.paths.length, paths: installed.paths.slice(0, maxLoggedPaths) },
      'files of root_dir were missing on the host, restored them',
    )
  if (installed.outcome !== 'restored' && installed.outcome !== 'copied') return
  for (const { owner, paths } of installed.disputes)
    log.warn(
      { ...of, other: owner, count: paths.length, paths: paths.slice(0, maxLoggedPaths) },
      'another package has files of root_dir with different content; the host has the files of this package',
    )
}
