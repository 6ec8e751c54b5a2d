import { listAll } from '../../kube/list.ts'
import type { KubeObject } from '../../kube/objects.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import type { Known } from '../../stages/model/snapshot.ts'
import { valueOr, readable } from '../fleet-view/readable.ts'
import type { Completion } from './fleet-status.ts'

type EventObject = KubeObject & { readonly message?: string; readonly lastTimestamp?: string }

/** When nodes completed, by their Events of the last hour; none where Events may not be read. */
export async function readCompletions(transport: KubeTransport, signal?: AbortSignal): Promise<readonly Completion[]> {
  const found: Known<readonly (Completion | undefined)[]> = await readable(
    'Events in namespace default',
    listAll<EventObject, Completion | undefined>(transport, '/api/v1/namespaces/default/events', {
      query: { fieldSelector: 'involvedObject.kind=Node,reason=SkyhookCompleted' },
      transform: completionOf,
      signal,
    }).then(({ items }) => items),
  )
  return valueOr(found, []).flatMap((one) => one ?? [])
}

function completionOf({ message = '', lastTimestamp = '' }: EventObject): Completion | undefined {
  const [, skyhook] = /^Skyhook (\S+) /.exec(message) ?? []
  const atMs = Date.parse(lastTimestamp)
  return skyhook === undefined || Number.isNaN(atMs) ? undefined : { skyhook, atMs }
}
