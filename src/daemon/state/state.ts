import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { Journal } from '../../schemas/journal.ts'
import type { StatusReadResult } from '../../schemas/package-status.ts'
import {
  type AttemptObservation,
  type CleanUpResult,
  type Eviction,
  type WatchedPods,
  type InterruptObservation,
  type Known,
  type OwnSlot,
  type Preparation,
  type SkyhookView,
  type SlotDenial,
  type StageSettings,
  type Snapshot,
  unknown,
} from '../../stages/model/snapshot.ts'

/** What the agent knows at this moment. Sources write into it and wake the loop; decisions see a snapshot. */
export type State = {
  node: KubernetesNode | undefined
  bootId: string
  skyhooks: Known<readonly SkyhookView[]>
  journal: Journal
  readonly attempts: Map<string, AttemptObservation>
  readonly preparations: Map<string, Preparation>
  slots: Known<readonly OwnSlot[]>
  readonly slotDenials: Map<string, SlotDenial>
  pods: Known<WatchedPods>
  singleNode: boolean | undefined
  hostFolders: ReadonlySet<string>
  readonly evictions: Map<string, Eviction>
  readonly interrupts: Map<string, InterruptObservation>
  statuses: Snapshot['statuses']
  readonly requestedStatuses: Map<string, StatusReadResult>
  readonly cleanUps: Map<string, CleanUpResult>
  /** The host's bus. */
  host: Snapshot['host']
  /** Why the journal cannot be written; nothing is begun meanwhile. */
  journalError: string | undefined
}

export function newState(journal: Journal, bootId: string): State {
  return {
    node: undefined,
    bootId,
    skyhooks: unknown('the Skyhooks have not been listed yet'),
    journal,
    attempts: new Map(),
    preparations: new Map(),
    slots: unknown('the Leases have not been listed yet'),
    slotDenials: new Map(),
    pods: unknown('the pods of this node are not followed'),
    singleNode: undefined,
    hostFolders: new Set(),
    evictions: new Map(),
    interrupts: new Map(),
    statuses: unknown('the status files of packages have not been looked at yet'),
    requestedStatuses: new Map(),
    cleanUps: new Map(),
    host: { state: 'usable' },
    journalError: undefined,
  }
}

/** A snapshot for one decision; undefined while the own Node has not been read. */
export function snapshotOf(state: State, nowMs: number, settings: StageSettings): Snapshot | undefined {
  const { node } = state
  if (!node) return undefined
  return {
    nowMs,
    bootId: state.bootId,
    node,
    skyhooks: state.skyhooks,
    journal: state.journal,
    attempts: new Map(state.attempts),
    preparations: new Map(state.preparations),
    slots: state.slots,
    slotDenials: new Map(state.slotDenials),
    pods: state.pods,
    singleNode: state.singleNode,
    hostFolders: state.hostFolders,
    evictions: new Map(state.evictions),
    interrupts: new Map(state.interrupts),
    statuses: state.statuses,
    requestedStatuses: new Map(state.requestedStatuses),
    cleanUps: new Map(state.cleanUps),
    host: hostOf(state),
    settings,
  }
}

function hostOf({ host, journalError }: State): Snapshot['host'] {
  if (host.state === 'unusable' || journalError === undefined) return host
  return {
    state: 'unusable',
    reason: 'HostUnusable',
    message: `nothing is begun while the journal cannot be written: ${journalError}`,
  }
}
