import type { KubernetesNode, NodePatch, ObjectMeta } from '../schemas/kubernetes.ts'
import { isConflict, isNotFound } from './errors.ts'
import { type KubeObject, metadataOnlyAccept } from './objects.ts'
import type { KubeTransport } from './transport.ts'

/** `resourceVersion`: what the patch was computed from; anything written since makes the whole patch a conflict. */
export type NodePatchRequest = Partial<NodePatch> & { readonly resourceVersion: string }

export type NodeWriteOutcome =
  /** `metadata`: the complete current metadata. */
  | { readonly outcome: 'written'; readonly metadata: ObjectMeta }
  /** Someone wrote first: read the Node again and recompute. */
  | { readonly outcome: 'conflict'; readonly error: unknown }
  | { readonly outcome: 'gone'; readonly error: unknown }

/**
 * Writes annotations, labels and conditions of a Node in one PATCH of its status, as the kubelet does, or annotations,
 * labels, `unschedulable` and taints in one PATCH of the Node. Neither resource can change the other's part, so a
 * change of both spec and conditions takes two calls. The second uses the version that the watch shows by then.
 *
 * Throws for everything but a conflict or a missing Node; after an unknown outcome (`isUnknownOutcome`) repeat it with
 * the same version: `conflict` then means that somebody, possibly we, has written.
 */
export async function patchNode(
  transport: KubeTransport,
  name: string,
  patch: NodePatchRequest,
  signal?: AbortSignal,
): Promise<NodeWriteOutcome> {
  const { resourceVersion, annotations, labels, unschedulable, taints, conditions = [], removedConditions = [] } = patch
  const hasSpec = unschedulable !== undefined || taints !== undefined
  const hasConditions = conditions.length + removedConditions.length > 0
  if (hasSpec && hasConditions) throw new Error(`Node ${name}: spec and conditions cannot be in one patch`)
  const path = `/api/v1/nodes/${encodeURIComponent(name)}`
  const removals = removedConditions.map((type) => ({ $patch: 'delete', type }))
  const body = {
    metadata: { resourceVersion, annotations, labels }, // JSON leaves out what is undefined
    ...(hasSpec && { spec: { unschedulable, taints } }),
    ...(hasConditions && { status: { conditions: [...conditions, ...removals] } }),
  }
  try {
    // Answered with metadata only: a real Node is tens of KB, and its watch brings the rest anyway.
    const { metadata } = await transport.json<KubeObject>('PATCH', hasConditions ? `${path}/status` : path, {
      body,
      contentType: 'application/strategic-merge-patch+json',
      accept: metadataOnlyAccept,
      signal,
    })
    delete (metadata as { managedFields?: unknown }).managedFields // of no use, and large
    return { outcome: 'written', metadata }
  } catch (error) {
    if (isConflict(error)) return { outcome: 'conflict', error }
    if (isNotFound(error)) return { outcome: 'gone', error }
    throw error
  }
}

/**
 * The Node after a patch that the API server applied to exactly this version of it. `metadata`: from the server's
 * answer.
 */
export function patchedNode(node: KubernetesNode, patch: NodePatch, metadata: ObjectMeta): KubernetesNode {
  const { unschedulable, taints, conditions, removedConditions } = patch
  const replaced = new Set([...conditions.map(({ type }) => type), ...removedConditions])
  return {
    ...node,
    metadata,
    spec: { ...node.spec, ...(unschedulable !== undefined && { unschedulable }), ...(taints && { taints }) },
    status: {
      ...node.status,
      conditions: [...(node.status?.conditions ?? []).filter(({ type }) => !replaced.has(type)), ...conditions],
    },
  }
}

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
