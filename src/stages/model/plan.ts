import { canonicalJson, sha256Hex } from '../../schemas/canonical-json.ts'
import type { ReasonName } from '../../schemas/catalogue/reasons.ts'
import type { Reason } from '../../schemas/catalogue/reason.ts'
import type { Journal } from '../../schemas/journal.ts'
import type { InterruptRun, PackageRecord, RunningPackage, StepAttempt } from '../../schemas/package-record.ts'
import type { NodeCondition, NodePatch, Taint } from '../../schemas/kubernetes.ts'
import type { Mode, PackageConfig, Stage, Step } from '../../schemas/package-config.ts'
import type { EnvVar, PackageResources, PackageSpec, SlotPhase, StageName } from '../../schemas/skyhook.ts'
import type { Pod, PodWatch } from './pods.ts'
import type { OwnSlot, PreparationDepth, SkyhookView, Snapshot } from './snapshot.ts'

/**
 * What must happen now. The journal is made durable first, then the actions run. Each is safe to repeat, and its key
 * lets the loop run it once at a time.
 */
export type Plan = {
  readonly journal: Journal
  readonly actions: readonly Action[]
  /** By Skyhook, why this node is not complete; `sinceMs` carries over while reason and message stay. */
  readonly reasons: ReadonlyMap<string, TimedReason>
  readonly events: readonly StageEvent[]
  /** Preparations and answers that are still needed; others may be dropped. */
  readonly needed: ReadonlySet<string>
  /** Names of the Skyhooks that request a slot; others do not wait for one. */
  readonly slotRequests: ReadonlySet<string>
  /** The pods of this node must be watched. */
  readonly watchPods: PodWatch
  /** Decide again at this time at the latest, even if nothing happens. */
  readonly requeueAtMs: number
}

export type TimedReason = Reason & {
  readonly sinceMs: number
  /** Since when there has been a reason without interruption, this one or others. */
  readonly firstSinceMs?: number
  /** Of a Skyhook: the reason of each failing package, the worst first. */
  readonly packages?: ReadonlyMap<string, TimedReason>
}

export type Action =
  /** An image that is on the host already is prepared to its layers, at any requested depth. */
  | {
      readonly do: 'prepare'
      readonly key: string
      readonly image: PackageImage
      readonly depth: PreparationDepth
    }
  /** `withControlPlane`: the control plane's slot first, and neither of the two unless both are granted. */
  | {
      readonly do: 'acquireSlot'
      readonly key: string
      readonly view: SkyhookView
      readonly phase: SlotPhase
      readonly withControlPlane: boolean
      /** The node joins the cluster: the budget for such nodes counts it, where there is one. */
      readonly isJoining: boolean
    }
  | {
      readonly do: 'acquireControlPlaneSlot'
      readonly key: string
      readonly view: SkyhookView
      readonly phase: SlotPhase
    }
  | {
      readonly do: 'createRecoverySlot'
      readonly key: string
      readonly scope: OwnSlot['scope']
      readonly view: SkyhookView
      readonly phase: SlotPhase
    }
  /** Only before the first step: reads the Skyhook again, and gives the slot back if it would not be granted now. */
  | { readonly do: 'confirmSlot'; readonly key: string; readonly slot: OwnSlot; readonly view: SkyhookView }
  /** Proves that the slot is still ours; does not check the budget. */
  | { readonly do: 'renewSlot'; readonly key: string; readonly slot: OwnSlot; readonly phase: SlotPhase }
  | { readonly do: 'releaseSlot'; readonly key: string; readonly slot: OwnSlot }
  | StartStep
  /** After it the step has ended, even one that had not started yet. */
  | { readonly do: 'stopStep'; readonly key: string; readonly step: StepAttempt }
  /** A canceled step has ended: its traces on the host are removed. */
  | { readonly do: 'forgetStep'; readonly key: string; readonly step: StepAttempt }
  /**
   * The end of a step is in the journal: now its copies for people are written and its traces on the host are removed.
   */
  | {
      readonly do: 'recordStep'
      readonly key: string
      readonly skyhook: string
      /** Name and version of the package in the Skyhook. */
      readonly name: string
      readonly version: string
      readonly step: StepAttempt
      readonly config: PackageConfig
      readonly planned?: Step
    }
  | {
      readonly do: 'recordChecks'
      readonly key: string
      readonly skyhook: string
      readonly mode: Mode
      readonly steps: readonly StepAttempt[]
    }
  | {
      readonly do: 'recordHistory'
      readonly key: string
      readonly skyhook: string
      /** Name of the package in the Skyhook. */
      readonly name: string
      readonly config: PackageConfig
      readonly version: string
    }
  /** The checks of an uninstall passed: its leftovers are removed, and only then is the stage complete. */
  | {
      readonly do: 'cleanUp'
      readonly key: string
      readonly skyhook: string
      readonly name: string
      readonly config: PackageConfig
      /** Attempts of the checks, if there were any. */
      readonly checks: readonly StepAttempt[]
      /** By the wall clock; the same in each repetition. */
      readonly passedAtWallMs: number
      readonly requestId: string
    }
  /** Reads the package's status file for one question. */
  | {
      readonly do: 'readStatus'
      readonly key: string
      readonly skyhook: string
      readonly package: string
      readonly requestId: string
    }
  | { readonly do: 'evict'; readonly key: string; readonly pod: Pod; readonly delete?: boolean }
  | { readonly do: 'countNodes'; readonly key: string }
  /**
   * Right before it acts, the executor reads the pods again and renews the slot. It aborts if the pods differ, or if
   * the interrupt is `abandoned`.
   */
  | { readonly do: 'interrupt'; readonly key: string; readonly run: InterruptRun; readonly view: SkyhookView }
  | {
      readonly do: 'recordInterrupt'
      readonly key: string
      readonly skyhook: string
      readonly run: InterruptRun
      readonly records: readonly PackageRecord[]
    }
  /**
   * `computedFrom`: the version of the Node that the differences were computed from. `refused`: the annotations of the
   * whole change, of which `patch` is the part that goes first.
   */
  | {
      readonly do: 'publish'
      readonly key: string
      readonly patch: NodePatch
      readonly computedFrom: string
      readonly refused?: NodePatch['annotations']
    }

/** Identifies an action among the failures: actions of one key follow each other, and may fail independently. */
export const failureKey = ({ do: what, key }: Pick<Action, 'do' | 'key'>): string => `${what} ${key}`

/** Actions that belong to one journal entry: later plans do not contain them again. */
export const isPlannedOnce = (what: Action['do']): boolean => what.startsWith('record') || what === 'forgetStep'

export type StartStep = {
  readonly do: 'startStep'
  readonly key: string
  readonly view: SkyhookView
  readonly record: RunningPackage
  readonly spec: PackageSpec
  readonly stage: Stage
  readonly attempt: StepAttempt
  readonly step: Step
  readonly config: PackageConfig
  /**
   * The copy dir must be restored first: no step of the attempt has run in this boot. Later it stays as it is, because
   * steps may have written there.
   */
  readonly needsCopyDir: boolean
  /** When the attempt of the whole stage started; stageTimeout counts from here. */
  readonly stageStartedAtMs: number
  /** Version that the host had before, for upgrade steps: a version, `uninstalled` or `unknown`. */
  readonly previousVersion: string
}

/** The image that a package's content comes from; with a digest its tag does not matter. */
export type PackageImage = {
  readonly image: string
  readonly version: string
  readonly digest?: string
  /**
   * The references of the package's env must exist, too: before the node is disturbed, not when its first step starts.
   */
  readonly references?: References
}

export type References = { readonly env: readonly EnvVar[]; readonly resources?: PackageResources }

export const preparationKey = ({ image, version, digest, references }: PackageImage): string => {
  const content = digest === undefined ? `${image}:${version}` : `${image}@${digest}`
  return references ? `${content}#${sha256Hex(canonicalJson(references)).slice(0, 16)}` : content
}

/** Facts to report to people; each becomes one log line and, with `event`, one Kubernetes Event. */
export type StageEvent = { readonly skyhook: string } & (
  | { readonly type: 'began'; readonly generation: number }
  | { readonly type: 'completed' }
  /** By an earlier Skyhook of this name: nothing ran for this one. */
  | { readonly type: 'foundComplete' }
  | { readonly type: 'stageCompleted'; readonly package: string; readonly stage: StageName }
  | { readonly type: 'stepUnknown'; readonly package: string; readonly step: string; readonly detail: string }
  | {
      readonly type: 'stageFailed'
      readonly package: string
      readonly stage: StageName
      readonly reason: ReasonName
      readonly message: string
      readonly failures: number
    }
  /** The package left the spec; what its uninstall did not remove stays on the host. */
  | { readonly type: 'uninstallFailed'; readonly package: string; readonly message: string }
  | { readonly type: 'superseded'; readonly package: string; readonly stage: StageName }
  | { readonly type: 'interrupted'; readonly interrupt: string }
  | { readonly type: 'interruptRequired'; readonly package: string; readonly message: string }
  | { readonly type: 'cordonChangedExternally'; readonly unschedulable: boolean }
  | { readonly type: 'reset' }
  | { readonly type: 'edited'; readonly package: string }
  | { readonly type: 'editIgnored'; readonly message: string }
  | { readonly type: 'republished'; readonly message: string }
  /** `leavesFiles`: a package was not uninstalled. */
  | { readonly type: 'orphaned'; readonly leavesFiles: boolean }
  | { readonly type: 'startedOver' }
  | { readonly type: 'adopted' }
  | { readonly type: 'rebootNotRepeated' }
)

type MutablePatch = {
  annotations: Record<string, string | null>
  labels: Record<string, string | null>
  conditions: NodeCondition[]
  removedConditions: string[]
  unschedulable?: boolean
  taints?: readonly Taint[]
}

export const emptyPatch = (): MutablePatch => ({ annotations: {}, labels: {}, conditions: [], removedConditions: [] })

export const isEmptyPatch = ({
  annotations,
  labels,
  conditions,
  removedConditions,
  unschedulable,
  taints,
}: NodePatch): boolean =>
  Object.keys(annotations).length === 0 &&
  Object.keys(labels).length === 0 &&
  conditions.length === 0 &&
  removedConditions.length === 0 &&
  unschedulable === undefined &&
  taints === undefined

/**
 * One change of the Node. Spec and conditions cannot go into one request, and the node controller adds its taint right
 * after a cordon: a second request right behind the first would conflict. So conditions wait for the decision that sees
 * the changed spec.
 */
export function mergePatches(patches: readonly NodePatch[]): NodePatch {
  const merged = emptyPatch()
  for (const { annotations, labels, conditions, removedConditions, unschedulable, taints } of patches) {
    if (unschedulable !== undefined) merged.unschedulable = unschedulable
    if (taints !== undefined) merged.taints = taints
    Object.assign(merged.annotations, annotations)
    Object.assign(merged.labels, labels)
    merged.conditions.push(...conditions)
    merged.removedConditions.push(...removedConditions)
  }
  const hasSpec = merged.unschedulable !== undefined || merged.taints !== undefined
  return hasSpec ? { ...merged, conditions: [], removedConditions: [] } : merged
}

type Pace = Pick<Snapshot, 'answerMs' | 'spreadMs'>

/** The minimum interval of informative writes, as a multiple of the time of an answer, to spare a slow API server. */
const answersPerWrite = 5
/**
 * A failure must become a reason on the Node within ten seconds, including slow answers to the request and to the
 * write.
 */
const maxPaceMs = 6_000
/** A shorter reason is not written: most are gone before the write would arrive. */
const usualWaitSettleMs = 700

/**
 * Interval between two writes of progress, in ms. `usualMs` where the API server answers fast. Where it is slow, five
 * times the time of one answer, up to 6 s.
 */
export const writePaceMs = (usualMs: number, { answerMs = 0 }: Pick<Pace, 'answerMs'>): number =>
  Math.max(usualMs, Math.min(maxPaceMs, answersPerWrite * answerMs))

/**
 * How long the reason of a wait must last before it is written, in ms. All nodes of a rollout start to wait at once.
 */
export const settleMs = (pace: Pace): number => Math.max(writePaceMs(usualWaitSettleMs, pace), pace.spreadMs ?? 0)
