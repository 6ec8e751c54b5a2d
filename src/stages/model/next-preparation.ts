import type { Preparation, PreparationDepth } from './snapshot.ts'

/**
 * How far a preparation is to be taken now; undefined: it is far enough, or fails and waits. Layers that could not be
 * fetched are tried again as such: a node that gave its slot back for them takes none before it has them.
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
