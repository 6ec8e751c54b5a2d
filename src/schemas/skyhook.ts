import { apiGroup } from './api.ts'
import type { Skyhook as Definition } from './generated/definitions.ts'

// Fields come from the definition in crds/, which is the authority on what is legal. This file only has the
// differences.

type DefinedSpec = NonNullable<Definition['spec']>
type DefinedPackage = NonNullable<DefinedSpec['packages']>[string]
type DefinedEnvVar = NonNullable<DefinedPackage['env']>[number]
type DefinedSource = NonNullable<DefinedEnvVar['valueFrom']>
type DefinedReference<Name extends keyof DefinedSource> = NonNullable<DefinedSource[Name]>

/**
 * The Skyhook resource (SCR). The spec is never absent: the reader of an object adds an empty one. The status is
 * untrusted until it is checked.
 */
export type Skyhook = Omit<Definition, 'spec' | 'status'> & {
  readonly spec: SkyhookSpec
  readonly status?: Readonly<Record<string, unknown>>
}

export type SkyhookSpec = Omit<DefinedSpec, 'packages'> & {
  readonly packages?: Readonly<Record<string, PackageSpec>>
}

/** Without the field, which has no effect. */
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

/** Stages by the operator's names; they are published on the Node. */
export const stageNames = ['uninstall', 'apply', 'upgrade', 'config', 'interrupt', 'post-interrupt'] as const
export type StageName = (typeof stageNames)[number]

/** State of one package entry on a Node, published. `unknown`: the agent gave up its uninstall. */
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

/** The current activity of the holder of a slot, from its Lease. */
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
 * The work under the slot is complete, and the slot is only kept to protect other nodes: it takes capacity, but permits
 * no work. New work needs a new admission.
 */
export const isPastWork = (phase: string): boolean => phase === 'soaking' || phase === 'finished'

/** The finalizer that keeps a Skyhook while nodes still must uninstall: the census adds and removes it. */

export const finalizerName = `${apiGroup}/skyhook`

/** Names of packages that are uninstalled when the Skyhook is deleted. */
export const packagesToUninstall = ({ packages = {} }: SkyhookSpec): ReadonlySet<string> =>
  new Set(Object.entries(packages).flatMap(([name, { uninstall }]) => (uninstall?.enabled === true ? [name] : [])))
