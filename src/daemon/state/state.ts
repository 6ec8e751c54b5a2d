import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { Journal } from '../../schemas/journal.ts'
import type { StatusRead } from '../../schemas/package-status.ts'
import type {
  AttemptObservation,
  CleanUp,
  Eviction,
  FollowedPods,
  InterruptObservation,
  Known,
  OwnSlot,
  Preparation,
  SkyhookView,
  SlotAnswer,
  StageSettings,
  World,
} from '../../stages/model/snapshot.ts'
import { unknown } from '../../stages/model/snapshot.ts'

/** What the agent knows at this moment. Sources write into it and wake the loop; decisions see a snapshot. */
export type State = {
  node: KubernetesNode | undefined
  bootId: string
  skyhooks: Known<readonly SkyhookView[]>
  journal: Journal
  readonly attempts: Map<string, AttemptObservation>
  readonly prepared: Map<string, Preparation>
  slots: Known<readonly OwnSlot[]>
  readonly waiting: Map<string, SlotAnswer>
  pods: Known<FollowedPods>
  singleNode: boolean | undefined
  hostFolders: ReadonlySet<string>
  readonly evictions: Map<string, Eviction>
  readonly interrupts: Map<string, InterruptObservation>
  statuses: World['statuses']
  readonly answers: Map<string, StatusRead>
  readonly cleanUps: Map<string, CleanUp>
  /** The host's bus. */
  host: World['host']
  /** Why the journal cannot be written; nothing is begun meanwhile. */
  journalTrouble: string | undefined
}

export function newState(journal: Journal, bootId: string): State {
  return {
    node: undefined,
    bootId,
    skyhooks: unknown('the Skyhooks have not been listed yet'),
    journal,
    attempts: new Map(),
    prepared: new Map(),
    slots: unknown('the Leases have not been listed yet'),
    waiting: new Map(),
    pods: unknown('the pods of this node are not followed'),
    singleNode: undefined,
    hostFolders: new Set(),
    evictions: new Map(),
    interrupts: new Map(),
    statuses: unknown('the status files of packages have not been looked at yet'),
    answers: new Map(),
    cleanUps: new Map(),
    host: { state: 'usable' },
    journalTrouble: undefined,
  }
}

/** A snapshot for one decision; undefined while the own Node has not been read. */
export function worldOf(state: State, nowMs: number, settings: StageSettings): World | undefined {
  const { node } = state
  if (!node) return undefined
  return {
    nowMs,
    bootId: state.bootId,
    node,
    skyhooks: state.skyhooks,
    journal: state.journal,
    attempts: new Map(state.attempts),
    prepared: new Map(state.prepared),
    slots: state.slots,
    waiting: new Map(state.waiting),
    pods: state.pods,
    singleNode: state.singleNode,
    hostFolders: state.hostFolders,
    evictions: new Map(state.evictions),
    interrupts: new Map(state.interrupts),
    statuses: state.statuses,
    answers: new Map(state.answers),
    cleanUps: new Map(state.cleanUps),
    host: hostOf(state),
    settings,
  }
}

function hostOf({ host, journalTrouble }: State): World['host'] {
  if (host.state === 'unusable' || journalTrouble === undefined) return host
  return { state: 'unusable', reason: 'HostUnusable', message: `nothing is begun while the journal cannot be written: ${journalTrouble}` }
}
