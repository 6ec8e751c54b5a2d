/** The schemas of crds/ for the command-line tool, so that it validates Skyhooks without a cluster. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

const repository = join(import.meta.dirname, '..', '..')

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
