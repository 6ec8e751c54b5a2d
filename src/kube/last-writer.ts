import type { KubeObject } from './objects.ts'
import type { Transport } from './transport.ts'

type ManagedFields = { readonly manager?: string; readonly time?: string; readonly subresource?: string }
type Managed = KubeObject & { readonly metadata: KubeObject['metadata'] & { readonly managedFields?: readonly ManagedFields[] } }

/**
 * Field manager of the latest write to an object's spec or metadata by somebody else than `except`; undefined when the
 * object does not say. A person reads it to find out who it was; nothing is decided from it.
 */
export async function lastWriter(transport: Transport, path: string, except: string, signal?: AbortSignal): Promise<string | undefined> {
  const { metadata } = await transport.json<Managed>('GET', path, { signal })
  const others = (metadata.managedFields ?? []).filter(
    ({ manager, subresource }) => subresource === undefined && manager !== undefined && !manager.startsWith(except),
  )
  return others.toSorted((a, b) => ((a.time ?? '') < (b.time ?? '') ? 1 : -1))[0]?.manager
}
