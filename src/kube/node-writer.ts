import { isConflict, isNotFound } from './errors.ts'
import { metadataOnlyAccept, type KubeObject } from './objects.ts'
import type { KubeTransport } from './transport.ts'

export type WritableTaint = {
  readonly key: string
  readonly value?: string
  readonly effect: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute'
  readonly timeAdded?: string
}

export type WritableNodeCondition = {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
  readonly lastTransitionTime: string
  readonly lastHeartbeatTime?: string
}

/** A change of a Node. `null` removes a key; what is absent stays as it is. */
export type NodePatchRequest = {
  /** The version the change was computed from: anything written since makes the whole patch a conflict. */
  readonly resourceVersion: string
  readonly annotations?: Readonly<Record<string, string | null>>
  readonly labels?: Readonly<Record<string, string | null>>
  readonly unschedulable?: boolean
  /** The complete new list: the API replaces taints as a whole. */
  readonly taints?: readonly WritableTaint[]
  /** Set by type; a condition with `remove` goes. */
  readonly conditions?: readonly (WritableNodeCondition | { readonly type: string; readonly remove: true })[]
}

export type NodeWriteOutcome =
  | { readonly outcome: 'written'; readonly resourceVersion: string; readonly uid: string }
  /** Someone wrote first: read the Node again and compute anew. */
  | { readonly outcome: 'conflict' }
  | { readonly outcome: 'gone' }

/**
 * Writes annotations, labels and conditions of a Node in one PATCH of its status, as the kubelet does, or annotations,
 * labels, `unschedulable` and taints in one PATCH of the Node. The API lets neither resource touch the other's part, so
 * a change that has both spec and conditions is two calls: the second with the version that the watch shows by then.
 *
 * Throws for everything but a conflict or a missing Node; after an unknown outcome (`isUnknownOutcome`) repeat it with
 * the same version: `conflict` then means that somebody, possibly we, has written.
 * /
 */
export async function patchNode(
  transport: KubeTransport,
  name: string,
  patch: NodePatchRequest,
  signal?: AbortSignal,
): Promise<NodeWriteOutcome> {
  const hasSpec = patch.unschedulable !== undefined || patch.taints !== undefined
  const hasConditions = (patch.conditions?.length ?? 0) > 0
  if (hasSpec && hasConditions)
    throw new Error(`Node ${name}: spec and conditions in one patch, which no request can carry`)
  const path = `/api/v1/nodes/${encodeURIComponent(name)}`
  const { resourceVersion, annotations, labels, unschedulable, taints } = patch
  const body = {
    metadata: { resourceVersion, annotations, labels }, // JSON leaves out what is undefined
    ...(hasSpec && { spec: { unschedulable, taints } }),
    ...statusOf(patch),
  }
  try {
    // Answered with metadata only: a real Node is tens of KB, and its watch brings the rest anyway.
    const { metadata } = await transport.json<KubeObject>('PATCH', hasConditions ? `${path}/status` : path, {
      body,
      contentType: 'application/strategic-merge-patch+json',
      accept: metadataOnlyAccept,
      signal,
    })
    return { outcome: 'written', resourceVersion: metadata.resourceVersion, uid: metadata.uid }
  } catch (error) {
    if (isConflict(error)) return { outcome: 'conflict' }
    if (isNotFound(error)) return { outcome: 'gone' }
    throw error
  }
}

function statusOf({ conditions = [] }: NodePatchRequest): { status?: { conditions: readonly unknown[] } } {
  if (conditions.length === 0) return {}
  return {
    status: {
      conditions: conditions.map((condition) =>
        'remove' in condition ? { $patch: 'delete', type: condition.type } : condition,
      ),
    },
  }
}
