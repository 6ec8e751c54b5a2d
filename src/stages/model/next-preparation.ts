import type { Preparation, PreparationDepth } from './snapshot.ts'

/**
 * The depth to prepare now; undefined: it is reached, or the preparation failed and waits. Layers that could not be
 * fetched are retried as layers: a node that gave its slot back for them takes no slot before it has them.
 */
export function nextPreparation(
  found: Preparation | undefined,
  requiredDepth: PreparationDepth,
  nowMs: number,
): PreparationDepth | undefined {
  switch (found?.state) {
    case undefined:
      return requiredDepth
    case 'checked':
      return requiredDepth === 'layers' ? 'layers' : undefined
    case 'pending':
    case 'ready':
      return undefined
    case 'failed':
      if (found.retryAtMs > nowMs) return undefined
      return found.depth === 'layers' ? 'layers' : requiredDepth
  }
}
