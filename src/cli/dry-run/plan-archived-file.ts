/**
 * Plans a file with the data of a support archive. This tool checks the rules itself, because there is no API server to
 * ask. An archive does not contain the last applied configuration. The whole archived spec is used in its place: fields
 * that the file lacks would be removed.
 */
import type { KubeTransport } from '../../kube/transport.ts'
import { skyhookTypeMeta } from '../../schemas/api.ts'
import { isObject, type JsonObject } from '../../schemas/json.ts'
import { UnreadError } from '../fleet-view/readable.ts'
import { refusedError } from '../framework/command-error.ts'
import { lastAppliedKey } from '../plan/three-way-merge.ts'
import { collections, type Manifests } from './manifests.ts'
import { type FilePlan, planFile, type PlanOptions } from './plan-file.ts'
import { withDefaultsOf } from './rehearsed-write.ts'

/** `transport` is the archive in place of an API server. @throws CommandError if it has no Skyhooks */
export async function planArchivedFile(manifests: Manifests, options: PlanOptions): Promise<FilePlan> {
  try {
    return await planFile(complete(manifests), { ...options, transport: withLastApplied(options.transport) })
  } catch (error) {
    if (error instanceof UnreadError) throw refusedError(`cannot plan: ${error.message}`)
    throw error
  }
}

/** Adds defaults, so that fields which the file leaves to them are not removed. */
const complete = ({ manifests, others }: Manifests): Manifests => ({
  manifests: manifests.map((one) => ({ ...one, object: withDefaultsOf(one.object) })),
  others,
})

/** Returns single objects like an API server, as if their spec had been applied. */
const withLastApplied = (transport: KubeTransport): KubeTransport => ({
  ...transport,
  async json<T>(...[method, path, options]: Parameters<KubeTransport['json']>): Promise<T> {
    const found = await transport.json<JsonObject>(method, path, options)
    const [kind] = Object.entries(collections).find(([, collection]) => path.startsWith(`${collection}/`)) ?? []
    return (method === 'GET' && kind !== undefined ? applied(kind, found) : found) as T
  },
})

/** Items of a LIST have no kind, and those of an older resource definition lack newer defaults. */
function applied(kind: string, object: JsonObject): JsonObject {
  const metadata = isObject(object['metadata']) ? object['metadata'] : {}
  const annotations = isObject(metadata['annotations']) ? metadata['annotations'] : {}
  const last = JSON.stringify({ spec: object['spec'] })
  return withDefaultsOf({
    ...object,
    apiVersion: skyhookTypeMeta.apiVersion,
    kind,
    metadata: { ...metadata, annotations: { ...annotations, [lastAppliedKey]: last } },
  })
}
