import { getIfExists } from '../../kube/get.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import type { ReferencePort } from '../../packages/step/references.ts'

type Data = { readonly data?: Readonly<Record<string, string>> }

/** Secrets and ConfigMaps of the agent's namespace, read by name when needed, and not cached. */
export function createReferences(transport: KubeTransport, namespace: string): ReferencePort {
  const read = async (plural: string, name: string): Promise<Readonly<Record<string, string>> | undefined> => {
    const path = `/api/v1/namespaces/${namespace}/${plural}/${encodeURIComponent(name)}`
    const found = await getIfExists<Data>(transport, path)
    return found && (found.data ?? {})
  }
  return { secret: (name) => read('secrets', name), configMap: (name) => read('configmaps', name) }
}
