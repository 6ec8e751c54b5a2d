/** Reads the TOML files that configure registries of container runtimes, and checks the types of their values. */
import { parse, TomlError } from 'smol-toml'
import { isObject, type JsonObject } from '../../../schemas/json.ts'

/**
 * The tables of a file. Their order is that of the file: the order of hosts is the order of mirrors.
 * @throws Error with the line, without its text: headers may hold tokens
 */
export function parseToml(text: string): JsonObject {
  const found = tryParse(text)
  if (!(found instanceof TomlError)) return found
  const [reason = ''] = found.message.split('\n') // the other lines quote the file, as does the error itself
  throw new Error(`line ${found.line}: ${reason.replace(/^Invalid TOML document: /, '')}`)
}

function tryParse(text: string): JsonObject | TomlError {
  try {
    return parse(text)
  } catch (error) {
    if (error instanceof TomlError) return error
    throw error
  }
}

/** Undefined for an empty string. @throws Error for another type */
export function readString(table: JsonObject, key: string): string | undefined {
  const value = table[key]
  if (value === undefined || typeof value === 'string') return value === '' ? undefined : value
  throw wrongType(key, 'a string', value)
}

/** @throws Error for another type */
export function readBoolean(table: JsonObject, key: string): boolean {
  const { [key]: value = false } = table
  if (typeof value === 'boolean') return value
  throw wrongType(key, 'true or false', value)
}

/** One string is a list of one. @throws Error for another type */
export function readStrings(table: JsonObject, key: string): readonly string[] {
  const { [key]: value = [] } = table
  const items: readonly unknown[] = Array.isArray(value) ? value : [value]
  if (items.every((item) => typeof item === 'string')) return items
  throw wrongType(key, 'a string or a list of strings', value)
}

/** @throws Error for another type */
export function readTable(table: JsonObject, key: string): JsonObject {
  const { [key]: value = {} } = table
  if (isObject(value)) return value
  throw wrongType(key, 'a table', value)
}

/** `[[key]]`, or a list of inline tables. @throws Error for another type */
export function readTables(table: JsonObject, key: string): readonly JsonObject[] {
  const { [key]: value = [] } = table
  if (Array.isArray(value) && value.every(isObject)) return value
  throw wrongType(key, 'a list of tables', value)
}

/** Without the value: headers may hold tokens. */
export function wrongType(key: string, expected: string, value: unknown): Error {
  const found = Array.isArray(value) ? 'a list' : isObject(value) ? 'a table' : typeof value
  return new Error(`${key} must be ${expected}, got ${found}`)
}
