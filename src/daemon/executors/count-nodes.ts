import { type KubeObject, type ObjectList, metadataOnlyListAccept } from '../../kube/objects.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import type { State } from '../state/state.ts'

/** Whether this node is the only one, for `spec.drain.singleNode`. Two are enough to know. */
export async function detectSingleNode(transport: KubeTransport, state: State, signal: AbortSignal): Promise<void> {
  const { items = [] } = await transport.json<ObjectList<KubeObject>>('GET', '/api/v1/nodes', {
    query: { limit: 2 },
    accept: metadataOnlyListAccept,
    signal,
  })
  state.singleNode = items.length === 1
}
