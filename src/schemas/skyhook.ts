import type { Skyhook as Definition } from './generated/definitions.ts'

// Fields come from the definition in crds/, which is the authority on what is legal. What differs from it is said here.

type DefinedSpec = NonNullable<Definition['spec']>
type DefinedPackage = NonNullable<DefinedSpec['packages']>[string]
type DefinedEnvVar = NonNullable<DefinedPackage['env']>[number]
type DefinedSource = NonNullable<DefinedEnvVar['valueFrom']>
type DefinedReference<Name extends keyof DefinedSource> = NonNullable<DefinedSource[Name]>

/**
 * The Skyhook resource (SCR). The spec is never absent: who reads an object puts an empty one in. The status is text of
 * others until somebody looks at it.
 */
export type Skyhook = Omit<Definition, 'spec' | 'status'> & {
  readonly spec: SkyhookSpec
  readonly status?: Readonly<Record<string, unknown>>
}

export type SkyhookSpec = Omit<DefinedSpec, 'packages'> & {
  readonly packages?: Readonly<Record<string, PackageSpec>>
}

/** Without the field that has no effect. */
export type PackageSpec = Omit<DefinedPackage, 'agentImageOverride' | 'env'> & { readonly env?: readonly EnvVar[] }

export type EnvVar = Omit<DefinedEnvVar, 'valueFrom'> & { readonly valueFrom?: EnvVarSource }

/** Where the operator's definition is installed, the API server accepts every text as field or resource. */
export type EnvVarSource = Omit<DefinedSource, 'fieldRef' | 'resourceFieldRef'> & {
  readonly fieldRef?: WithText<DefinedReference<'fieldRef'>, 'fieldPath'>
  readonly resourceFieldRef?: WithText<DefinedReference<'resourceFieldRef'>, 'resource'>
}

type WithText<Value, Field extends keyof Value> = Omit<Value, Field> & Readonly<Record<Field, string>>

export type InterruptionBudget = NonNullable<SkyhookSpec['interruptionBudget']>
export type PackageResources = NonNullable<PackageSpec['resources']>
export type Interrupt = NonNullable<PackageSpec['interrupt']>
export type InterruptType = Interrupt['type']
export const interruptTypes = [
  'noop',
  'service',
  'restartAllServices',
  'reboot',
] as const satisfies readonly InterruptType[]

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
