/** Where a dashboard has its data from: a cluster, or what somebody saved of one. */
import type { FleetView } from '../fleet-view/fleet-view.ts'
import type { Completion } from '../status/fleet-status.ts'
import type { NodeRow } from '../status/node-report.ts'
import type { Freshness } from '../status/watch-fleet.ts'
import type { EditPlan, Identity, NodeAnswer, OutputPart } from './page-data.ts'

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
