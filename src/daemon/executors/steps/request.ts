import type { HostRoot } from '../../../host/fs/host-root.ts'
import type { Units } from '../../../host/systemd/units.ts'
import type { StepUnitRequest } from '../../../host/step/start.ts'
import { whyNotExecutable } from '../../../packages/step/load-package.ts'
import { composeStep, isSwitchedOn } from '../../../packages/step/environment.ts'
import { type HostFolders, type PackageInstance, copyDir, scriptsDir } from '../../../packages/layout.ts'
import {
  claimLogFiles,
  ensureTemporaryLogFolder,
  packageLogDir,
  temporaryLogFiles,
} from '../../../packages/step/log-files.ts'
import {
  type FieldValues,
  type ReferencePort,
  formatMissing,
  resolveReferences,
} from '../../../packages/step/references.ts'
import { type Clock, toWallMs } from '../../../schemas/clock.ts'
import { propertiesOf, stepUnitRequest } from '../../../packages/step/unit-request.ts'
import { durationMs } from '../../../schemas/time.ts'
import type { StartStep } from '../../../stages/model/plan.ts'
import { UnfitHostError } from '../../failures/reason-of.ts'
import type { StepLogNote } from './observe.ts'

/** Time between SIGTERM and SIGKILL of a stopped step, unless the package sets it. */
const defaultGracefulShutdownMs = 30_000

export type BuildOutcome =
  | { readonly outcome: 'built'; readonly request: StepUnitRequest & { readonly note: string } }
  /** The attempt cannot run. Its failure message contains `why`. */
  | { readonly outcome: 'refused'; readonly why: string }

export type RequestPorts = {
  readonly clock: Clock
  readonly root: HostRoot
  readonly units: Pick<Units, 'version'>
  readonly folders: HostFolders
  readonly references: ReferencePort
  readonly fields: FieldValues
  /** Checks the host. Returns why nothing may start there. */
  readonly whyUnfit: () => Promise<string | undefined>
  /** Called when the package's files are needed; see run.ts. */
  readonly prepareFiles: () => Promise<
    { readonly outcome: 'ready' } | { readonly outcome: 'refused'; readonly why: string }
  >
}

/**
 * Builds the unit of a step: resolves references, composes the environment, installs files and creates logs. Rejects
 * for failures that are not the step's fault, such as those of the API server or the host.
 */
export async function buildStepRequest(
  ports: RequestPorts,
  instance: PackageInstance,
  action: StartStep,
): Promise<BuildOutcome> {
  const { root, folders } = ports
  const { attempt, spec, step, config } = action
  const unfitness = action.needsCopyDir ? await ports.whyUnfit() : undefined
  if (unfitness !== undefined) throw new UnfitHostError(unfitness)
  const resolved = await resolveReferences({
    env: spec.env ?? [],
    resources: spec.resources,
    fields: ports.fields,
    port: ports.references,
    systemdVersion: async () => await ports.units.version(),
  })
  if (resolved.outcome === 'missing') return refused(formatMissing(resolved.references))
  if (resolved.outcome === 'invalid') return refused(resolved.problems.join('; '))
  const { previousVersion } = action
  const composed = composeStep({
    config,
    mode: attempt.mode,
    step,
    instance,
    folders,
    variables: resolved.variables,
    previousVersion,
  })
  if (composed.outcome === 'missing') {
    return refused(`the step's arguments refer to ${composed.variables.join(', ')}: set it in the package's env`)
  }
  const requested = propertiesOf(spec)
  if (requested.outcome === 'invalid') return refused(requested.problems.join('; '))
  const timeoutMs = remainingMs(action, ports.clock.steadyMs())
  if (timeoutMs !== undefined && timeoutMs <= 0)
    return refused(`the package's stageTimeout ${spec.stageTimeout} is used up`)

  const startedAtWallMs = toWallMs(ports.clock, attempt.startedAtMs)
  const keepsLogs = isSwitchedOn(resolved.variables, 'SKYHOOK_AGENT_WRITE_LOGS', true)
  const [files, prepared, isSelinuxEnforcing] = await Promise.all([
    keepsLogs
      ? claimLogFiles(root, packageLogDir(folders, instance.skyhook, config), step.path, startedAtWallMs, {
          skyhook: instance.skyhook,
          package: instance.name,
        })
      : ensureTemporaryLogFolder(root, folders).then(() => temporaryLogFiles(folders, attempt.id)),
    ports.prepareFiles(),
    enforcesSelinux(root),
  ])
  if (prepared.outcome === 'refused') return refused(prepared.why)
  const dir = copyDir(folders, instance)
  const whyNot = await whyNotExecutable(root, `${scriptsDir(dir)}/${step.path}`, composed.environment['PATH'] ?? '')
  if (whyNot !== undefined) return refused(whyNot)
  const request = stepUnitRequest({
    attempt,
    instance,
    step,
    composed,
    copyDir: dir,
    logs: files,
    properties: requested.properties,
    timeoutMs,
    stopTimeoutMs: durationMs(spec.gracefulShutdown ?? '') ?? defaultGracefulShutdownMs,
    isSelinuxEnforcing,
  })
  const note: StepLogNote = { files, secrets: resolved.secrets }
  return { outcome: 'built', request: { ...request, note: JSON.stringify(note) } }
}

const refused = (why: string): BuildOutcome => ({ outcome: 'refused', why })

/** The rest of the stage's time; each unit of an attempt gets what is left. */
function remainingMs({ spec, stageStartedAtMs }: StartStep, nowMs: number): number | undefined {
  const total = spec.stageTimeout === undefined ? undefined : durationMs(spec.stageTimeout)
  return total === undefined ? undefined : Math.min(total, stageStartedAtMs + total - nowMs)
}

async function enforcesSelinux(root: HostRoot): Promise<boolean> {
  const enforce = '/sys/fs/selinux/enforce'
  return (await root.stat(enforce)) !== undefined && (await root.readFile(enforce)).toString().trim() === '1'
}
