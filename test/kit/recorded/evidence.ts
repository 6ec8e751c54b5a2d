/** Everything that was recorded of real hosts, and what a promise found in it. */
import type { Moment } from '../cluster/moments.ts'
import type { AuditedRequest } from './audit.ts'
import type { StepLine } from './step-lines.ts'

export type Evidence = {
  /** Every version of every object, in the order of the changes. */
  readonly moments: readonly Moment[]
  /** Requests of the agents, in the order of their arrival. */
  readonly audit: readonly AuditedRequest[]
  /** By host, in order. */
  readonly steps: ReadonlyMap<string, readonly StepLine[]>
  readonly faults: readonly RecordedFault[]
  readonly deletions: readonly Deletion[]
  /** Versions of Nodes that the administrator wrote. */
  readonly ownVersions: ReadonlySet<number>
  readonly skyhooks: readonly string[]
  readonly endedMs: number
}

export type RecordedFault = {
  /** Undefined: the API server, or all of them. */
  readonly node: string | undefined
  readonly startedMs: number
  readonly endedMs: number
  /** How the host goes down for it. */
  readonly down?: 'shutdown' | 'power cut' | undefined
  /** What ends meanwhile cannot be written down; so it is while a host goes down. */
  readonly isDiskFull?: boolean
}

/** Something that an administrator deleted by hand: from then on the node's slot does not count. */
export type Deletion = { readonly node: string; readonly atMs: number; readonly what: 'slot' | 'Node' }

export type Violation = { readonly atMs: number; readonly text: string }

/** Of one promise. `checked`: how many times there was something to judge; a check of nothing proves nothing. */
export type Finding = { readonly name: string; readonly checked: number; readonly violations: readonly Violation[] }
