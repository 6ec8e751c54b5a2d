import { sha256Hex } from '../schemas/canonical-json.ts'
import type { LabelSelector } from '../schemas/kubernetes.ts'
import { perObject } from '../schemas/per-object.ts'

/**
 * 16 hex digits that are equal for selectors that select the same by their form: order of labels, requirements and
 * values does not matter, absent and empty are one. The ledger carries it, so that nobody takes a percentage of nodes
 * that another selector matched.
 */
export const selectorHash = (selector: LabelSelector = {}): string => hashOf(selector)

const hashOf = perObject((selector: LabelSelector): string => {
  const labels = Object.entries(selector.matchLabels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
  const expressions = (selector.matchExpressions ?? [])
    .map(({ key, operator, values = [] }) => JSON.stringify([key, operator, values.toSorted()]))
    .toSorted()
  return sha256Hex(JSON.stringify([labels, expressions])).slice(0, 16)
})
