/** The resource definitions in crds/, and their schemas for the command-line tool. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseDocument, type Document } from 'yaml'
import type { Schema } from '../../src/cli/validate/structural.ts'

const folder = join(import.meta.dirname, '..', '..', 'crds')

type CustomResourceDefinition = {
  readonly spec: {
    readonly group: string
    readonly names: { readonly kind: string }
    readonly versions: readonly { readonly name: string; readonly schema: { readonly openAPIV3Schema: Schema } }[]
  }
}

export type Definition = { readonly apiVersion: string; readonly kind: string; readonly schema: Schema }

/** By kind. */
export const definitionFiles = (): readonly string[] => readdirSync(folder).sort()

/** The text of a definition with its comments. */
export const definitionDocument = (file: string): Document => parseDocument(readFileSync(join(folder, file), 'utf8'))

/** Each kind and API version. */
export function definitions(): readonly Definition[] {
  return definitionFiles().flatMap((file) => {
    const { spec } = definitionDocument(file).toJS() as CustomResourceDefinition
    return spec.versions.map(({ name, schema }) => ({
      apiVersion: `${spec.group}/${name}`,
      kind: spec.names.kind,
      schema: schema.openAPIV3Schema,
    }))
  })
}

/** For the command-line tool, so that it validates files without a cluster. Nobody writes a status into a file. */
export function definitionsOfFiles(): readonly Definition[] {
  return definitions().map(({ schema, ...definition }) => {
    const { status: _status, ...properties } = schema.properties ?? {}
    return { ...definition, schema: { ...schema, properties } }
  })
}
