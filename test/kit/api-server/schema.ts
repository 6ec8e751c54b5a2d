/** What the structural schema of a custom resource does to an object: unknown fields are pruned, defaults set. */
import { type Fields, fieldsOf, isAdopted, isFields } from './json.ts'

export type Schema = {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
  readonly default?: unknown
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean
}

/** Of the whole object; metadata are none of the schema's business. */
export function applySchema(schema: Schema, object: Fields): Fields {
  const { apiVersion, kind, metadata, ...rest } = object
  return { apiVersion, kind, metadata, ...fieldsOf(applied(schema, rest)) }
}

function applied(schema: Schema, value: unknown): unknown {
  if (Array.isArray(value)) {
    const { items } = schema
    return items === undefined ? value : value.map((item: unknown) => applied(items, item))
  }
  if (!isFields(value) || fitting.get(value) === schema) return value
  const { properties = {}, additionalProperties } = schema
  const result: Record<string, unknown> = {}
  for (const [key, field] of Object.entries(value)) {
    const known = properties[key] ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
    if (known !== undefined) result[key] = applied(known, field)
    else if (additionalProperties === true || schema['x-kubernetes-preserve-unknown-fields'] === true)
      result[key] = field
  }
  for (const [key, property] of Object.entries(properties))
    if (!(key in value) && property.default !== undefined) result[key] = applied(property, property.default)
  if (isAdopted(value) && isAlike(result, value)) {
    fitting.set(value, schema)
    return value
  }
  return result
}

/** What a schema leaves as it is. */
const fitting = new WeakMap<object, Schema>()

function isAlike(a: Fields, b: Fields): boolean {
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key])
}
