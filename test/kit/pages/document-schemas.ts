/** The schemas of what commands write with `-o json`, as the package of the tool ships them. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Ajv2020 from 'ajv/dist/2020.js'
import type { Command } from '../../../src/cli/base/framework/command.ts'
import { isObject } from '../../../src/schemas/json.ts'

const folder = join(import.meta.dirname, '..', '..', '..', 'src', 'cli', 'json-schemas')

export const schemaFiles: readonly string[] = readdirSync(folder)

/** Commands that write documents. */
export const writesJson = ({ formats = [] }: Command): boolean => formats.includes('json')

/** The file named after a command; those that change something write the same document, unless they have one. */
export function schemaOf({ name, isAction }: Command): string {
  const own = `${name.replaceAll(' ', '-')}.json`
  return schemaFiles.includes(own) || isAction !== true ? own : 'changes.json'
}

/**
 * What is wrong with a document. Fields that the schema does not name are wrong, too: programs have to expect them of
 * later versions, but what this version writes is all there.
 */
export function schemaErrors(file: string, document: unknown): readonly string[] {
  const ajv = new Ajv2020.default({ allErrors: true, strict: true, strictTypes: false })
  const schema: unknown = JSON.parse(readFileSync(join(folder, file), 'utf8'))
  const validate = ajv.compile(closed(schema) as object)
  validate(document)
  return (validate.errors ?? []).map(({ instancePath, message = '', params }) =>
    `${instancePath} ${message} ${JSON.stringify(params)}`.trim(),
  )
}

function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (!isObject(schema)) return schema
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]))
  return isObject(schema['properties']) ? { ...inner, additionalProperties: false } : inner
}
