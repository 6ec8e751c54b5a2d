import { ownValue } from './json.ts'
/** What a selector, a toleration or a pattern of names matches. Pure. */
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

/**
 * Shell-style match of one name, as the keys of configInterrupts use it: `*` any run of characters but `/`, `?` one of
 * them, `[…]` a class (`[^…]` its opposite), `\` takes the next character literally. A malformed pattern matches
 * nothing.
 */
export function matchesGlob(pattern: string, name: string): boolean {
  const expression = toExpression(pattern)
  return expression !== undefined && expression.test(name)
}

function toExpression(pattern: string): RegExp | undefined {
  let source = ''
  for (let index = 0; index < pattern.length; index++) {
    const character = pattern.charAt(index)
    if (character === '*') source += '[^/]*'
    else if (character === '?') source += '[^/]'
    else if (character === '\\') {
      index++
      if (index >= pattern.length) return undefined
      source += RegExp.escape(pattern.charAt(index))
    } else if (character === '[') {
      const end = pattern.indexOf(']', index + (pattern.charAt(index + 1) === '^' ? 3 : 2))
      if (end < 0) return undefined
      const inside = pattern.slice(index + 1, end).replaceAll(/[\\[\]]/g, '\\$&')
      source += `[${inside}]`
      index = end
    } else source += RegExp.escape(character)
  }
  try {
    return new RegExp(`^${source}$`, 'su')
  } catch {
    return undefined // a class such as [z-a]
  }
}
