/** What differs between two objects, field by field, for people. Pure. */
import { isEqual, isObject, type JsonObject } from '../../schemas/json.ts'
import { clip } from '../../schemas/plain-text.ts'

type Scalar = string | number | boolean | null

export type FieldChange = {
  /** Such as `spec.packages.tuning.version`. */
  readonly field: string
  readonly change: 'added' | 'changed' | 'removed'
  /** Absent for lists and objects, and for what may be confidential: variables and files of packages. */
  readonly before?: Scalar
  readonly after?: Scalar
}

/** In the order of the fields' names. What only the API server, kubectl or agents write is left out. */
export function fieldChanges(before: JsonObject | undefined, after: JsonObject | undefined): readonly FieldChange[] {
  return differences([], partOf(before), partOf(after)).toSorted((a, b) => (a.field < b.field ? -1 : 1))
}

function partOf(object: JsonObject | undefined): JsonObject {
  if (object === undefined) return {}
  const { metadata, spec } = object
  const { labels, annotations } = isObject(metadata) ? metadata : {}
  const shown = {
    ...(isObject(labels) && { labels }),
    ...(isObject(annotations) && { annotations: withoutKubectl(annotations) }),
  }
  return { ...(isObject(spec) && { spec }), ...(Object.keys(shown).length > 0 && { metadata: shown }) }
}

/** kubectl keeps a copy of the file in an annotation. */
const withoutKubectl = (annotations: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(annotations).filter(([key]) => !key.startsWith('kubectl.kubernetes.io/')))

function differences(path: readonly string[], before: JsonObject, after: JsonObject): readonly FieldChange[] {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return keys.flatMap((key): readonly FieldChange[] => {
    const own = [...path, key]
    const [old, next] = [before[key], after[key]]
    if (isEqual(old, next)) return []
    if (isObject(old) || isObject(next)) {
      const inside = differences(own, isObject(old) ? old : {}, isObject(next) ? next : {})
      if (inside.length > 0 || own[0] === 'metadata') return inside
    }
    const change = old === undefined ? 'added' : next === undefined ? 'removed' : 'changed'
    const isShown = !isConfidential(own)
    const values = { ...shown('before', old), ...shown('after', next) }
    return [{ field: fieldOf(own), change, ...(isShown && values) }]
  })
}

const plainName = /^[A-Za-z0-9_-]+$/
const fieldOf = ([first = '', ...rest]: readonly string[]): string =>
  rest.reduce((field, name) => (plainName.test(name) ? `${field}.${name}` : `${field}[${JSON.stringify(name)}]`), first)

/** Values there may be passwords; a pull request shows what is printed here to many. */
const isConfidential = ([root, packages, , field]: readonly string[]): boolean =>
  root === 'spec' && packages === 'packages' && (field === 'env' || field === 'configMap')

const maxShown = 81

function shown(name: 'before' | 'after', value: unknown): { readonly [K in typeof name]?: Scalar } {
  if (value === undefined || (typeof value === 'object' && value !== null)) return {}
  return { [name]: typeof value === 'string' ? clip(value, maxShown) : (value as Scalar) }
}
