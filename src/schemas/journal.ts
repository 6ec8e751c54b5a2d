import type { SpecVersion } from './annotations.ts'
import type { NodeStatus } from './skyhook.ts'
import {
  type CanceledStep,
  type InterruptRun,
  type PackageRecord,
  type StepAttempt,
  openStepOf,
} from './package-record.ts'

/** Raised for a document that older agents would misread. No agent was released with a lower version. */
export const journalVersion = 2

/**
 * What the agent remembers on the host, written with fsync before and after every effect that cannot be undone.
 * It is the truth about the host; the Node's annotations are its published copy.
 *
 * An undefined field means the same as an absent one. The name of a time ends in `AtMs`, `SinceMs` or `UntilMs` for
 * steady time of the boot `bootId` (stages/skyhook/carry-times.ts), or in `WallMs`.
 */
export type Journal = {
  readonly v: typeof journalVersion
  /** `spec.unschedulable` of the Node as we saw or wrote it last while it carried a mark of ours. */
  readonly lastSeenUnschedulable?: boolean
  /** We wrote that value and have not seen it on the Node yet: until then a different value is not someone's change. */
  readonly cordonPending?: true
  /** When we cordoned again after someone uncordoned while we held the node, in ms; the last few. */
  readonly cordonRetriesAtMs?: readonly number[]
  /** The cordons of the work on this host, as last seen on the Node. */
  readonly cordon?: HeldCordon
  /** A Skyhook with `runtimeRequired` selects this node, or did and the taint is still to be removed. */
  readonly runtimeRequired?: true
  /** Since when the Node has had the runtime-required taint without a Skyhook that would lift it, in ms. */
  readonly taintUnliftedSinceMs?: number
  /** Of a control-plane node: static pods that are Ready, or were and are not known to be Ready again. */
  readonly staticPods?:
    | {
        readonly pods: readonly StaticPod[]
        /** Since when one of them is missing while no interrupt runs, in ms. */
        readonly sinceMs?: number
      }
    | undefined
  /** Reboots made for packages since this journal was created. Never decreases. */
  readonly reboots?: number
  /** UID of the Node object that this host last published to; another UID means that the node registered again. */
  readonly nodeUid: string
  /** Boot of the host in which the journal was written last. */
  readonly bootId?: string
  readonly skyhooks: Readonly<Record<string, SkyhookRecord>>
}

/** `wallOffsetMs`: by how much the wall clock was ahead of steady time when it was written. */
export type StoredJournal = Journal & { readonly wallOffsetMs?: number }

/**
 * The state of our cordon, which the Node has as well. The Node loses it when it is deleted and registered again,
 * restored from an older etcd, or edited.
 */
export type HeldCordon = {
  /** The Skyhooks whose marks the Node had, sorted: their work has not given its cordon back. */
  readonly skyhooks: readonly string[]
  /** Whether this Node would be cordoned without us (`cordoned-before`). */
  readonly before?: boolean
}

export type StaticPod = {
  readonly namespace: string
  /** The name in its manifest, without the name of the Node. */
  readonly name: string
  /** The pod that was Ready, with these containers. */
  readonly bootId: string
  readonly containerIds: readonly string[]
}

export const emptyJournal = (nodeUid: string): Journal => ({ v: journalVersion, nodeUid, skyhooks: {} })

/** Whether a document of this version has the fields of every journal; their contents are trusted. */
export const isWholeJournal = ({ nodeUid, skyhooks }: Partial<Journal>): boolean =>
  typeof nodeUid === 'string' && typeof skyhooks === 'object' && skyhooks !== null

/** Attempts of steps whose end is not recorded yet. */
export const openSteps = (journal: Journal): StepAttempt[] => Object.values(journal.skyhooks).flatMap(openStepsOf)

export function openStepsOf({ packages, canceling = [] }: SkyhookRecord): StepAttempt[] {
  const ofAttempts = Object.values(packages).flatMap(({ progress }) => openStepOf(progress) ?? [])
  // a step that may be about to start is stopped before its attempt is removed
  return [...canceling.filter(({ id }) => ofAttempts.every((step) => step.id !== id)), ...ofAttempts]
}

export type SkyhookRecord = {
  /** UID of the Skyhook object that the work was done for; another object of that name starts unfinished work over. */
  readonly uid: string
  /** Raised by one with each change of the published state. */
  readonly rev: number
  /** Keyed `<package name>|<version>`, as published. */
  readonly packages: Readonly<Record<string, PackageRecord>>
  /** Hash of the spec that was last completed here (`completionHash` in stages/model/package-inputs.ts). */
  readonly applied?: string | undefined
  /**
   * The spec by which it became complete, of all that had that hash. It stays when another spec requests nothing more,
   * so that no node writes for it.
   */
  readonly completedBy?: SpecVersion | undefined
  /** From the first started step until completion, or until the node gives its slot back (skyhook/departure.ts). */
  readonly lifecycle?: Lifecycle | undefined
  /**
   * The work here was done for an earlier Skyhook of this name. `complete`: it is also all that this one requests;
   * absent once this one has work.
   */
  readonly takenOver?: 'unfinished' | 'complete' | undefined
  /**
   * The work of the Skyhook operator was found unfinished, and the agent has not started: package pods may still be at
   * work (stages/skyhook/other-operator.ts).
   */
  readonly adopted?: true | undefined
  /** The Skyhook is gone from the cluster; its files stay, nothing runs. */
  readonly orphaned?: boolean | undefined
  /** Reboots made per merged interrupt, with the keys of stages/interrupt/reboots.ts. */
  readonly reboots: Readonly<Record<string, number>>
  /** From before this host lost its disk: not repeated. */
  readonly priorReboots?: Readonly<Record<string, number>> | undefined
  /** Steps that the agent itself guards against repetition, keyed by stages/package/attempt.ts; value = time in ms. */
  readonly flags: Readonly<Record<string, number>>
  /**
   * Running steps whose work is no longer requested: they are stopped, and nothing of their package starts before they
   * have ended.
   */
  readonly canceling?: readonly CanceledStep[] | undefined
  /** The running or just finished interrupt, see stages/interrupt/merge.ts. */
  readonly interrupt?: InterruptRun | undefined
  readonly drain?: DrainRecord | undefined
  /** The work is complete, and its slot is kept (stages/skyhook/soak.ts). */
  readonly soak?: Soak | undefined
  /**
   * The last handled edit of nodeState by a person: `<rev of the companion>/<hash of the text>`, or `…/removed` for a
   * reset.
   */
  readonly edit?: string | undefined
  /** The text that is, or is about to be, on the Node: the base that a person's edit is compared with. */
  readonly published?: Published | undefined
  /** Version that each package's own history records last, by package name; `uninstalled` after an uninstall. */
  readonly installedVersions: Readonly<Record<string, string>>
}

/** Of a node that waits for its drain (stages/drain/drain-status.ts). `yieldCount`: how often it gave up so far. */
export type DrainRecord =
  | { readonly state: 'waiting'; readonly yieldCount: number; readonly sinceMs: number }
  | {
      readonly state: 'paused'
      readonly yieldCount: number
      readonly untilMs: number
      readonly reason: { readonly reason: 'ProtectedPods' | 'DrainBlocked'; readonly message: string }
    }

export type Soak = {
  /** When the Node was complete and back in service; absent before. */
  readonly sinceMs?: number
  /** Since when node and pods have been Ready without a break; absent while they are not. */
  readonly readySinceMs?: number
  /** Those that had a Ready pod on the node before the work. */
  readonly daemonSets: readonly DaemonSetReference[]
}

export type DaemonSetReference = { readonly uid: string; readonly namespace: string; readonly name: string }

export type Published = {
  readonly rev: number
  /** Text of the nodeState annotation. */
  readonly state: string
  /** Its text on the Node then, which a person may still edit: this one may meet a conflict. */
  readonly before?: string | undefined
  readonly status: NodeStatus
  readonly atMs: number
}

export type Lifecycle = {
  readonly startedAtMs: number
  /** Generation of the Skyhook when the work started. */
  readonly generation: number
  /**
   * Set once an interrupt other than noop ran: the node must show Ready of this boot before it goes back to service.
   */
  readonly interruptedAtMs?: number
  /** The interrupt restarted the kubelet or the container runtime: Ready only counts after it has held for a while. */
  readonly restartedRuntime?: boolean
  /** DaemonSets that had a Ready pod here when the work started; absent where `spec.pace` did not request them. */
  readonly readyDaemonSets?: readonly DaemonSetReference[]
}
