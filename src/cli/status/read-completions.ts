import type { KubeObject } from '../../kube/objects.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { readerOf } from '../fleet-view/collections.ts'
import { eventsAbout } from '../fleet-view/node-detail.ts'
import { valueOr } from '../fleet-view/readable.ts'
import type { Completion } from './fleet-status.ts'

type EventObject = KubeObject & { readonly message?: string; readonly lastTimestamp?: string }

/** When nodes completed, by their Events of the last hour; none where Events may not be read. */
export async function readCompletions(transport: KubeTransport, signal?: AbortSignal): Promise<readonly Completion[]> {
  const completed = { ...eventsAbout('Node', ',reason=SkyhookCompleted'), keep: completionOf }
  return valueOr(await readerOf(transport, signal)(completed), [])
}

function completionOf({ message = '', lastTimestamp = '' }: EventObject): Completion | undefined {
  const [, skyhook] = /^Skyhook (\S+) /.exec(message) ?? []
  const atMs = Date.parse(lastTimestamp)
  return skyhook === undefined || Number.isNaN(atMs) ? undefined : { skyhook, atMs }
}
