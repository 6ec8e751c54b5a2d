/** JSON values whose shape is not known yet: read, compared, and asked for what they have themselves. Pure. */

/** JSON whose shape is not known yet. */
export type JsonObject = Readonly<Record<string, unknown>>

/** An object that is neither null nor a list. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')

/** The value of a JSON text; undefined, which no JSON text means, when it is malformed. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The JSON object of a text; undefined for any other content, and for no text. */
export function parseObject(text: string | undefined): JsonObject | undefined {
  const value = text === undefined ? undefined : parseJson(text)
  return isObject(value) ? value : undefined
}

/** The message of any thrown value. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

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

/**
 * The value under a name that people choose: of a package, a Skyhook, a compartment, a label. Undefined for a name that
 * the object only inherits, such as `constructor`, which is a valid name.
 */
export function ownValue<T>(values: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return values !== undefined && Object.hasOwn(values, name) ? values[name] : undefined
}
