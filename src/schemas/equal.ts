import { isObject } from './json.ts'

/**
 * Whether two JSON values are equal, field by field; an undefined field differs from an absent one. Shared objects cost
 * nothing, unlike with Node's isDeepStrictEqual: most of what the agent compares is the same object.
 */
export function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, at) => isEqual(item, b[at]))
  if (!isObject(a) || !isObject(b)) return false
  const keys = Object.keys(a)
  if (keys.length !== Object.keys(b).length) return false
  return keys.every((key) => isEqual(a[key], b[key]) && (a[key] !== undefined || Object.hasOwn(b, key)))
}
