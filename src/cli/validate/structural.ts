/** What the API server checks before any rule: types, limits, patterns, unknown fields. Pure. */
import { isObject } from '../../schemas/json.ts'
import { pointerSegment, type Problem } from '../../schemas/validation.ts'

/** The part of Kubernetes' structural schemas that our resource definitions use. */
export type CelRule = {
  readonly rule: string
  readonly message: string
  readonly messageExpression?: string
  readonly fieldPath?: string
}

export type Schema = {
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean'
  readonly description?: string
  readonly nullable?: boolean
  readonly default?: unknown
  readonly enum?: readonly unknown[]
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema
  readonly items?: Schema
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly maxItems?: number
  readonly maxProperties?: number
  readonly 'x-kubernetes-int-or-string'?: boolean
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map'
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
  readonly 'x-kubernetes-validations'?: readonly CelRule[]
}

/** The schema of a field of an object. */
export const fieldSchema = (schema: Schema, name: string): Schema | undefined =>
  schema.properties && Object.hasOwn(schema.properties, name) ? schema.properties[name] : schema.additionalProperties

/** Every violation below the value, deepest places included. */
export function structuralProblems(schema: Schema, value: unknown, pointer: string): Problem[] {
  if (value === null) {
    if (schema.nullable === true || schema.default !== undefined) return []
    return [wrongType(schema, value, pointer)]
  }
  if (schema['x-kubernetes-int-or-string'] === true) {
    if (typeof value === 'string') return stringProblems(schema, value, pointer)
    return Number.isInteger(value) ? [] : [wrongType({ ...schema, type: 'string' }, value, pointer)]
  }
  const { type } = schema
  if (type === undefined) return []
  switch (type) {
    case 'object':
      return isObject(value) ? objectProblems(schema, value, pointer) : [wrongType(schema, value, pointer)]
    case 'array':
      return Array.isArray(value) ? arrayProblems(schema, value, pointer) : [wrongType(schema, value, pointer)]
    case 'string':
      return typeof value === 'string' ? stringProblems(schema, value, pointer) : [wrongType(schema, value, pointer)]
    case 'integer':
      return Number.isInteger(value)
        ? numberProblems(schema, Number(value), pointer)
        : [wrongType(schema, value, pointer)]
    case 'number':
      return typeof value === 'number' ? numberProblems(schema, value, pointer) : [wrongType(schema, value, pointer)]
    case 'boolean':
      return typeof value === 'boolean' ? [] : [wrongType(schema, value, pointer)]
  }
}

/** The value as the API server would store it: defaults set, null gone where it means nothing. */
export function withDefaults(schema: Schema, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => withDefaults(schema.items ?? {}, item))
  if (!isObject(value)) return value
  const result: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(value)) {
    const own = fieldSchema(schema, name) ?? {}
    if (field !== null || own.default === undefined) result[name] = withDefaults(own, field)
  }
  for (const [name, own] of Object.entries(schema.properties ?? {}))
    if (own.default !== undefined && !Object.hasOwn(result, name)) result[name] = withDefaults(own, own.default)
  return result
}

function objectProblems(schema: Schema, value: Readonly<Record<string, unknown>>, pointer: string): Problem[] {
  const problems: Problem[] = []
  for (const name of schema.required ?? []) {
    if (Object.hasOwn(value, name)) continue
    const at = `${pointer}/${pointerSegment(name)}`
    problems.push(problem('required', at, 'is missing', `add ${name}${meaningOf(fieldSchema(schema, name))}`))
  }
  const names = Object.keys(value)
  if (schema.maxProperties !== undefined && names.length > schema.maxProperties) {
    const message = `has ${names.length} entries; at most ${schema.maxProperties} are allowed`
    problems.push(problem('maxProperties', pointer, message, `keep at most ${schema.maxProperties} entries`))
  }
  for (const [name, field] of Object.entries(value)) {
    const at = `${pointer}/${pointerSegment(name)}`
    const own = fieldSchema(schema, name)
    if (own !== undefined) problems.push(...structuralProblems(own, field, at))
    else if (schema.properties !== undefined) problems.push(unknownField(schema.properties, name, at))
  }
  return problems
}

function unknownField(properties: Readonly<Record<string, Schema>>, name: string, pointer: string): Problem {
  const known = Object.keys(properties)
  const similar = known.find((one) => one.toLowerCase() === name.toLowerCase() || isOneEditAway(one, name))
  const remedy = similar === undefined ? `remove it, or write one of ${known.join(', ')}` : `write ${similar} instead`
  return problem('unknown-field', pointer, 'is not a known field', remedy)
}

/** One letter more, less or different. */
function isOneEditAway(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > 1) return false
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start++
  let end = 0
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++
  return Math.max(a.length, b.length) - start - end <= 1
}

function arrayProblems(schema: Schema, value: readonly unknown[], pointer: string): Problem[] {
  const problems = value.flatMap((item, index) => structuralProblems(schema.items ?? {}, item, `${pointer}/${index}`))
  if (schema.maxItems !== undefined && value.length > schema.maxItems) {
    const message = `has ${value.length} items; at most ${schema.maxItems} are allowed`
    problems.push(problem('maxItems', pointer, message, `keep at most ${schema.maxItems} items`))
  }
  if (schema['x-kubernetes-list-type'] !== 'map') return problems
  const keys = schema['x-kubernetes-list-map-keys'] ?? []
  const seen = new Set<string>()
  for (const [index, item] of value.entries()) {
    const key = JSON.stringify(keys.map((name) => (isObject(item) ? item[name] : undefined)))
    if (seen.has(key)) {
      const message = `has the same ${keys.join(', ')} as an earlier item`
      problems.push(
        problem('duplicate', `${pointer}/${index}`, message, `change ${keys.join(', ')}, or remove the item`),
      )
    }
    seen.add(key)
  }
  return problems
}

function stringProblems(schema: Schema, value: string, pointer: string): Problem[] {
  const problems: Problem[] = []
  const { enum: values, pattern, minLength = 0, maxLength } = schema
  if (values !== undefined && !values.includes(value)) {
    const allowed = values.filter((word) => word !== '').join(', ')
    problems.push(problem('enum', pointer, `must be one of ${allowed}`, `write one of ${allowed}`, value))
  }
  const length = Array.from(value).length // characters, as the API server counts
  if (maxLength !== undefined && length > maxLength) {
    const message = `has ${length} characters; at most ${maxLength} are allowed`
    problems.push(problem('maxLength', pointer, message, `write at most ${maxLength} characters`, value))
  }
  if (length < minLength) {
    const message = minLength === 1 ? 'is empty' : `has ${length} characters; at least ${minLength} are required`
    problems.push(problem('minLength', pointer, message, `write a value${meaningOf(schema)}`, value))
  }
  if (pattern !== undefined && !new RegExp(pattern, 'u').test(value)) {
    const remedy = `write text that matches it${meaningOf(schema)}`
    problems.push(problem('pattern', pointer, `does not match ${pattern}`, remedy, value))
  }
  return problems
}

function numberProblems({ minimum, maximum }: Schema, value: number, pointer: string): Problem[] {
  if (minimum !== undefined && value < minimum)
    return [problem('minimum', pointer, `must be at least ${minimum}`, `write ${minimum} or more`, value)]
  if (maximum !== undefined && value > maximum)
    return [problem('maximum', pointer, `must be at most ${maximum}`, `write ${maximum} or less`, value)]
  return []
}

const typeNames: Readonly<Record<NonNullable<Schema['type']>, string>> = {
  object: 'an object',
  array: 'a list',
  string: 'a string',
  integer: 'an integer',
  number: 'a number',
  boolean: 'true or false',
}

function wrongType(schema: Schema, value: unknown, pointer: string): Problem {
  const expected = typeNames[schema.type ?? 'object']
  const found = value === null ? 'null' : Array.isArray(value) ? 'a list' : typeof value
  const isBareWord = schema.type === 'string' && (typeof value === 'number' || typeof value === 'boolean')
  const remedy = isBareWord
    ? 'put the value in quotes, so that YAML does not read it as something else'
    : `${value === null ? 'remove the field, which has no value here, or ' : ''}write ${expected}${meaningOf(schema)}`
  return problem('type', pointer, `must be ${expected}, got ${found}`, remedy, value)
}

const meaningOf = (schema: Schema | undefined): string =>
  schema?.description === undefined ? '' : `: ${schema.description.replace(/\.$/, '')}`

const problem = (rule: string, pointer: string, message: string, remedy: string, value?: unknown): Problem => ({
  pointer,
  message,
  rule: `schema/${rule}`,
  remedy,
  ...(value !== undefined && { value }),
})
