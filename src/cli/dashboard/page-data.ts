/** What the page gets, as JSON: the border between the tool and the browser. */
import type { NodeStatus } from '../../schemas/skyhook.ts'
import type { Known } from '../../stages/model/snapshot.ts'
import type { NodeExplanation } from '../reason/explain/explain-node.ts'
import type { PublishedPackage } from '../fleet/objects/read.ts'
import type { SkyhookStatus, Completion } from '../reason/status/fleet-status.ts'
import type { Freshness } from '../reason/status/watch-fleet.ts'
import type { Lane } from './lanes.ts'
import type { FleetView } from '../fleet/fleet-view/fleet-view.ts'
import type { NodeRow } from '../reason/status/node-report.ts'

/** Where the page looks. */
export type Identity = ClusterIdentity | ArchiveIdentity

/** A cluster, and as whom it is read. */
export type ClusterIdentity = {
  readonly isLive: true
  readonly context: string | undefined
  readonly server: string
  readonly namespace: string
  readonly user: Known<string>
  readonly version: string
}

/** A support archive. It does not change, and does not have the name of its cluster. */
type ArchiveIdentity = {
  readonly isLive: false
  /** As the person has named it. */
  readonly file: string
  /** When it was made, in ms since 1970. */
  readonly takenAtMs: number
  /** Of the tool that has made it. */
  readonly madeBy: string
  readonly namespace: string
  readonly version: string
}

/** All that the page shows: it is sent whole. Times are in ms since 1970, by the clock of the tool. */
export type PageState = {
  readonly identity: Identity
  readonly nowMs: number
  /** When the API server last answered. */
  readonly contactAtMs: number
  readonly freshness: Freshness
  readonly skyhooks: Known<readonly SkyhookBrief[]>
  /** Of the Skyhook that the page shows; undefined where there is none. */
  readonly rollout: Rollout | undefined
}

export type Rollout = {
  readonly name: string
  /** Undefined: there is no such Skyhook any more. */
  readonly status: SkyhookStatus | undefined
  /** By name. */
  readonly nodes: Known<readonly NodeSquare[]>
  readonly lanes: readonly Lane[]
}

export type SkyhookBrief = {
  readonly name: string
  /** Undefined where Nodes may not be read. */
  readonly selected: number | undefined
  readonly complete: number
  /** Nodes that a person has to look at. */
  readonly troubled: number
  /** Such as `paused`; empty for most. */
  readonly flags: readonly string[]
}

/** One node of the Skyhook. */
export type NodeSquare = {
  readonly node: string
  /** Absent where the Node has no label for it. */
  readonly zone?: string
  readonly status: NodeStatus
  readonly reason?: string
  readonly message?: string
  readonly sinceMs?: number
  /** What the holder of a slot does; absent without a slot. */
  readonly phase?: string
}

/** The answer to a click on a node. */
export type NodeAnswer = {
  readonly nowMs: number
  readonly explanation: NodeExplanation
  readonly packages: readonly Omit<PublishedPackage, 'image'>[]
  /** By name. */
  readonly others: readonly OtherSkyhook[]
  readonly events: PanelEvents
  /** Commands for the node. Nothing here runs them. */
  readonly actions: readonly NodeAction[]
}

export type NodeAction = { readonly what: string; readonly command: string }

/** Of the last hour: the API server forgets older ones. */
export type PanelEvents = {
  /** The newest first, a few of them. */
  readonly newest: readonly EventRow[]
  /** Why some may be missing; empty where all were read. */
  readonly unread: readonly string[]
}

export type EventRow = {
  readonly about: 'Node' | 'Skyhook'
  readonly reason: string
  readonly message: string
  readonly atMs: number
}

/** Another Skyhook that selects the node, or has packages there. */
export type OtherSkyhook = {
  readonly skyhook: string
  /** Those of its own square; no status: the Skyhook is gone, or does not select the node. */
  readonly status?: NodeStatus
  readonly reason?: string
  /** Packages that are complete there, and all that the node reports. */
  readonly complete: number
  readonly total: number
}

/** A line of a step's output. */
export type OutputLine = {
  readonly atMs?: number
  readonly package: string
  readonly stage: string
  readonly text: string
}

/** A part of a node's output. */
export type OutputPart = {
  readonly lines?: readonly OutputLine[]
  /** What is not shown, and where it is. */
  readonly note?: string
}

/** What an apply of a text would do. */
export type EditPlan = {
  readonly isRefused: boolean
  /** Workloads on some node would notice; undefined where nobody may say it. */
  readonly disrupts?: boolean | undefined
  /** As `kubectl skyhook plan` says it. */
  readonly text: string
}

/** What went wrong with a request of the page. */
export type PageError = { readonly error: string; readonly remedy?: string | undefined }

/** The fleet at one moment. */
export type FleetMoment = {
  readonly fleet: FleetView<NodeRow>
  readonly completions: readonly Completion[]
  readonly freshness: Freshness
  /** When the API server last answered, in ms since 1970; of an archive when it was made. */
  readonly contactAtMs: number
}

export type NodeOfSkyhook = { readonly skyhook: string; readonly node: string }

/** All but `follow` throw a `CommandError` for what is not there, or may not be read. */
export type DashboardSource = {
  readonly identity: Identity
  /** Calls back with each change, until the signal aborts; then rejects with its reason. */
  follow(onMoment: (moment: FleetMoment) => void, signal: AbortSignal): Promise<never>
  /** Why the node is not complete, and what is on it. */
  explain(of: NodeOfSkyhook, signal: AbortSignal): Promise<NodeAnswer>
  /** Output of steps, old and new, until the signal aborts, or there is no more. */
  followOutput(of: NodeOfSkyhook, onPart: (part: OutputPart) => void, signal: AbortSignal): Promise<void>
  /** The Skyhook as YAML, to edit. */
  manifest(skyhook: string, signal: AbortSignal): Promise<string>
  /** What an apply of a Skyhook in YAML would do. */
  plan(text: string, signal: AbortSignal): Promise<EditPlan>
}
