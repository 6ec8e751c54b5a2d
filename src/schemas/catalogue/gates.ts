/** The gates that work must pass on a node, in this order. */
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

export type GateName = (typeof gateNames)[number]

/**
 * What opens a gate and what to run for it. Commands are those of docs/usage/operations.md, with its variables in
 * quotes: `"$NODE"`.
 */
export type Remedy = { readonly remedy: string; readonly command: string }

/** A reason as `explain` shows it. `remedy` replaces that of the page. */
export type ClosedGate = Pick<Remedy, 'command'> &
  Partial<Remedy> & {
    readonly gate: GateName
    /** One word, for tools. */
    readonly cause: string
  }
