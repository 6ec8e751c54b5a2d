/** What keeps a node from being complete, or from continuing: one closed gate, and how to open it. */
import type { GateName } from '../../../schemas/catalogue/reason-codes.ts'
import type { ReasonName, reasons } from '../../../schemas/catalogue/reasons.ts'

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
  /** The problem, in whole sentences without a full stop. */
  readonly message: string
  /** The affected objects, the most important first. */
  readonly objects: readonly ObjectName[]
  /** In ms since 1970; undefined if unknown. */
  readonly sinceMs: number | undefined
  /** Of a retry, from the Node: how often it has failed, and when the next attempt starts. */
  readonly attempts?: number
  readonly nextTryMs?: number
  /** What opens the gate. */
  readonly unblock: string
  /** The command for the remedy, or for more details. */
  readonly command: string
}
