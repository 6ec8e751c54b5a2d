/** A Skyhook is Ready only while every node that it selects shows its packages as complete. */
import { conditionOf, type SkyhookStatus } from '../../../src/census/skyhook-status.ts'
import { selects } from '../../../src/schemas/selectors.ts'
import type { Skyhook } from '../../../src/schemas/skyhook.ts'
import { appliedHash } from '../../../src/stages/model/applied-hash.ts'
import { publishedState } from '../../e2e/skyhooks.ts'
import type { Evidence, Finding, Violation } from './evidence.ts'

/** The census sees a new or a newly selected node a little later. */
const newNodeMs = 15_000

export function judgeReady({ moments }: Evidence): Finding {
  const violations: Violation[] = []
  let checked = 0
  const wasReady = new Map<string, boolean>()
  const selectedSinceMs = new Map<string, number>()
  for (const { change, nodes, skyhooks } of moments) {
    for (const { metadata, spec } of skyhooks.values()) {
      for (const node of nodes.values()) {
        const key = `${metadata.name} ${node.metadata.uid}`
        if (!selects(spec.nodeSelectors, node.metadata.labels ?? {})) selectedSinceMs.delete(key)
        else if (!selectedSinceMs.has(key)) selectedSinceMs.set(key, change.atMs)
      }
    }
    if (change.kind !== 'skyhooks' || change.type === 'DELETED') continue
    const { metadata, spec } = change.object
    const isReady = isReadyNow(change.object)
    const became = isReady && wasReady.get(metadata.name) !== true
    wasReady.set(metadata.name, isReady)
    if (!became) continue
    checked++
    for (const node of nodes.values()) {
      const sinceMs = selectedSinceMs.get(`${metadata.name} ${node.metadata.uid}`)
      if (sinceMs === undefined || change.atMs - sinceMs < newNodeMs) continue
      const { status, companion } = publishedState(node, metadata.name)
      if (status === 'complete' && companion?.applied === appliedHash(spec)) continue
      const what = `${metadata.name} became Ready at generation ${metadata.generation}`
      const text = `${what} while ${node.metadata.name} was ${status}`
      violations.push({ atMs: change.atMs, text })
    }
  }
  return { checked, violations }
}

/** Its status says so for its current generation. */
export function isReadyNow(skyhook: Skyhook): boolean {
  const ready = conditionOf((skyhook.status ?? {}) as SkyhookStatus, 'Ready')
  return ready?.status === 'True' && ready.observedGeneration === skyhook.metadata.generation
}
