/** A package that has failed, as far as the Node says what became of it, and when it is tried again. */
import type {
  PackageFacts,
  PackageRecord,
  PendingInterrupt,
  RetryingPackage,
  StageAttempt,
  StageFailure,
} from '../../../schemas/package-record.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import { type Stage, stagesWithSteps } from '../../../schemas/package-config.ts'
import { packageReasonsOf } from '../../../schemas/published.ts'
import type { PackageSpec, StageName } from '../../../schemas/skyhook.ts'
import { pendingForSpec } from '../../../stages/interrupt/pending.ts'
import { packageKey } from '../../../stages/model/snapshot.ts'
import { attemptInputsHash } from '../../../stages/package/start-stage.ts'
import { type Evidence, withoutPackage } from './evidence.ts'

/** By key of the package: when the agent tries again what has failed. */
export type NextTries = ReadonlyMap<string, number>

export const nextTriesOf = (node: KubernetesNode, skyhook: string): NextTries =>
  new Map(
    [...packageReasonsOf(node, skyhook).values()].flatMap(({ package: about, nextTryMs }) =>
      about && nextTryMs !== undefined ? [[packageKey(about.name, about.version), nextTryMs] as const] : [],
    ),
  )

type Context = { readonly nowMs: number; readonly nextTries: NextTries; readonly evidence: readonly Evidence[] }

/** In one of its stages. */
export function failedPackage(
  started: PackageFacts & { readonly work: NonNullable<PackageRecord['work']> },
  { stage, asked }: { readonly stage: Stage; readonly asked: PackageSpec | undefined },
  context: Context,
): PackageRecord {
  const attempt: StageAttempt = { number: started.restarts, startedAtMs: context.nowMs, steps: [], inputs: '' }
  const retry = retryOf(started, stage, context)
  const record: RetryingPackage = { ...started, progress: { state: 'retrying', stage, attempt, ...retry } }
  // assumed to be of this spec: an edit would end the pause
  const inputs = attemptInputsHash(record, asked)
  const met = stage === 'post-interrupt' && asked?.version === started.version && metBy(record, asked)
  return {
    ...record,
    ...(met && { metInterrupt: met }),
    progress: { ...record.progress, attempt: { ...attempt, inputs } },
  }
}

/** Also where the operator carried it out. */
export const failedInterrupt = (started: PackageFacts, context: Context): PackageRecord => ({
  ...started,
  progress: { state: 'retrying', stage: 'interrupt', ...retryOf(started, 'interrupt', context) },
})

/** Where the Node names no next attempt, or one that has passed, it is due in a moment. */
const retryOf = (started: PackageFacts, stage: StageName, { nowMs, nextTries, evidence }: Context) => ({
  retryAtMs: Math.max(nowMs + 1, nextTries.get(packageKey(started.name, started.version)) ?? 0),
  failure: failureOf(started, stage, evidence),
})

/** The interrupt that a package has behind it: had the spec asked for another one, the agent would have returned to it. */
function metBy(record: RetryingPackage, spec: PackageSpec): PendingInterrupt | undefined {
  const any = { interrupt: { type: 'noop' } } as const
  const met = pendingForSpec({ ...record, pendingInterrupt: any }, spec)
  return met ?? pendingForSpec({ ...record, pendingInterrupt: { ...any, requiredInBoot: '' } }, spec)
}

/** Why it fails, with the agent's message if there is one. */
function failureOf({ name, restarts }: PackageFacts, stage: StageName, evidence: readonly Evidence[]): StageFailure {
  const isFailure = (reason: string): reason is StageFailure['reason'] =>
    stage === 'interrupt'
      ? reason === 'RebootRefused' || reason === 'StepFailed'
      : reason === 'StepFailed' || reason === 'CheckFailed'
  for (const { reason, message, code, package: about } of evidence) {
    if (!isFailure(reason) || (about !== undefined && about !== name)) continue
    return { reason, message: withoutPackage(message), ...(code && { code }) }
  }
  const times = restarts > 1 ? `${restarts} times` : 'once'
  return { reason: 'StepFailed', message: `stage ${stage} failed ${times}; the node no longer reports why` }
}

export const isStage = (stage: StageName): stage is Stage => stagesWithSteps.some((one) => one === stage)
