/**
 * A percentage is of the nodes that the census has counted last, which may be long ago: a cluster that becomes smaller
 * may lose the census first. How many Nodes there are at all, the API server tells anybody in one small answer.
 */
import { type KubeObject, metadataOnlyListAccept, type ObjectList } from '../../kube/objects.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { isShareOfNodes } from '../../lease/budget/budget.ts'
import type { SkyhookView } from '../../stages/model/snapshot.ts'

/** The same view with the number of Nodes, asked for only where its budget is a share of them. Throws as requests do. */
export async function withNodeCount(
  transport: KubeTransport,
  view: SkyhookView,
  { isJoining, signal }: { readonly isJoining: boolean; readonly signal: AbortSignal },
): Promise<SkyhookView> {
  if (!isShareOfNodes(view, isJoining)) return view
  const { items = [], metadata } = await transport.json<ObjectList<KubeObject>>('GET', '/api/v1/nodes', {
    query: { limit: 1 },
    accept: metadataOnlyListAccept,
    signal,
  })
  const { continue: next, remainingItemCount } = metadata
  if (next && remainingItemCount === undefined) return view // it does not say
  return { ...view, nodes: items.length + (remainingItemCount ?? 0) }
}
