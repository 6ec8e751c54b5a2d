/** JSON whose shape is not known yet. */
export type JsonObject = Readonly<Record<string, unknown>>

/** An object that is neither null nor a list. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

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
