import { ownValue } from './json.ts'
import type { LabelSelector, Taint, Toleration } from './kubernetes.ts'

type Labels = Readonly<Record<string, string>>

/** Kubernetes' label selector; an empty or absent one matches everything. */
export function selects(selector: LabelSelector | undefined, labels: Labels): boolean {
  const required = selector?.matchLabels ?? {}
  const equal = Object.keys(required).every((key) => ownValue(labels, key) === required[key])
  return equal && (selector?.matchExpressions ?? []).every((requirement) => matchesRequirement(requirement, labels))
}

function matchesRequirement(
  { key, operator, values = [] }: NonNullable<LabelSelector['matchExpressions']>[number],
  labels: Labels,
): boolean {
  const value = ownValue(labels, key)
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn':
      return value === undefined || !values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
  }
}

/** True for an empty selector; as podNonInterruptLabels it turns the feature off. */
export const isEmptySelector = (selector: LabelSelector | undefined): boolean =>
  Object.keys(selector?.matchLabels ?? {}).length === 0 && (selector?.matchExpressions ?? []).length === 0

/** Kubernetes' toleration rule for one taint. */
export function tolerates(tolerations: readonly Toleration[], taint: Taint): boolean {
  return tolerations.some(({ key, operator = 'Equal', value = '', effect }) => {
    if (effect !== undefined && effect !== '' && effect !== taint.effect) return false
    if (key === undefined || key === '') return operator === 'Exists'
    if (key !== taint.key) return false
    return operator === 'Exists' || value === (taint.value ?? '')
  })
}
