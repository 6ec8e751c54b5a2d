import type { KubeObject } from './objects.ts'
import type { KubeTransport } from './transport.ts'

type FieldSet = { readonly [field: string]: FieldSet }
type ManagedFieldsEntry = { readonly manager?: string; readonly fieldsV1?: FieldSet }
type ObjectWithManagedFields = KubeObject & {
  readonly metadata: KubeObject['metadata'] & { readonly managedFields?: readonly ManagedFieldsEntry[] }
}

/**
 * Field manager that cordoned a Node, by its record of who owns `spec.unschedulable`; undefined when that was us
 * (managers that begin with `ownManagerPrefix`) or is not recorded. Who *un*cordons is never recorded: a field that is
 * gone has no owner.
 */
export async function findCordonManager(
  transport: KubeTransport,
  path: string,
  ownManagerPrefix: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const { metadata } = await transport.json<ObjectWithManagedFields>('GET', path, { signal })
  const owner = metadata.managedFields?.find(({ manager, fieldsV1 }) => {
    return (
      manager !== undefined &&
      !manager.startsWith(ownManagerPrefix) &&
      fieldsV1?.['f:spec']?.['f:unschedulable'] !== undefined
    )
  })
  return owner?.manager
}
