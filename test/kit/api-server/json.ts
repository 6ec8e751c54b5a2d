/** Immutable JSON: what the server stores and hands out, shared by everybody who reads it. */

const owned = new WeakSet<object>()

/**
 * The value as JSON carries it (without undefined fields), deep-frozen and independent of the caller's. What was
 * adopted before is taken as it is.
 */
export function adopt<T>(value: T): T {
  if (typeof value !== 'object' || value === null || owned.has(value)) return value
  const copy = Array.isArray(value) ? value.map((item: unknown) => adopt(item ?? null)) : adoptedFields(value as Fields)
  owned.add(Object.freeze(copy))
  return copy as T
}

function adoptedFields(fields: Fields): Fields {
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(fields)) if (fields[key] !== undefined) copy[key] = adopt(fields[key])
  return copy
}

/** Whether `adopt` made it: then it never changes. */
export const isAdopted = (value: object): boolean => owned.has(value)

export function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a))
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => isEqual(item, b[index]))
  if (Array.isArray(b)) return false
  const keys = Object.keys(a)
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && isEqual((a as Fields)[key], (b as Fields)[key]))
  )
}

export type Fields = Readonly<Record<string, unknown>>

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {})

/** Without these fields; the same object if it has none of them. */
export function without(fields: Fields, ...names: readonly string[]): Fields {
  if (!names.some((name) => name in fields)) return fields
  const kept: Record<string, unknown> = {}
  for (const name of Object.keys(fields)) if (!names.includes(name)) kept[name] = fields[name]
  return kept
}
