/** The API server as one agent reaches it, with what an observer beside it learns. */
import type { ByteStream, KubeTransport } from '../../src/kube/transport.ts'
import { isObject, type JsonObject } from '../../src/schemas/json.ts'

export type TransportObserver = {
  watched(events: number, bytes: number): void
  /** The server has acknowledged a PATCH of the Node, or of its status, with these annotations. */
  published(annotations: JsonObject): void
  cordoned(isUnschedulable: boolean): void
  slotTaken(): void
  slotReleased(): void
}

const newline = 10

/** The same transport; the observer gets each piece of a watch and each acknowledged write that matters. */
export function observedTransport(
  transport: KubeTransport,
  nodePath: string,
  observer: TransportObserver,
): KubeTransport {
  return {
    ...transport,
    async json<T>(...request: Parameters<KubeTransport['json']>): Promise<T> {
      const answer = await transport.json<T>(...request)
      const [method, path, options] = request
      if (method === 'PATCH' && path.startsWith(nodePath)) {
        const patch = isObject(options?.body) ? options.body : {}
        observer.published(objectIn(objectIn(patch, 'metadata'), 'annotations'))
        const { unschedulable } = objectIn(patch, 'spec')
        if (unschedulable !== undefined) observer.cordoned(unschedulable === true)
      } else if (path.includes('/leases')) {
        if (method === 'POST') observer.slotTaken()
        else if (method === 'DELETE') observer.slotReleased()
      }
      return answer
    },
    async stream(path, request) {
      return counted(await transport.stream(path, request), observer)
    },
  }
}

function objectIn(parent: JsonObject, field: string): JsonObject {
  const value = parent[field]
  return isObject(value) ? value : {}
}

/** The API server sends one event in a line. */
function counted(stream: ByteStream, observer: TransportObserver): ByteStream {
  const read = stream[Symbol.asyncIterator].bind(stream)
  stream[Symbol.asyncIterator] = async function* () {
    for await (const chunk of { [Symbol.asyncIterator]: read }) {
      let events = 0
      for (const byte of chunk) if (byte === newline) events++
      observer.watched(events, chunk.length)
      yield chunk
    }
  }
  return stream
}
