import type { KubeObject, ObjectList } from '../../kube/objects.ts'
import { METADATA_ONLY_LIST } from '../../kube/objects.ts'
import type { Transport } from '../../kube/transport.ts'
import type { State } from '../state/state.ts'

/** Whether this node is the only one, for `spec.drain.singleNode`. Two are enough to know. */
export async function countNodes(transport: Transport, state: State, signal: AbortSignal): Promise<void> {
  const { items = [] } = await transport.json<ObjectList<KubeObject>>('GET', '/api/v1/nodes', {
    query: { limit: 2 },
    accept: METADATA_ONLY_LIST,
    signal,
  })
  state.singleNode = items.length === 1
}
