import type {
  ConfigRecord,
  PackageInputs,
  PackageRecord,
  RetryingPackage,
  StageAttempt,
} from '../../schemas/package-record.ts'
import type { Stage } from '../../schemas/package-config.ts'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import { pendingForStage } from '../interrupt/pending.ts'
import { immutableInputsHash, inputsHash, inputsOf, keysOfConfigChange } from '../model/package-inputs.ts'
import { isLeftBehind, type ReadyPreparation } from '../model/package-state.ts'
import { type PlanBuilder, setEntry } from '../model/plan-builder.ts'
import { beginStage, retryStage } from '../model/transitions.ts'

type StageInput = {
  readonly entry: PackageRecord
  readonly spec: PackageSpec | undefined
  readonly stage: Stage
  readonly prepared: ReadyPreparation
  /** Made from the spec, not from the inputs of an earlier stage of this version. */
  readonly isNewWork: boolean
}

/** The first attempt of a stage: from here on the package counts as started in the journal. */
export function startStage(builder: PlanBuilder, { entry, spec, stage, prepared, isNewWork }: StageInput): void {
  const { generation = 0 } = builder.view.metadata
  const { digest, config } = prepared
  const isConfigChange = stage === 'config' && entry.config?.finished && entry.progress.state === 'complete'
  const work = {
    digest,
    generation: isNewWork || isConfigChange || entry.work === undefined ? generation : entry.work.generation,
    inputs: spec ? immutableInputsHash(spec) : (entry.work?.inputs ?? immutableInputsHash(ownSpec(entry))),
    packageName: config.packageName,
    packageVersion: config.packageVersion,
  }
  const isInstall = stage === 'apply' || stage === 'upgrade'
  const carried = isInstall ? withoutRequirement(entry.pendingInterrupt) : entry.pendingInterrupt
  const started = beginStage(entry, {
    stage,
    work: stage === 'uninstall' && entry.work ? entry.work : work,
    attempt: newAttempt(builder, 1, attemptInputsHash(entry, spec)),
    config: isInstall ? withoutFinished(entry.config) : configAtStart(entry, spec, stage),
    pendingInterrupt: pendingForStage(entry, spec, stage) ?? carried,
    uninstallInputs: uninstallInputsAtStart(entry, spec, stage),
    spec,
  })
  setEntry(builder, started)
}

/** The next attempt of a failed stage. With another configuration it counts as the first one. */
export function retryFailedStage(builder: PlanBuilder, entry: RetryingPackage, spec: PackageSpec | undefined): void {
  const { stage, attempt } = entry.progress
  const retried = retryStage(entry, {
    ...(spec && isEdited(entry, spec) && { restarts: 0, failingSinceMs: undefined }),
    attempt: newAttempt(builder, attempt.number + 1, attemptInputsHash(entry, spec)),
    config: configAtStart(entry, spec, stage),
    pendingInterrupt: stage === 'config' ? pendingForStage(entry, spec, stage) : entry.pendingInterrupt,
    uninstallInputs: spec && !runsConfig(stage) && isEdited(entry, spec) ? inputsOf(spec) : entry.uninstallInputs,
  })
  setEntry(builder, retried)
}

/** The package's configuration in the spec has changed since the attempt started. */
const isEdited = (entry: RetryingPackage, spec: PackageSpec): boolean =>
  attemptInputsHash(entry, spec) !== entry.progress.attempt.inputs

/** The spec changed the fixed inputs of a started package. */
export const isSuperseded = (entry: PackageRecord, spec: PackageSpec): boolean =>
  entry.progress.stage !== 'uninstall' &&
  entry.work !== undefined &&
  entry.version === spec.version &&
  entry.work.inputs !== immutableInputsHash(spec)

export const attemptInputsHash = ({ config }: PackageRecord, spec: PackageSpec | undefined): string =>
  inputsHash(spec ? inputsOf(spec) : (config?.finished ?? config?.started ?? { config: {}, env: [] }))

const newAttempt = (builder: PlanBuilder, number: number, inputs: string): StageAttempt => ({
  number,
  startedAtMs: builder.snapshot.nowMs,
  steps: [],
  inputs,
})

/** What an entry records of a `config` that starts with this spec, at any attempt. */
function configAtStart(entry: PackageRecord, spec: PackageSpec | undefined, stage: Stage): ConfigRecord | undefined {
  if (stage !== 'config' || !spec) return entry.config
  return {
    started: inputsOf(spec),
    finished: entry.config?.finished,
    changedKeys: keysOfConfigChange(entry, spec),
    interrupts: spec.configInterrupts ?? entry.config?.interrupts,
  }
}

/**
 * Until its config starts, a package is uninstalled with the configuration of its apply; from then on with that of its
 * config, unless it is edited. A package left behind has failed with its own.
 */
function uninstallInputsAtStart(
  entry: PackageRecord,
  spec: PackageSpec | undefined,
  stage: Stage,
): PackageInputs | undefined {
  if (runsConfig(stage)) return undefined
  const isReplaced = stage !== 'uninstall' || isLeftBehind(entry)
  return spec && isReplaced ? inputsOf(spec) : entry.uninstallInputs
}

const runsConfig = (stage: Stage): boolean => stage === 'config' || stage === 'post-interrupt'

/** A package that is installed again was never complete; its last configuration is still on the host. */
const withoutFinished = (config: ConfigRecord | undefined): ConfigRecord | undefined =>
  config && { ...config, finished: undefined, changedKeys: [] }

const withoutRequirement = (pending: PackageRecord['pendingInterrupt']): PackageRecord['pendingInterrupt'] =>
  pending && { interrupt: pending.interrupt }

const ownSpec = ({ version, image }: PackageRecord): PackageSpec => ({ version, image })
