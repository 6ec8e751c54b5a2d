/** The current work of a node, for its metrics: running steps and failing stages. Pure. */
import { type Journal, openSteps } from '../../schemas/journal.ts'
import type { Mode } from '../../schemas/package-config.ts'

/**
 * In seconds. `stepAges` are those of the oldest running step of each mode. `nextAttempt` is 0 if there is no wait for
 * one.
 */
export type WorkNow = {
  readonly stepAges: ReadonlyMap<Mode, number>
  readonly failedAttempts: number
  readonly nextAttempt: number
}

/** `nowMs`: steady time. */
export function workNow(journal: Journal, nowMs: number): WorkNow {
  const stepAges = new Map<Mode, number>()
  for (const { mode, startedAtMs } of openSteps(journal))
    stepAges.set(mode, Math.max(stepAges.get(mode) ?? 0, (nowMs - startedAtMs) / 1000))
  const entries = Object.values(journal.skyhooks).flatMap(({ packages }) => Object.values(packages))
  const retriesInMs = entries.flatMap(({ progress }) =>
    progress.state === 'retrying' && progress.retryAtMs > nowMs ? [progress.retryAtMs - nowMs] : [],
  )
  return {
    stepAges,
    failedAttempts: Math.max(0, ...entries.map(({ restarts }) => restarts)),
    nextAttempt: retriesInMs.length === 0 ? 0 : Math.min(...retriesInMs) / 1000,
  }
}
