import type { BusConnection } from '../../host/bus-connection.ts'
import { readBootId } from '../../host/identity.ts'
import type { HostRoot } from '../../host/root.ts'
import { observeStepUnit } from '../../host/step-observation.ts'
import { readStepNote, stepFiles } from '../../host/step-files.ts'
import type { StepHost } from '../../host/step-files.ts'
import { forgetStepUnit, startStepUnit, stopStepUnit } from '../../host/step-unit.ts'
import type { Units } from '../../host/units.ts'
import { missingConfigFiles, stepPaths, whyNotExecutable } from '../../packages/config.ts'
import { ensureCopyDir } from '../../packages/copy-dir.ts'
import { composeStep, isSwitchedOn } from '../../packages/environment.ts'
import { publishCheckResults, publishStart, publishStepFlag } from '../../packages/flags.ts'
import { recordVersion } from '../../packages/history.ts'
import type { HostFolders, PackageInstance } from '../../packages/layout.ts'
import { copyDir, scriptsIn, stateDir } from '../../packages/layout.ts'
import { failureTail } from '../../packages/log-tail.ts'
import type { LogFiles } from '../../packages/logs.ts'
import { claimLogFiles, ensureUnkeptLogFolder, packageLogDir, pruneLogs, unkeptLogFiles } from '../../packages/logs.ts'
import type { FieldValues, ReferencePort } from '../../packages/references.ts'
import { resolveReferences } from '../../packages/references.ts'
import { nodeMetadata } from '../../packages/node-metadata.ts'
import { limitsOf, stepUnitRequest } from '../../packages/step.ts'
import { openSteps } from '../../schemas/journal.ts'
import type { StepAttempt } from '../../schemas/journal.ts'
import { isCheck } from '../../schemas/package-config.ts'
import type { Mode } from '../../schemas/package-config.ts'
import { durationMs } from '../../packages/duration.ts'
import type { Action, StartStep } from '../../stages/plan.ts'
import type { Metrics } from '../metrics.ts'
import type { Settings } from '../settings.ts'
import type { State } from '../state.ts'
import { version } from '../version.ts'

/** What stops a step that was asked to end: TERM, and KILL after this, unless the package says otherwise. */
const defaultGracefulShutdownMs = 30_000
/** Signals can be lost with a bus; whatever runs is looked at this often besides. */
const lookEveryMs = 10_000

/** A host that has not gone down within this was not going to. */
const shutdownTakesMs = 300_000

export type StepRunner = {
  start(action: StartStep): Promise<void>
  stop(step: StepAttempt): Promise<void>
  recordStep(action: Extract<Action, { do: 'recordStep' }>): Promise<void>
  recordChecks(action: Extract<Action, { do: 'recordChecks' }>): Promise<void>
  recordHistory(action: Extract<Action, { do: 'recordHistory' }>): Promise<void>
  /** Looks at every attempt that the journal has open; before the first decision, and whenever signals may have been missed. */
  observeOpen(): Promise<void>
  close(): void
}

export type StepPorts = {
  readonly root: HostRoot
  readonly units: Units
  readonly connection: BusConnection
  readonly state: State
  readonly settings: Settings
  readonly references: ReferencePort
  /** Folder on the host with the unpacked content of an image. */
  readonly contentOf: (digest: string) => string
  readonly metrics: Metrics
  readonly wake: () => void
}

/** Where an attempt writes, and what must not be quoted from there. */
type LogNote = { readonly files: LogFiles; readonly secrets: readonly string[] }

export function createStepRunner(ports: StepPorts): StepRunner {
  const { root, units, state, settings } = ports
  const host: StepHost = { root, units }
  const folders: HostFolders = { copyDirRoot: settings.copyDirRoot, agentLogRoot: settings.agentLogRoot }
  const goingDown = new Map<string, number>()

  async function observe(step: StepAttempt): Promise<void> {
    const seen = await observeStepUnit(host, { id: step.id, unit: step.unit, bootId: step.bootId })
    const before = state.attempts.get(step.id)
    if (before?.state === 'ended') return
    if (seen.state === 'ended' && seen.hostStopping && step.bootId === state.bootId && isGoingDown(step))
      state.attempts.set(step.id, { state: 'running' })
    else if (seen.state === 'ended') {
      const failed = seen.result.outcome !== 'exited' || seen.result.code !== 0
      const logTail = failed ? await tailOfAttempt(step) : undefined
      const end = seen.hostStopping ? ({ outcome: 'unknown', detail: 'the host was going down when it ended' } as const) : seen.result
      state.attempts.set(step.id, { state: 'ended', end, ...(logTail && { logTail }) })
    } else state.attempts.set(step.id, { state: seen.state })
    ports.wake()
  }

  /** The end of its log, without secrets: also of an attempt that an agent before this one started. */
  async function tailOfAttempt({ id }: StepAttempt): Promise<string | undefined> {
    const text = await readStepNote(host, id)
    if (text === undefined) return undefined
    const { files, secrets } = JSON.parse(text) as LogNote
    return await failureTail(root, files, secrets)
  }

  /** Whatever the shutdown of the host ended is judged in the next boot; a shutdown that was called off counts after a while. */
  function isGoingDown(step: StepAttempt): boolean {
    const sinceMs = goingDown.get(step.id) ?? Date.now()
    goingDown.set(step.id, sinceMs)
    return Date.now() - sinceMs < shutdownTakesMs
  }

  const offJobs = units.onJobEnd(({ unit }) => {
    const step = openSteps(state.journal).find((open) => open.unit === unit)
    if (step) observe(step).catch(() => undefined) // the bus is away: the look after reconnecting finds it
  })
  const offState = ports.connection.onState((bus) => {
    if (bus.state === 'connected') observeOpen().catch(() => undefined)
  })
  const timer = setInterval(() => void observeOpen().catch(() => undefined), lookEveryMs)
  timer.unref()

  async function observeOpen(): Promise<void> {
    state.bootId = await readBootId(root)
    await Promise.all(openSteps(state.journal).map(observe))
  }

  /** The attempt cannot run at all: its outcome is known without a unit. */
  function refuse(id: string, detail: string): void {
    state.attempts.set(id, { state: 'ended', end: { outcome: 'failed-to-start', detail } })
  }

  async function start(action: StartStep): Promise<void> {
    const { attempt, record, spec, view, step, config } = action
    await observe(attempt)
    if (state.attempts.get(attempt.id)?.state !== 'absent') return
    const work = record.work
    if (!work) return
    const instance: PackageInstance = {
      skyhook: view.metadata.name,
      skyhookUid: view.metadata.uid,
      generation: work.generation,
      name: record.name,
      version: record.version,
    }
    const mode = attempt.mode as Mode
    const resolved = await resolveReferences({
      env: spec.env ?? [],
      resources: spec.resources,
      fields: fieldsOf(settings),
      port: ports.references,
    })
    if (resolved.outcome === 'missing') return refuse(attempt.id, `${resolved.references.join(', ')} missing`)
    if (resolved.outcome === 'invalid') return refuse(attempt.id, resolved.problems.join('; '))
    const composed = composeStep({
      config,
      mode,
      step,
      instance,
      folders,
      variables: resolved.variables,
      previousVersion: action.previousVersion,
    })
    if (composed.outcome === 'missing')
      return refuse(
        attempt.id,
        `the environment lacks ${composed.variables.join(', ')}, which the step's arguments name: set it in the package's env`,
      )
    const limits = limitsOf(spec.resources)
    if (limits.outcome === 'invalid') return refuse(attempt.id, limits.problems.join('; '))
    const timeoutMs =
      spec.stageTimeout === undefined ? undefined : action.stageStartedAtMs + (durationMs(spec.stageTimeout) ?? 0) - Date.now()
    if (timeoutMs !== undefined && timeoutMs <= 0)
      return refuse(attempt.id, `no time of the package's stageTimeout ${spec.stageTimeout} is left`)

    const dir = copyDir(folders, instance)
    const keepsLogs = isSwitchedOn(resolved.variables, 'SKYHOOK_AGENT_WRITE_LOGS', true)
    const { labels, annotations } = state.node?.metadata ?? {}
    const [files, ensured] = await Promise.all([
      keepsLogs
        ? claimLogFiles(root, packageLogDir(folders, instance.skyhook, config), step.path, attempt.startedAtMs)
        : ensureUnkeptLogFolder(root, folders).then(() => unkeptLogFiles(folders, attempt.id)),
      action.fresh
        ? ensureCopyDir({
            host: root,
            store: ports.contentOf(work.digest),
            digest: work.digest,
            copyDir: dir,
            stepPaths: stepPaths(config).keys(),
            configMap: spec.configMap ?? {},
            nodeMetadata: nodeMetadata({ labels, annotations, agentVersion: version, packages: view.spec.packages ?? {} }),
            bootId: attempt.bootId,
          })
        : { outcome: 'ready' as const },
    ])
    if (ensured.outcome === 'invalid') return refuse(attempt.id, ensured.problems.join('; '))
    const missing = action.fresh ? await missingConfigFiles(root, dir, config, mode) : []
    if (missing.length > 0) return refuse(attempt.id, `the package expects ${missing.join(', ')} in the configMap of the Skyhook`)
    const unusable = await whyNotExecutable(root, `${scriptsIn(dir)}/${step.path}`, composed.environment['PATH'] ?? '')
    if (unusable !== undefined) return refuse(attempt.id, unusable)
    const note: LogNote = { files, secrets: resolved.secrets }
    const request = stepUnitRequest({
      attempt,
      step,
      composed,
      copyDir: dir,
      logs: files,
      limits: limits.limits,
      timeoutMs,
      stopTimeoutMs:
        spec.gracefulShutdown === undefined ? defaultGracefulShutdownMs : (durationMs(spec.gracefulShutdown) ?? defaultGracefulShutdownMs),
      selinuxEnforces: false,
    })
    const started = await startStepUnit(host, { ...request, note: JSON.stringify(note) })
    if (started.started) {
      if (state.attempts.get(attempt.id)?.state === 'absent') state.attempts.set(attempt.id, { state: 'running' }) // its end may have been seen already
      if (started.found) await observe(attempt)
      if (action.fresh) await publishStart(root, stateDir(folders, instance.skyhook))
      return
    }
    const { kind, message, nameIsBurnt } = started.error
    if (kind === 'not-connected' || (kind === 'unknown' && !nameIsBurnt)) throw new Error(message) // asked again; the look before it tells what became of this
    if (nameIsBurnt) state.attempts.set(attempt.id, { state: 'ended', end: { outcome: 'unknown', detail: message } })
    else refuse(attempt.id, message)
  }

  return {
    start,

    async stop(step) {
      await stopStepUnit(host, step.unit)
      await observe(step)
    },

    async recordStep({ skyhook, step, config, planned }) {
      const { result, mode } = step
      if (result) ports.metrics.stepEnded(mode, result.result, (result.endedAtMs - step.startedAtMs) / 1000)
      if (result?.result === 'ok' && planned && !isCheck(mode as Mode)) {
        await publishStepFlag(root, stateDir(folders, skyhook), config, planned, result.endedAtMs)
      }
      if (result?.result !== 'skipped') await pruneLogs(root, packageLogDir(folders, skyhook, config), step.path)
      const unkept = unkeptLogFiles(folders, step.id)
      await Promise.all([
        forgetStepUnit(host, step),
        root.remove(stepFiles(host, step.id).record),
        root.remove(unkept.stdout),
        root.remove(unkept.stderr),
      ])
      state.attempts.delete(step.id)
    },

    async recordChecks({ skyhook, mode, steps }) {
      const results = steps.map(({ path, result }) => ({ path, failed: result?.result === 'failed' }))
      await publishCheckResults(root, stateDir(folders, skyhook), mode, results)
    },

    async recordHistory({ skyhook, packageName, version }) {
      await recordVersion(root, stateDir(folders, skyhook), packageName, version, Date.now())
    },

    observeOpen,

    close() {
      offJobs()
      offState()
      clearInterval(timer)
    },
  }
}

const fieldsOf = ({ nodeName, hostIp, namespace }: Settings): FieldValues => ({ nodeName, hostIp, namespace })
