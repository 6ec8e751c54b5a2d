/**
 * What `kubectl apply` sends for an object without types: a JSON merge patch (RFC 7386) that sets what the file says,
 * and removes what the file of the last apply said and this one does not. Pure.
 */
import { isEqual, isObject, type JsonObject } from '../../../schemas/json.ts'

export const lastAppliedKey = 'kubectl.kubernetes.io/last-applied-configuration'

/** `lastApplied`: what the object's annotation says; undefined: it was never applied, and nothing is removed. */
export const applyPatch = (lastApplied: JsonObject | undefined, desired: JsonObject, present: JsonObject): JsonObject =>
  joined(additions(desired, present), removals(lastApplied ?? {}, withAnnotations(desired), present))

/** kubectl writes its own annotation into each file before it compares: annotations as a whole are never removed. */
function withAnnotations(desired: JsonObject): JsonObject {
  const metadata = isObject(desired['metadata']) ? desired['metadata'] : {}
  return { ...desired, metadata: { ...metadata, annotations: metadata['annotations'] ?? {} } }
}

function additions(desired: JsonObject, present: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(desired).flatMap(([key, value]): [string, unknown][] => {
      const found = present[key]
      if (isObject(value) && isObject(found)) {
        const inside = additions(value, found)
        return Object.keys(inside).length === 0 ? [] : [[key, inside]]
      }
      return isEqual(value, found) || (value === null && found === undefined) ? [] : [[key, value]]
    }),
  )
}

function removals(before: JsonObject, desired: JsonObject, present: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(before).flatMap(([key, value]): [string, unknown][] => {
      const found = present[key]
      if (found === undefined) return []
      if (!Object.hasOwn(desired, key)) return [[key, null]]
      const next = desired[key]
      if (!isObject(value) || !isObject(next) || !isObject(found)) return []
      const inside = removals(value, next, found)
      return Object.keys(inside).length === 0 ? [] : [[key, inside]]
    }),
  )
}

function joined(one: JsonObject, other: JsonObject): JsonObject {
  const both = Object.keys(one).filter((key) => isObject(one[key]) && isObject(other[key]))
  const inside = both.map((key) => [key, joined(one[key] as JsonObject, other[key] as JsonObject)] as const)
  return { ...one, ...other, ...Object.fromEntries(inside) }
}

/** The object after a JSON merge patch. */
export function merged(present: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  const result: Record<string, unknown> = isObject(present) ? { ...present } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else result[key] = merged(result[key], value)
  }
  return result
}
