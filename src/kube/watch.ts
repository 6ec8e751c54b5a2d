import { StringDecoder } from 'node:string_decoder'
import { startWatchdog, type Clock } from '../schemas/clock.ts'
import { messageOf } from '../schemas/json.ts'
import { NoResponseError } from './errors.ts'
import type { KubeObject } from './objects.ts'
import type { Query, KubeTransport } from './transport.ts'

export type WatchEvent<T extends KubeObject> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: T }
  | { readonly type: 'BOOKMARK'; readonly object: KubeObject }
  | { readonly type: 'ERROR'; readonly object: unknown }

export type WatchRequest = {
  readonly clock: Clock
  readonly path: string
  readonly query?: Query | undefined
  readonly accept?: string | undefined
  readonly resourceVersion: string
  /** After this the server ends the watch normally. */
  readonly timeoutSeconds: number
  /** Longest silence. Bookmarks come about once a minute: without them the peer is gone. */
  readonly idleTimeoutMs: number
  readonly signal: AbortSignal
  /** Called once the server has accepted the watch, before its first event. */
  readonly onOpen?: () => void
}

/**
 * One watch, from opening to its end. Ends normally only when the server ended it between two events. Everything else
 * throws: a refusal `ApiError`; a lost connection, silence and a broken event `NoResponseError`. The socket pauses
 * while the consumer works.
 */
export async function* watchEvents<T extends KubeObject>(
  transport: KubeTransport,
  request: WatchRequest,
): AsyncGenerator<WatchEvent<T>> {
  const { path, query, accept, resourceVersion, timeoutSeconds, idleTimeoutMs, signal } = request
  const stream = await transport.stream(path, {
    query: { ...query, watch: 1, allowWatchBookmarks: true, timeoutSeconds, resourceVersion },
    accept,
    signal,
  })
  request.onOpen?.()
  const onSilence = (): void => void stream.destroy(new Error(`silent for ${idleTimeoutMs} ms`))
  // In the background: an agent that exits must not wait for it.
  const watchdog = startWatchdog(request.clock, idleTimeoutMs, onSilence, { isBackground: true })
  try {
    for await (const line of readLines(stream, () => watchdog.reset())) yield JSON.parse(line) as WatchEvent<T>
  } catch (cause) {
    signal.throwIfAborted()
    throw new NoResponseError(`the watch broke: ${messageOf(cause)}`, { mayHaveBeenSent: true, cause })
  } finally {
    watchdog.stop()
    stream.destroy()
  }
}

/** Non-empty lines of a byte stream; throws when it ends inside a line, because the rest of that event is then lost. */
export async function* readLines(
  stream: AsyncIterable<Uint8Array>,
  onBytes: () => void = () => {},
): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8') // a character may be split between two chunks
  let partialLine = ''
  for await (const chunk of stream) {
    onBytes()
    const text = decoder.write(chunk)
    let from = 0
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
      const line = partialLine + text.slice(from, end)
      partialLine = ''
      from = end + 1
      if (line.trim() !== '') yield line
    }
    partialLine += text.slice(from)
  }
  if (partialLine.trim() !== '') throw new Error('the stream ended inside an event')
}
