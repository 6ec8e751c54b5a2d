import { WatchBehindError } from '../../kube/errors.ts'
import { patchedNode, patchNode } from '../../kube/node-writer.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import type { NodePatch } from '../../schemas/kubernetes.ts'
import type { NodeSource } from '../state/node.ts'

/**
 * Long enough for a watch under load. After that, the next decision uses the known Node; a stale version costs one 409.
 */
const watchTimeoutMs = 2_000
/** The node controller answers a cordon within about 20 ms. If it does not, the conditions are delayed by this time. */
const taintTimeoutMs = 200

/**
 * Writes the patch over the version of the Node that it was computed from. If the watch shows a newer Node (it may
 * change while the journal is written), sends nothing: the next decision computes the patch again. Decisions know a
 * write at once: a decision that did not know its own cordon could release the slot. Returns when the watch shows the
 * write, and after a cordon also the taint of the node controller: an earlier write would be a conflict. A conflict is
 * normal, because the kubelet writes too. It is an error only if the watch does not show another version: then the Node
 * is listed.
 */
export async function publish(
  transport: KubeTransport,
  source: Omit<NodeSource, 'synced' | 'ageMs' | 'isInDoubt'>,
  patch: NodePatch,
  computedFrom: string,
  signal: AbortSignal,
): Promise<void> {
  const node = source.current()
  if (node?.metadata.resourceVersion !== computedFrom) return
  const { name, resourceVersion } = node.metadata
  const result = await source.write(() => patchNode(transport, name, { ...patch, resourceVersion }, signal))
  if (result.outcome === 'written') {
    source.written(patchedNode(node, patch, result.metadata))
    await source.untilReached(result.metadata.resourceVersion, watchTimeoutMs)
    if (patch.unschedulable !== undefined) await source.untilTaintMatches(taintTimeoutMs)
    return
  }
  await source.untilChanged(resourceVersion, watchTimeoutMs)
  if (source.current()?.metadata.resourceVersion !== resourceVersion) return
  source.relist()
  throw new WatchBehindError('the watch still shows the version that the API server refuses', { cause: result.error })
}
