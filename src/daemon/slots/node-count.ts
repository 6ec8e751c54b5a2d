/**
 * A percentage refers to the last count of the census, which may be old: a shrinking cluster may lose the census first.
 * The API server reports the total number of Nodes in one small answer.
 */
import { type KubeObject, metadataOnlyListAccept, type ObjectList } from '../../kube/objects.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { isShareOfNodes } from '../../lease/budget/budget.ts'
import type { SkyhookView } from '../../stages/model/snapshot.ts'

/**
 * The same view with the number of Nodes, which is requested only if the budget is a percentage. Throws if the request
 * fails.
 */
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
  if (next && remainingItemCount === undefined) return view // the server does not report the number
  return { ...view, nodes: items.length + (remainingItemCount ?? 0) }
}
