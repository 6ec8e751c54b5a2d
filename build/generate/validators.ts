/**
 * Compiles the JSON Schemas of src/schemas into plain functions, so that the agent carries neither ajv nor run-time
 * code generation.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import Ajv2020 from 'ajv/dist/2020.js'
import standaloneCode from 'ajv/dist/standalone/index.js'

const schemas = join(import.meta.dirname, '..', '..', 'src', 'schemas')
/** Seen from the folder of the validators. */
const schemasFolder = '..'

/** Source text of the validator of one schema. Deterministic: same schema, same text. */
export function validatorSource(file: string, exportName: string): string {
  const schema = JSON.parse(readFileSync(join(schemas, file), 'utf8')) as { readonly $id: string }
  // `verbose` keeps the data and the violated sub-schema in each error: users see its description.
  const ajv = new Ajv2020.default({
    allErrors: true,
    verbose: true,
    strict: true,
    code: { source: true, esm: true, lines: true },
  })
  ajv.addSchema(schema)
  const code = standaloneCode.default(ajv, { [exportName]: schema.$id })
  if (code.includes('require('))
    throw new Error(`${file} uses a keyword whose helper ajv loads at run time; reword the rule`)

  return `${[
    `// Generated from ${file} by make generate; edit the schema, not this file.`,
    '// @ts-nocheck',
    `import type { Validate } from '${schemasFolder}/validation.ts'`,
    '',
    code
      .replace('"use strict";', '')
      .replace(new RegExp(`export const ${exportName} = (\\w+);`), `export const ${exportName}: Validate = $1;`)
      .trim(),
  ].join('\n')}\n`
}
