/** Everything that was recorded, and what a promise found in it. */
import type { Moment } from '../kit/cluster/moments.ts'
import type { ActionRecord, Deletion } from './arena.ts'
import type { AuditedRequest } from './audit.ts'
import type { StepLine } from './steps.ts'

export type Evidence = {
  /** Every version of every object, in the order of the changes. */
  readonly moments: readonly Moment[]
  /** Requests of the agents, in the order of their arrival. */
  readonly audit: readonly AuditedRequest[]
  /** By host, in order. */
  readonly steps: ReadonlyMap<string, readonly StepLine[]>
  readonly actions: readonly ActionRecord[]
  readonly deletions: readonly Deletion[]
  /** Versions of Nodes that the administrator wrote. */
  readonly ownVersions: ReadonlySet<number>
  readonly skyhooks: readonly string[]
  readonly endedMs: number
}

export type Violation = { readonly atMs: number; readonly text: string }

/** Of one promise. `checked`: how many times there was something to judge; a check of nothing proves nothing. */
export type Finding = { readonly name: string; readonly checked: number; readonly violations: readonly Violation[] }
