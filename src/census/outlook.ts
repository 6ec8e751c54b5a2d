/** Whether a node that is not complete will continue by itself, judged by what it publishes. Pure. */
import { isFailure } from '../schemas/catalogue/reasons.ts'
import { stallsBy } from '../schemas/catalogue/stall-rules.ts'
import { stallsAtMs } from '../schemas/catalogue/stalls.ts'
import type { NodeFact } from './node-facts.ts'

export type PublishedOutlook = Pick<NodeFact, 'status' | 'agent' | 'reason' | 'entries'>

/**
 * The moment (wall clock, ms) from which on the node has failed for good: it may retry, but nothing suggests another
 * result. -Infinity: it has failed, no matter when. Infinity: it continues by itself, or its outlook is unknown.
 */
export function failedAtMs(node: PublishedOutlook): number {
  const { status, agent, reason } = node
  if (agent === 'silent') return Infinity // its last report may be old
  const attempts = failedAttempts(node)
  switch (status) {
    case 'complete':
    case 'unknown':
    case 'paused':
    case 'disabled':
      return Infinity
    case 'waiting':
    case 'blocked':
    case 'in_progress':
    case 'erroring': {
      // a stage that is retried may report nothing else
      if (reason === undefined) return stallsAtMs('by-attempts', attempts, Infinity)
      const stalls = stallsBy(reason.reason, reason.code)
      const isUntried = stalls === 'by-attempts' && attempts === 0 && isFailure(reason.reason)
      return stallsAtMs(isUntried ? 'after-two-minutes' : stalls, attempts, reason.sinceMs ?? Infinity)
    }
  }
}

export const hasFailed = (node: PublishedOutlook, nowMs: number): boolean => failedAtMs(node) <= nowMs

/** When the next of the nodes will have failed for good if nothing changes; Infinity if none will. */
export const nextFailureAtMs = (nodes: readonly PublishedOutlook[], nowMs: number): number =>
  nodes.reduce((soonestMs, node) => {
    const atMs = failedAtMs(node)
    return atMs > nowMs && atMs < soonestMs ? atMs : soonestMs
  }, Infinity)

/** Of the stage that the reason is about; else of those that are open. A stage that passes starts from zero. */
function failedAttempts({ status, reason, entries }: PublishedOutlook): number {
  const { name, version } = reason?.package ?? {}
  const named = entries[`${name}|${version}`]
  if (named !== undefined) return named.restarts ?? 0
  // one that is left as it failed, while its successor runs, proves nothing about the node
  const isBetweenAttempts = status === 'erroring' || reason !== undefined
  const isOpen = (state: string | undefined): boolean =>
    state === 'in_progress' || (state === 'erroring' && isBetweenAttempts)
  return Object.values(entries).reduce(
    (most, { state, restarts = 0 }) => (isOpen(state) ? Math.max(most, restarts) : most),
    0,
  )
}
