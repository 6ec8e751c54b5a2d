/** What a client sends to the simulated server, and the watches that it gets. */
import type { KubeRequestOptions, KubeTransport, Method } from '../../../src/kube/transport.ts'
import type { SimClient } from './client.ts'
import type { SimStream } from './stream.ts'

export type SentRequest = Pick<KubeRequestOptions, 'query' | 'body' | 'accept'> & {
  readonly method: Method
  readonly path: string
}

export type RecordedClient = {
  readonly transport: KubeTransport
  /** Oldest first. */
  readonly sent: SentRequest[]
  /** The server's side of each watch, oldest first: it may write, end or break them. */
  readonly watches: SimStream[]
}

/** `onWatch` hears of each watch before its client does. */
export function recordClient(client: SimClient, onWatch: (watch: SimStream) => void = () => {}): RecordedClient {
  const sent: SentRequest[] = []
  const watches: SimStream[] = []
  const record = (method: Method, path: string, { query, body, accept }: KubeRequestOptions = {}): void =>
    void sent.push({ method, path, query, body, accept })
  const transport: KubeTransport = {
    async json<T>(method: Method, path: string, options?: KubeRequestOptions): Promise<T> {
      record(method, path, options)
      return await client.json<T>(method, path, options)
    },
    async stream(path, options) {
      record('GET', path, options)
      const watch = (await client.stream(path, options)) as SimStream
      watches.push(watch)
      onWatch(watch)
      return watch
    },
    close: () => client.close(),
  }
  return { transport, sent, watches }
}

/** The watch stays open, and its client sees nothing of it. */
export const silence = (watch: SimStream): void => watch.hold()
