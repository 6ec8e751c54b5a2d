/** Checks names of objects in a support archive, which may have any author. Pure. */
import { isObject } from '../../schemas/json.ts'

/**
 * Accepts the names that the API server accepts: explanations contain commands with names, and people paste these into
 * shells.
 */
export const isName = (value: unknown): value is string =>
  typeof value === 'string' && /^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/.test(value)

/** Whether an object has such a name, and such a namespace if it has one. */
export function isNamedObject(value: unknown): boolean {
  const metadata = isObject(value) ? value['metadata'] : undefined
  if (!isObject(metadata)) return false
  const { name, namespace } = metadata
  return isName(name) && (namespace === undefined || namespace === '' || isName(namespace))
}
