/**
 * The plan of a file on what a support archive has. Nobody is asked whether the API server would take it: this tool
 * checks its rules. An archive does not say what was applied last. The whole archived spec counts as that: what the
 * file lacks of it would be removed.
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

/** `transport`: the archive in place of an API server. @throws CommandError where it has no Skyhooks */
export async function planArchivedFile(manifests: Manifests, options: PlanOptions): Promise<FilePlan> {
  try {
    return await planFile(complete(manifests), { ...options, transport: withLastApplied(options.transport) })
  } catch (error) {
    if (error instanceof UnreadError) throw refusedError(`cannot plan: ${error.message}`)
    throw error
  }
}

/** What a file leaves to the defaults is not removed. */
const complete = ({ manifests, others }: Manifests): Manifests => ({
  manifests: manifests.map((one) => ({ ...one, object: withDefaultsOf(one.object) })),
  others,
})

/** Single objects as an API server gives them, and as if their spec had been applied. */
const withLastApplied = (transport: KubeTransport): KubeTransport => ({
  ...transport,
  async json<T>(...[method, path, options]: Parameters<KubeTransport['json']>): Promise<T> {
    const found = await transport.json<JsonObject>(method, path, options)
    const [kind] = Object.entries(collections).find(([, collection]) => path.startsWith(`${collection}/`)) ?? []
    return (method === 'GET' && kind !== undefined ? applied(kind, found) : found) as T
  },
})

/** Items of a LIST do not say their kind; those of an older resource definition lack its newer defaults. */
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
