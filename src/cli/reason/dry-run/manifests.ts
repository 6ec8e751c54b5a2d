/** The objects of a file for a plan. Pure. */
import { apiGroup, policiesPath, skyhooksPath } from '../../../schemas/api.ts'
import { isObject, type JsonObject } from '../../../schemas/json.ts'
import { usageError } from '../../base/framework/command-error.ts'
import { readDocuments, type SourceDocument } from '../../validate/documents.ts'

export type Manifest = {
  readonly kind: keyof typeof collections
  readonly name: string
  readonly object: JsonObject
}

export type Manifests = {
  /** DeploymentPolicies and Skyhooks, in the order of the file. */
  readonly manifests: readonly Manifest[]
  /** Kinds and names of all other objects, which agents ignore. */
  readonly others: readonly string[]
}

/** The API path of each kind. */
export const collections = { Skyhook: skyhooksPath, DeploymentPolicy: policiesPath } as const

/**
 * Throws a usage error with the line for invalid YAML, for an object without a name or a duplicate, and for an empty
 * file.
 */
export function readManifests(text: string, file: string): Manifests {
  const { documents, problems } = readDocuments(text)
  const [problem] = problems
  if (problem) throw usageError(`${file}:${problem.line ?? 1}: ${problem.message}`, problem.remedy)
  const manifests: Manifest[] = []
  const others: string[] = []
  for (const { object, line } of documents.flatMap((document) => objectsIn(document, file))) {
    const { apiVersion, kind, metadata } = object
    const { name } = isObject(metadata) ? metadata : {}
    const isOurs = typeof apiVersion === 'string' && apiVersion.startsWith(`${apiGroup}/`)
    const known = (['Skyhook', 'DeploymentPolicy'] as const).find((one) => one === kind)
    if (!isOurs || known === undefined) {
      others.push(`${String(kind)}/${typeof name === 'string' ? name : ''}`)
      continue
    }
    const place = `${file}:${line}`
    if (typeof name !== 'string' || name === '')
      throw usageError(`${place}: a ${known} has no metadata.name`, 'give it a name')
    if (manifests.some((one) => one.kind === known && one.name === name))
      throw usageError(`${place}: ${known} ${name} is in the file twice`, 'remove one of the two')
    manifests.push({ kind: known, name, object })
  }
  if (manifests.length === 0)
    throw usageError(
      `${file} has no Skyhook and no DeploymentPolicy`,
      `its documents need apiVersion: ${apiGroup}/v1alpha1 and one of these kinds`,
    )
  return { manifests, others }
}

function objectsIn(
  document: SourceDocument,
  file: string,
): readonly { readonly object: JsonObject; readonly line: number }[] {
  const { value } = document
  if (!isObject(value))
    throw usageError(`${file}:${document.lineOf('')}: a document is not an object`, 'write YAML objects')
  const { items } = value
  if (value['kind'] !== 'List' || !Array.isArray(items)) return [{ object: value, line: document.lineOf('') }]
  return items.flatMap((item: unknown, at) =>
    isObject(item) ? [{ object: item, line: document.lineOf(`/items/${at}`) }] : [],
  )
}
