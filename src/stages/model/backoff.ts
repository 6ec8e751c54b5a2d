import { sha256Hex } from '../../schemas/canonical-json.ts'

const initialWaitMs = 5_000
export const maxStageRetryDelayMs = 300_000 // the kubelet's own ceiling for restarts, which users know

/**
 * Wait after the n-th failure in a row (n >= 1): 5 s doubling up to 5 min, shortened by up to a fifth, derived from
 * `seed` so that nodes spread.
 */
export function stageRetryDelayMs(failures: number, seed: string): number {
  const full = Math.min(maxStageRetryDelayMs, initialWaitMs * 2 ** Math.min(failures - 1, 16))
  const jitterShare = Number.parseInt(sha256Hex(seed).slice(0, 8), 16) / 0xffff_ffff
  return Math.round(full * (1 - jitterShare / 5))
}
