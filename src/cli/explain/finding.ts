/** What keeps a node from being complete, or from going on: one gate that is closed, and how to open it. */
import type { GateName } from '../../schemas/catalogue/gates.ts'
import type { ReasonName, reasons } from '../../schemas/catalogue/reasons.ts'

export type Cause =
  | (typeof reasons)[ReasonName]['explain']['cause']
  | 'no-agent'
  | 'agent-dead'
  | 'agent-too-old'
  | 'not-selected'
  | 'budget-zero'
  | 'budget-full'
  | 'no-census'
  | 'rollout-stopped'
  | 'control-plane'
  | 'disruption-budget'
  | 'eviction-denied'
  | 'tolerating-pod'
  | 'bare-pod'
  | 'uninstall-failing'

export type ObjectName = { readonly kind: string; readonly namespace?: string | undefined; readonly name: string }

export type Finding = {
  readonly gate: GateName
  readonly cause: Cause
  /** What is the case, in whole sentences without a full stop. */
  readonly message: string
  /** What it is about, the most important first. */
  readonly objects: readonly ObjectName[]
  /** In ms since 1970; undefined where nothing says it. */
  readonly sinceMs: number | undefined
  /** Of what is tried again: how often it has failed, and when the next attempt begins, as the Node says it. */
  readonly attempts?: number
  readonly nextTryMs?: number
  /** What opens the gate. */
  readonly unblock: string
  /** What to run for it, or to look closer. */
  readonly command: string
}
