import { type KubeObject, metadataOnlyListAccept, type ObjectList } from '../../kube/objects.ts'
import type { KubeTransport } from '../../kube/transport.ts'

/** Whether this node is the only one, for `spec.drain.singleNode`. */
export type NodeCounter = {
  count(): Promise<void>
  /** Undefined until the first count. */
  readonly isSingleNode: () => boolean | undefined
}

export function createNodeCounter(transport: KubeTransport, signal: AbortSignal): NodeCounter {
  let isSingleNode: boolean | undefined
  return {
    async count() {
      const { items = [] } = await transport.json<ObjectList<KubeObject>>('GET', '/api/v1/nodes', {
        query: { limit: 2 }, // two are enough
        accept: metadataOnlyListAccept,
        signal,
      })
      isSingleNode = items.length === 1
    },
    isSingleNode: () => isSingleNode,
  }
}
