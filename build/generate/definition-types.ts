/** Types of the resources, from the schemas of crds/: for exactly what these use of OpenAPI. */
import type { Schema } from '../../src/cli/validate/structural.ts'
import { definitions } from './definitions.ts'

/** Source text with a type for each kind, fields as the API server stores them. */
export function definitionTypes(): string {
  const types = definitions().map(
    ({ kind, schema }) => `${docstring(schema)}export type ${kind} = ${typeOf(schema, kind)}`,
  )
  return [
    '// Generated from crds/ by make generate; edit the definitions, not this file.',
    `import type { ObjectMeta } from '${schemasFolder}/kubernetes.ts'`,
    ...types,
  ].join('\n\n')
}

/** Seen from the folder of the types. */
const schemasFolder = '..'
/** Longer descriptions are for the reference page. */
const maxDescriptionLength = 90

function docstring({ description }: Schema): string {
  return description === undefined || description.length > maxDescriptionLength ? '' : `/** ${description} */\n`
}

/** The type of a value. `path` names it in errors. @throws where the schema uses what no type is known for */
export function typeOf(schema: Schema, path: string): string {
  const type = notNullTypeOf(schema, path)
  return schema.nullable ? `${type} | null` : type
}

function notNullTypeOf(schema: Schema, path: string): string {
  const { type, properties, additionalProperties, items } = schema
  if (schema['x-kubernetes-int-or-string']) return 'number | string'
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  switch (type) {
    case 'string':
    case 'boolean':
      return type
    case 'integer':
    case 'number':
      return 'number'
    case 'array':
      if (items === undefined) throw new Error(`${path}: a list needs items`)
      return `readonly (${typeOf(items, `${path}[]`)})[]`
    case 'object':
      if (properties !== undefined) return objectType(schema, path)
      if (additionalProperties !== undefined)
        return `Readonly<Record<string, ${typeOf(additionalProperties, `${path}.*`)}>>`
      if (path.endsWith('.metadata')) return 'ObjectMeta'
      throw new Error(`${path}: an object needs properties or additionalProperties`)
    case undefined:
      throw new Error(`${path} has no type`)
    default:
      return type satisfies never
  }
}

function objectType({ properties = {}, required = [] }: Schema, path: string): string {
  const fields = Object.entries(properties).map(([name, field]) => {
    const isRequired = required.includes(name) || name === 'metadata'
    return `${docstring(field)}readonly ${name}${isRequired ? '' : '?'}: ${typeOf(field, `${path}.${name}`)}`
  })
  return `{\n${fields.join('\n')}\n}`
}
