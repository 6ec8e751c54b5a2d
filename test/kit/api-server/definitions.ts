/** The schemas of our custom resource definitions, for the simulated API server. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { Schema } from './schema.ts'

type Definition = {
  readonly spec: { readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: Schema } }[] }
}

/** By plural. */
export function readSchemas(): Readonly<Record<string, Schema>> {
  const read = (plural: string): Schema => {
    const path = join(import.meta.dirname, '../../../crds', `skyhook.nvidia.com_${plural}.yaml`)
    const [version] = (parse(readFileSync(path, 'utf8')) as Definition).spec.versions
    if (version === undefined) throw new Error(`${path} defines no version`)
    return version.schema.openAPIV3Schema
  }
  return { skyhooks: read('skyhooks'), deploymentpolicies: read('deploymentpolicies') }
}
