import { isConflict, isNotFound } from './errors.ts'
import { METADATA_ONLY, type KubeObject } from './objects.ts'
import type { Transport } from './transport.ts'

export type Taint = {
  readonly key: string
  readonly value?: string
  readonly effect: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute'
  readonly timeAdded?: string
}

export type NodeCondition = {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
  readonly lastTransitionTime: string
  readonly lastHeartbeatTime?: string
}

/** A change of a Node. `null` removes a key; what is absent stays as it is. */
export type NodePatch = {
  /** The version the change was computed from: anything written since makes the whole patch a conflict. */
  readonly resourceVersion: string
  readonly annotations?: Readonly<Record<string, string | null>>
  readonly labels?: Readonly<Record<string, string | null>>
  readonly unschedulable?: boolean
  /** The complete new list: the API replaces taints as a whole. */
  readonly taints?: readonly Taint[]
  /** Set by type; a condition with `remove` goes. */
  readonly conditions?: readonly (NodeCondition | { readonly type: string; readonly remove: true })[]
}

export type NodeWritten =
  | { readonly outcome: 'written'; readonly resourceVersion: string; readonly uid: string }
  /** Someone wrote first: read the Node again and compute anew. `halfWritten`: spec and metadata are in, conditions are not. */
  | { readonly outcome: 'conflict'; readonly halfWritten: boolean }
  | { readonly outcome: 'gone' }

/**
 * Writes annotations, labels and conditions of a Node in one PATCH of its status, as the kubelet does, or annotations, labels,
 * `unschedulable` and taints in one PATCH of the Node. Only a change that has both spec and conditions takes two: the API lets neither
 * resource touch the other's part. Then spec and metadata go first, because they carry the marks from which a restart can go on.
 *
 * Throws for everything but a conflict or a missing Node; after an unknown outcome (`isUnknownOutcome`) repeat it with the same version:
 * `conflict` then means that somebody, possibly we, has written.
 */
export async function patchNode(transport: Transport, name: string, patch: NodePatch, signal?: AbortSignal): Promise<NodeWritten> {
  const hasSpec = patch.unschedulable !== undefined || patch.taints !== undefined
  const hasConditions = (patch.conditions?.length ?? 0) > 0
  const path = `/api/v1/nodes/${encodeURIComponent(name)}`
  const send = async (target: string, body: unknown): Promise<NodeWritten> => {
    try {
      // Answered with metadata only: a real Node is tens of KB, and its watch brings the rest anyway.
      const { metadata } = await transport.json<KubeObject>('PATCH', target, {
        body,
        contentType: 'application/strategic-merge-patch+json',
        accept: METADATA_ONLY,
        signal,
      })
      return { outcome: 'written', resourceVersion: metadata.resourceVersion, uid: metadata.uid }
    } catch (error) {
      if (isConflict(error)) return { outcome: 'conflict', halfWritten: false }
      if (isNotFound(error)) return { outcome: 'gone' }
      throw error
    }
  }

  const { resourceVersion, annotations, labels, unschedulable, taints } = patch
  const metadata = { resourceVersion, annotations, labels } // JSON leaves out what is undefined
  if (!hasSpec) return await send(hasConditions ? `${path}/status` : path, { metadata, ...statusOf(patch) })
  const first = await send(path, { metadata, spec: { unschedulable, taints } })
  if (!hasConditions || first.outcome !== 'written') return first
  const second = await send(`${path}/status`, { metadata: { resourceVersion: first.resourceVersion }, ...statusOf(patch) })
  return second.outcome === 'conflict' ? { outcome: 'conflict', halfWritten: true } : second
}

function statusOf({ conditions = [] }: NodePatch): { status?: { conditions: readonly unknown[] } } {
  if (conditions.length === 0) return {}
  return {
    status: { conditions: conditions.map((condition) => ('remove' in condition ? { $patch: 'delete', type: condition.type } : condition)) },
  }
}
