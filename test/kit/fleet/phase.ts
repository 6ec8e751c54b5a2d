/** How far a node is with its work, as its host and the cluster show it: faults are aimed at phases, and counted by them. */

export const phases = [
  'idle',
  'waiting',
  'slot-held',
  'draining',
  'step',
  'between-steps',
  'interrupting',
  'down',
  'booted',
  'completing',
  'released',
] as const
export type Phase = (typeof phases)[number]
