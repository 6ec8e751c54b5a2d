import { type KubeObject, metadataOnlyListAccept, type ObjectList } from '../../kube/objects.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import type { Clock } from '../../schemas/clock.ts'
import type { NodeCount } from '../../stages/model/snapshot.ts'

/** Determines whether this node is the only one, for `spec.drain.singleNode`. */
export type NodeCounter = {
  /** Requests two nodes at most. */
  count(): Promise<NodeCount>
  /** The last count; undefined until the first one. */
  readonly current: () => NodeCount | undefined
}

export function createNodeCounter(
  transport: KubeTransport,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): NodeCounter {
  let current: NodeCount | undefined
  return {
    async count() {
      const atMs = clock.steadyMs() // before the request: the answer may lack a node that joins meanwhile
      const { items = [] } = await transport.json<ObjectList<KubeObject>>('GET', '/api/v1/nodes', {
        query: { limit: 2 }, // two are enough
        accept: metadataOnlyListAccept,
        signal,
      })
      current = { isSingle: items.length === 1, atMs }
      return current
    },
    current: () => current,
  }
}
