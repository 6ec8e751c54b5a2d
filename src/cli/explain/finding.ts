/** What keeps a node from being complete, or from going on: one gate that is closed, and how to open it. */
export type GateName = (typeof gateNames)[number]

/** In the order in which work has to pass them. */
export const gateNames = [
  'agent',
  'selector',
  'ignored',
  'disabled',
  'paused',
  'spec',
  'policy',
  'priority',
  'host',
  'taint',
  'package',
  'slot',
  'drain',
  'work',
  'interrupt',
  'ready',
  'soak',
] as const

export type Cause =
  | 'no-agent'
  | 'agent-dead'
  | 'agent-too-old'
  | 'not-selected'
  | 'ignored'
  | 'disabled'
  | 'paused'
  | 'invalid-spec'
  | 'policy-missing'
  | 'earlier-skyhook'
  | 'host-unusable'
  | 'host-unreachable'
  | 'crash-loop'
  | 'taint'
  | 'preparing'
  | 'image-pull'
  | 'invalid-package'
  | 'reference-missing'
  | 'budget-zero'
  | 'budget-full'
  | 'no-census'
  | 'batch'
  | 'rollout-stopped'
  | 'control-plane'
  | 'next-in-line'
  | 'protected-pod'
  | 'disruption-budget'
  | 'eviction-denied'
  | 'tolerating-pod'
  | 'bare-pod'
  | 'pods-ending'
  | 'step-failing'
  | 'check-failing'
  | 'uninstall-failing'
  | 'other-skyhook'
  | 'reboot-pending'
  | 'reboot-refused'
  | 'reboot-loop'
  | 'node-not-ready'
  | 'api-server'
  | 'internal-error'
  | 'soaking'
  | 'takeover'

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
  /** What opens the gate. */
  readonly unblock: string
  /** What to run for it, or to look closer. */
  readonly command: string
}
