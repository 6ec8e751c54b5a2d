import type { KubeObject } from './objects.ts'
import type { Transport } from './transport.ts'

type Fields = { readonly [field: string]: Fields }
type ManagedFields = { readonly manager?: string; readonly fieldsV1?: Fields }
type Managed = KubeObject & { readonly metadata: KubeObject['metadata'] & { readonly managedFields?: readonly ManagedFields[] } }

/**
 * Field manager that cordoned a Node, by its record of who owns `spec.unschedulable`; undefined when that was us (managers
 * that begin with `except`) or is not recorded. Who *un*cordons is never recorded: a field that is gone has no owner.
 */
export async function cordonWriter(transport: Transport, path: string, except: string, signal?: AbortSignal): Promise<string | undefined> {
  const { metadata } = await transport.json<Managed>('GET', path, { signal })
  const owner = metadata.managedFields?.find(({ manager, fieldsV1 }) => {
    return manager !== undefined && !manager.startsWith(except) && fieldsV1?.['f:spec']?.['f:unschedulable'] !== undefined
  })
  return owner?.manager
}
