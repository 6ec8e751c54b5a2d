import type { BusConnection } from '../../../host/dbus/reconnecting.ts'
import type { HostRoot } from '../../../host/fs/host-root.ts'
import type { StepHost } from '../../../host/step/files.ts'
import { startStepUnit, stopStepUnit } from '../../../host/step/start.ts'
import type { Units } from '../../../host/systemd/units.ts'
import { publishStart } from '../../../packages/operator-compat/flags.ts'
import { type HostFolders, type PackageInstance, stateDir } from '../../../packages/layout.ts'
import type { ReferencePort } from '../../../packages/step/references.ts'
import type { StepAttempt } from '../../../schemas/journal.ts'
import type { StartStep } from '../../../stages/model/plan.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Settings } from '../../settings/settings.ts'
import type { State } from '../../state/state.ts'
import { ensureStageFiles } from './stage-files.ts'
import { createStepObserver } from './observe.ts'
import { createStepRecords, type StepRecords } from './record.ts'
import { buildStepRequest } from './request.ts'

/** Steps of packages on the host: started once, found again, stopped, put on record. */
export type StepRunner = StepRecords & {
  start(action: StartStep): Promise<void>
  stop(step: StepAttempt): Promise<void>
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
  readonly log: Log
  readonly wake: () => void
}

export function createStepRunner(ports: StepPorts): StepRunner {
  const { root, units, state, settings, contentOf, metrics, log } = ports
  const host: StepHost = { root, units }
  const folders: HostFolders = { copyDirRoot: settings.copyDirRoot, agentLogRoot: settings.agentLogRoot }
  const { nodeName, hostIp, namespace } = settings
  const observer = createStepObserver(host, ports.connection, state, ports.wake)

  /** The attempt cannot run at all: its outcome is known without a unit. */
  function recordStartFailure(id: string, detail: string): void {
    state.attempts.set(id, { state: 'ended', end: { outcome: 'failed-to-start', detail } })
  }

  /** It has not begun and is tried again; meanwhile the node says why. */
  function blockStart(id: string, startBlocker: string): never {
    if (state.attempts.get(id)?.state === 'absent') state.attempts.set(id, { state: 'absent', startBlocker })
    throw new Error(startBlocker)
  }

  return {
    ...createStepRecords({ host, folders, state, contentOf, metrics, log }),
    observeOpen: () => observer.observeOpen(),
    close: () => observer.close(),

    /** The journal has the intent. A unit that is there already is found again, never started twice. */
    async start(action) {
      const { attempt, record, view } = action
      await observer.observe(attempt)
      if (state.attempts.get(attempt.id)?.state !== 'absent' || !record.work) return
      const { name: skyhook, uid: skyhookUid } = view.metadata
      const instance: PackageInstance = {
        skyhook,
        skyhookUid,
        generation: record.work.generation,
        name: record.name,
        version: record.version,
      }
      const store = contentOf(record.work.digest)
      const built = await buildStepRequest(
        {
          root,
          folders,
          references: ports.references,
          fields: { nodeName, hostIp, namespace },
          prepareFiles: async () =>
            action.needsCopyDir
              ? await ensureStageFiles(root, folders, { store, state }, instance, action)
              : { outcome: 'ready' },
        },
        instance,
        action,
      )
      if (built.outcome === 'refused') return recordStartFailure(attempt.id, built.why)
      if (built.outcome === 'blocked') return blockStart(attempt.id, built.why)
      if (state.attempts.get(attempt.id)?.state !== 'absent') return // stopped meanwhile
      const started = await startStepUnit(host, built.request)
      if (started.started) {
        if (state.attempts.get(attempt.id)?.state === 'absent') state.attempts.set(attempt.id, { state: 'running' }) // its end may have been seen already
        if (started.found) await observer.observe(attempt)
        if (action.needsCopyDir) await publishStart(root, stateDir(folders, skyhook))
        return
      }
      const { kind, message, isUnitNameTaken } = started.error
      if (isUnitNameTaken)
        state.attempts.set(attempt.id, { state: 'ended', end: { outcome: 'unknown', detail: message } })
      else if (kind === 'invalid' || kind === 'refused') recordStartFailure(attempt.id, message)
      else {
        // Not the step's fault: the steps before it must not run again for it.
        if (kind === 'host' || kind === 'stopping') return blockStart(attempt.id, message)
        throw new Error(message) // asked again; the look before it tells what became of this
      }
    },

    async stop(step) {
      await stopStepUnit(host, step.unit)
      await observer.observe(step)
      if (state.attempts.get(step.id)?.state === 'absent')
        state.attempts.set(step.id, { state: 'ended', end: { outcome: 'killed', signal: 'TERM' } }) // and `start` does not begin it any more
    },
  }
}
