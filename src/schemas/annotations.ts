/**
 * Keys that the agent writes to or reads from Kubernetes objects. The operator's stay as they are: other tools read
 * them.
 */
export const prefix = 'skyhook.nvidia.com'

export const nodeStateKey = (skyhook: string): string => `${prefix}/nodeState_${skyhook}`
export const statusKey = (skyhook: string): string => `${prefix}/status_${skyhook}`
export const versionKey = (skyhook: string): string => `${prefix}/version_${skyhook}`
export const cordonKey = (skyhook: string): string => `${prefix}/cordon_${skyhook}`
/** Ours: what the agent knows beyond nodeState, and the hash that tells its own writes from a person's. */
export const journalKey = (skyhook: string): string => `${prefix}/journal_${skyhook}`
/** Ours: why this node is not complete, for people. */
export const reasonKey = (skyhook: string): string => `${prefix}/reason_${skyhook}`
export const cordonedBeforeKey = `${prefix}/cordoned-before`
export const keepCordonedKey = `${prefix}/keep-cordoned`
export const keepOffBeforeKey = `${prefix}/keep-off-before`
export const ignoreLabel = `${prefix}/ignore`
export const pauseKey = `${prefix}/pause`
export const disableKey = `${prefix}/disable`

export const notReadyCondition = (skyhook: string): string => `${prefix}/${skyhook}/NotReady`
export const erroringCondition = (skyhook: string): string => `${prefix}/${skyhook}/Erroring`
/** Ours: what a package says about itself. Its name has no capitals, so it is none of the two above. */
export const packageCondition = (skyhook: string, name: string): string => `${prefix}/${skyhook}/${name}`

/** The operator's API level that we implement; published where the operator publishes its version. */
export const apiLevel = 'v0.15.0'

/** The companion of nodeState: written with it in the same patch, always. */
export type Companion = {
  readonly v: 1
  readonly rev: number
  readonly sha256: string
  readonly nodeUID: string
  /** Hash of the spec that this node last completed; absent until then. */
  readonly applied?: string
  readonly reboots?: Readonly<Record<string, number>>
}

/** One entry of nodeState, field order as published. */
export type NodeStateEntry = {
  readonly name: string
  readonly version: string
  readonly image: string
  readonly containerSHA?: string
  readonly stage: string
  readonly state?: string
  readonly restarts?: number
}

export type PublishedReason = { readonly reason: string; readonly message: string; readonly since: string }
