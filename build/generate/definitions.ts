/**
 * Puts the schemas of crds/ where the command-line tool finds them, so that it validates Skyhooks without a cluster:
 * `node build/generate/definitions.ts`. The unit test beside this file fails when they are stale.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

const repository = join(import.meta.dirname, '..', '..')

/** Where the schemas are committed. */
export const committedDefinitions = join(repository, 'src/cli/validate/generated/definitions.json')

type Definition = {
  readonly spec: {
    readonly group: string
    readonly names: { readonly kind: string }
    readonly versions: readonly { readonly name: string; readonly schema: { readonly openAPIV3Schema: object } }[]
  }
}

/** Schema by kind and API version, without what only the server uses. */
export function definitions(): { readonly apiVersion: string; readonly kind: string; readonly schema: object }[] {
  const folder = join(repository, 'crds')
  return readdirSync(folder).flatMap((file) => {
    const { spec } = parse(readFileSync(join(folder, file), 'utf8')) as Definition
    return spec.versions.map(({ name, schema }) => ({
      apiVersion: `${spec.group}/${name}`,
      kind: spec.names.kind,
      schema: withoutStatus(schema.openAPIV3Schema),
    }))
  })
}

/** Nobody writes a status into a file. */
function withoutStatus(schema: { readonly properties?: Readonly<Record<string, unknown>> }): object {
  const { status: _status, ...properties } = schema.properties ?? {}
  return { ...schema, properties }
}

if (import.meta.main) writeFileSync(committedDefinitions, `${JSON.stringify(definitions(), null, 2)}\n`)
