/** What the program that measures and its workers tell each other. */
import type { FleetPlan } from './plan.ts'

/** Where a worker finds the API server, and which of the nodes are its own. */
export type WorkerTask = {
  readonly server: string
  readonly ca: string
  /** The administrator's client certificate. */
  readonly cert: string
  readonly key: string
  readonly namespace: string
  readonly firstNode: number
  readonly nodes: number
  readonly plan: FleetPlan
}

export type Command =
  | { readonly do: 'start'; readonly task: WorkerTask }
  /** Counts from 0 again. `awaited`: the Skyhooks that a node has to complete. */
  | { readonly do: 'mark'; readonly awaited: readonly string[]; readonly sinceMs: number }
  | { readonly do: 'restart' }
  | { readonly do: 'report' }
  | { readonly do: 'start-profile' }
  | { readonly do: 'write-profile'; readonly file: string }

/** `done` answers each command. */
export type Reply =
  | { readonly type: 'started'; readonly agents: number }
  | { readonly type: 'completed'; readonly node: string; readonly atMs: number }
  | { readonly type: 'done'; readonly report?: WorkerReport }
  | { readonly type: 'failed'; readonly why: string }

/** What the agents of a worker did since the last mark. Times are of the wall clock that all processes share. */
export type WorkerReport = {
  readonly watchEvents: number
  readonly watchBytes: number
  /** Each change of the number of hosts that are out of service, by what happened on them. */
  readonly outs: readonly { readonly atMs: number; readonly change: 1 | -1 }[]
  /** For each node, the longest time in which it neither worked nor said why. */
  readonly silentMs: readonly number[]
  /** Messages of warnings and errors in the agents' logs, with their number. */
  readonly warnings: Readonly<Record<string, number>>
  readonly rssMiB: number
  readonly cpuMs: number
}
