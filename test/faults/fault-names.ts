/** The faults that hit an agent at a failpoint. */
export const faultNames = [
  'agent killed',
  'host rebooted',
  'power cut',
  'bus restarted',
  'API server down',
  'disk full',
] as const
export type FaultName = (typeof faultNames)[number]
