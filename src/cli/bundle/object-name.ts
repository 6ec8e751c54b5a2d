/** Names of objects in a support archive, which anybody may have written. Pure. */
import { isObject } from '../../schemas/json.ts'

/** As the API server takes names: explanations put them into commands, and people paste these into shells. */
export const isName = (value: unknown): value is string =>
  typeof value === 'string' && /^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/.test(value)

/** An object with such a name, in such a namespace if in any. */
export function isNamedObject(value: unknown): boolean {
  const metadata = isObject(value) ? value['metadata'] : undefined
  if (!isObject(metadata)) return false
  const { name, namespace } = metadata
  return isName(name) && (namespace === undefined || namespace === '' || isName(namespace))
}
