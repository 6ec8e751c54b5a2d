import type { Clock } from '../../../schemas/clock.ts'

/** `namespace`: of the agents. */
export type ClusterRequest = { readonly namespace: string; readonly clock: Clock; readonly signal: AbortSignal }
