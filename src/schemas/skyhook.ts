import type { EnvVar, LabelSelector, ObjectMeta, Toleration } from './kubernetes.ts'

/** The Skyhook resource (SCR) as the API server stores it; the CRD in crds/ is the authority on what is legal. */
export type Skyhook = {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: ObjectMeta
  readonly spec: SkyhookSpec
  readonly status?: Readonly<Record<string, unknown>>
}

export type SkyhookSpec = {
  readonly serial?: boolean
  readonly podNonInterruptLabels?: LabelSelector
  readonly nodeSelectors?: LabelSelector
  readonly deploymentPolicy?: string
  readonly deploymentPolicyOptions?: { readonly resetBatchStateOnCompletion?: boolean | null }
  readonly interruptionBudget?: InterruptionBudget
  readonly packages?: Readonly<Record<string, PackageSpec>>
  readonly additionalTolerations?: readonly Toleration[]
  readonly runtimeRequired?: boolean
  readonly autoTaintNewNodes?: boolean
  readonly priority?: number
  readonly drain?: DrainSpec
  readonly pace?: { readonly minReadySeconds?: number; readonly pauseSeconds?: number }
  readonly bootstrap?: { readonly count?: number }
}

export type InterruptionBudget = {
  readonly percent?: number | null
  readonly count?: number | null
  readonly maxCount?: number
}

export type DrainSpec = {
  readonly cordon?: 'early' | 'late'
  readonly yieldAfterSeconds?: number
  readonly timeoutSeconds?: number
  readonly onTimeout?: 'wait' | 'release' | 'delete'
  readonly singleNode?: 'drain' | 'skip'
}

export type PackageSpec = {
  readonly name?: string
  readonly version: string
  readonly image: string
  readonly containerSHA?: string
  readonly interrupt?: Interrupt
  readonly dependsOn?: Readonly<Record<string, string>>
  readonly configInterrupts?: Readonly<Record<string, Interrupt>>
  readonly configMap?: Readonly<Record<string, string>>
  readonly env?: readonly EnvVar[]
  readonly resources?: PackageResources
  readonly gracefulShutdown?: string
  readonly stageTimeout?: string
  readonly uninstall?: { readonly enabled?: boolean; readonly apply?: boolean }
  /** The package's status file may ask for a run of config; absent = it is not listened to. */
  readonly rerunOnRequest?: { readonly minInterval: string }
}

export type PackageResources = {
  readonly cpuRequest?: string | number
  readonly cpuLimit?: string | number
  readonly memoryRequest?: string | number
  readonly memoryLimit?: string | number
}

export type InterruptType = 'service' | 'reboot' | 'noop' | 'restartAllServices'
export type Interrupt = {
  readonly type: InterruptType
  readonly services?: readonly string[]
  /** `required`: only if the package says so in its status file when config has passed. Absent means always. */
  readonly when?: 'always' | 'required'
}

/** Stages in the operator's words; they are published on the Node. */
export const stageNames = ['uninstall', 'apply', 'upgrade', 'config', 'interrupt', 'post-interrupt'] as const
export type StageName = (typeof stageNames)[number]

/** State of one package entry on a Node, published. `unknown`: its uninstall was given up. */
export const entryStates = ['complete', 'in_progress', 'skipped', 'erroring', 'unknown'] as const
export type EntryState = (typeof entryStates)[number]

/** Status of one Skyhook on one Node, published as annotation and label. */
export const nodeStatuses = [
  'unknown',
  'complete',
  'blocked',
  'waiting',
  'disabled',
  'paused',
  'in_progress',
  'erroring',
] as const
export type NodeStatus = (typeof nodeStatuses)[number]

/** What the holder of a slot is doing, as its Lease says. */
export const slotPhases = [
  'preparing',
  'cordoning',
  'protected-pods',
  'draining',
  'working',
  'interrupting',
  'rebooting',
  'failed',
  'soaking',
  'finished',
] as const
export type SlotPhase = (typeof slotPhases)[number]

/**
 * The work under the slot is complete, and the slot is kept for the sake of others: it takes capacity, and nothing may
 * be done under it. New work needs a new admission.
 */
export const isPastWork = (phase: string): boolean => phase === 'soaking' || phase === 'finished'
