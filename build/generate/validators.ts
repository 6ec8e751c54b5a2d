/**
 * Compiles the JSON Schemas of src/schemas into plain functions, so that the agent carries neither ajv nor run-time
 * code generation: `node build/generate/validators.ts` writes them, the unit test beside this file fails when they are
 * stale.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Ajv2020 from 'ajv/dist/2020.js'
import standaloneCode from 'ajv/dist/standalone/index.js'

const schemas = join(import.meta.dirname, '..', '..', 'src', 'schemas')

type Target = { readonly schema: string; readonly exportName: string; readonly file: string }

/** Every schema with a compiled validator. */
export const targets: readonly Target[] = [
  { schema: 'package-config.v1.schema.json', exportName: 'validatePackageConfig', file: 'package-config-validator.ts' },
]

/** Source text of the validator of one schema. Deterministic: same schema, same text. */
export function validatorSource(target: Target): string {
  const schema = JSON.parse(readFileSync(join(schemas, target.schema), 'utf8')) as { readonly $id: string }
  // `verbose` keeps the data and the violated sub-schema in each error: users see its description.
  const ajv = new Ajv2020.default({
    allErrors: true,
    verbose: true,
    strict: true,
    code: { source: true, esm: true, lines: true },
  })
  ajv.addSchema(schema)
  const code = standaloneCode.default(ajv, { [target.exportName]: schema.$id })
  if (code.includes('require('))
    throw new Error(`${target.schema} uses a keyword whose helper ajv loads at run time; reword the rule`)

  return `${[
    `// Generated from ${target.schema} by build/generate/validators.ts; edit the schema, not this file.`,
    '// @ts-nocheck',
    "import type { Validate } from '../validation.ts'",
    '',
    code
      .replace('"use strict";', '')
      .replace(
        new RegExp(`export const ${target.exportName} = (\\w+);`),
        `export const ${target.exportName}: Validate = $1;`,
      )
      .trim(),
  ].join('\n')}\n`
}

/** Where the validator of a target is committed. */
export const committedFile = (target: Target): string => join(schemas, 'generated', target.file)

if (import.meta.main) {
  for (const target of targets) writeFileSync(committedFile(target), validatorSource(target))
}
