/** Keys that the agent writes to or reads from Kubernetes objects. The operator's keys stay: other tools read them. */
import { apiGroup } from './api.ts'
import type { Interrupt } from './skyhook.ts'

export const nodeStateKey = (skyhook: string): string => `${apiGroup}/nodeState_${skyhook}`
export const statusKey = (skyhook: string): string => `${apiGroup}/status_${skyhook}`
export const versionKey = (skyhook: string): string => `${apiGroup}/version_${skyhook}`
/** Of our group, and not one that only the operator reads. */
export const isOwnKey = (key: string): boolean => key.startsWith(`${apiGroup}/`) && !key.startsWith(versionKey(''))
export const cordonKey = (skyhook: string): string => `${apiGroup}/cordon_${skyhook}`
/** Ours: what the agent knows beyond nodeState, and the hash that distinguishes its own writes from a person's. */
export const journalKey = (skyhook: string): string => `${apiGroup}/journal_${skyhook}`
/** Ours: why this node is not complete, for people. */
export const reasonKey = (skyhook: string): string => `${apiGroup}/reason_${skyhook}`
/** Ours: the same for each failing package, by its name. */
export const reasonsKey = (skyhook: string): string => `${apiGroup}/reasons_${skyhook}`
/** Ours: the step that runs, and since when. */
export const stepKey = (skyhook: string): string => `${apiGroup}/step_${skyhook}`
/** Ours, on Events of a Node: code and package of the reason. */
export const eventCodeKey = `${apiGroup}/code`
export const eventPackageKey = `${apiGroup}/package`
/** Ours: what the agent found on the host, and what makes it unfit for work. */
export const hostKey = `${apiGroup}/host`
export const cordonedBeforeKey = `${apiGroup}/cordoned-before`
export const keepCordonedKey = `${apiGroup}/keep-cordoned`
export const keepOffBeforeKey = `${apiGroup}/keep-off-before`
export const ignoreLabel = `${apiGroup}/ignore`
export const pauseKey = `${apiGroup}/pause`
export const disableKey = `${apiGroup}/disable`
/** Ours, on a Skyhook: another text makes the batches of its DeploymentPolicy start over. */
export const resetBatchesKey = `${apiGroup}/reset-batches`

/** The Skyhooks that have such a key, unsorted. */
export function skyhooksWith(
  keyOf: (skyhook: string) => string,
  annotations: Readonly<Record<string, string>> = {},
): readonly string[] {
  const prefix = keyOf('')
  return Object.keys(annotations).flatMap((key) => (key.startsWith(prefix) ? [key.slice(prefix.length)] : []))
}

export const notReadyCondition = (skyhook: string): string => `${apiGroup}/${skyhook}/NotReady`
export const erroringCondition = (skyhook: string): string => `${apiGroup}/${skyhook}/Erroring`
/** Ours: what a package reports about itself. Its name has no capitals, so it differs from the two above. */
export const packageCondition = (skyhook: string, name: string): string => `${apiGroup}/${skyhook}/${name}`

/** Ours: the Node has the runtime-required taint, and there is no Skyhook that would lift it. */
export const runtimeRequiredCondition = `${apiGroup}/RuntimeRequired`

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
  /** The spec by which the node last became complete; absent until then, and from older agents. */
  readonly completedBy?: SpecVersion
  /** The node was complete for an earlier Skyhook of this name; no step ran for this one. */
  readonly foundComplete?: true
  /** By merged interrupt. */
  readonly reboots?: Readonly<Record<string, RebootCount>>
  /**
   * What entries of nodeState do not show of packages, by their keys there; absent from older agents. It is as old as
   * the last write, and never the reason for a write.
   */
  readonly work?: Readonly<Record<string, PublishedWork>>
}

/** The current configuration of a package, to predict the effect of an edit. */
export type PublishedWork = {
  /** Hash of the configuration and environment of the last start of its config stage; absent before the first. */
  readonly inputs?: string
  /** It has been complete since it was installed. */
  readonly wasComplete?: true
  /** Keys of its configMap that changed since then. */
  readonly changed?: readonly string[]
  /** As of the start of that config stage: a pattern counts although an edit has removed it since. */
  readonly configInterrupts?: Readonly<Record<string, Interrupt>>
  /** The interrupt that is due before it is complete. */
  readonly interrupt?: Interrupt
  /** What happens to it when it leaves the spec. */
  readonly uninstall?: { readonly enabled?: boolean; readonly apply?: boolean }
  /** The agent no longer works on it. */
  readonly isRetained?: true
  /**
   * The operator started it, and no stage of this agent had started when this was written. Of a complete stage that
   * is so until the next one starts: the node is drained before, as for new work.
   */
  readonly isAdopted?: true
}

/** One spec of a Skyhook. */
export type SpecVersion = { readonly uid: string; readonly generation: number }

/** `askedInBoot`: a reboot is requested, or about to be, in this boot; it is done when the host is in another boot. */
export type RebootCount = { readonly done: number; readonly askedInBoot?: string }

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

export type PublishedReason = {
  readonly reason: string
  readonly message: string
  /** Details of the reason, such as the kind of an image error. */
  readonly code?: string
  /** The package concerned, by its key in nodeState. */
  readonly package?: string
  /** When it started: for a retry, when the first attempt failed. */
  readonly since: string
  /** Of a stage or an interrupt: failed attempts in a row, and when the next one starts. */
  readonly attempts?: number
  readonly nextTry?: string
}

/** The step that has been running longest. */
export type PublishedStep = {
  /** Its key in nodeState. */
  readonly package: string
  /** In the package's config.json, such as `apply` or `apply-check`. */
  readonly mode: string
  readonly path: string
  readonly since: string
  /** Of its stage, from 1. */
  readonly attempt: number
  /** When the first attempt failed; absent during the first attempt. */
  readonly failingSince?: string
}
