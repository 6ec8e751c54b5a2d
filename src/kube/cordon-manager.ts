import type { KubeObject } from './objects.ts'
import type { KubeTransport } from './transport.ts'

type FieldSet = { readonly [field: string]: FieldSet }
type ManagedFieldsEntry = { readonly manager?: string; readonly fieldsV1?: FieldSet }
type ObjectWithManagedFields = KubeObject & {
  readonly metadata: KubeObject['metadata'] & { readonly managedFields?: readonly ManagedFieldsEntry[] }
}

/**
 * The field manager that owns a Node's `spec.unschedulable`; undefined for our own (they start with
 * `ownManagerPrefix`) and where none is recorded. An uncordon is never recorded: a field that is gone has no owner.
 */
export async function findCordonManager(
  transport: KubeTransport,
  path: string,
  ownManagerPrefix: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const { metadata } = await transport.json<ObjectWithManagedFields>('GET', path, { signal })
  return metadata.managedFields?.find(
    ({ manager, fieldsV1 }) =>
      manager?.startsWith(ownManagerPrefix) === false && fieldsV1?.['f:spec']?.['f:unschedulable'] !== undefined,
  )?.manager
}
