/** Requests to the tool. */
import type { PageError } from '../page-data.ts'

type Query = Readonly<Record<string, string>>

const addressOf = (path: string, query: Query): string => `${path}?${new URLSearchParams(query)}`

/** Throws an Error with what went wrong and its remedy. */
export async function ask<T>(path: string, query: Query, body?: object): Promise<T> {
  const post = body && { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  let response: Response
  try {
    response = await fetch(addressOf(path, query), post)
  } catch {
    throw new Error('kubectl skyhook dashboard does not answer: it has ended, start it again')
  }
  const answer: unknown = await response.json()
  if (response.ok) return answer as T
  const { error, remedy } = answer as PageError
  throw new Error(remedy === undefined ? error : `${error}. ${remedy}`)
}

export type Listener<T> = {
  readonly onOpen: () => void
  readonly onMessage: (message: T) => void
  /** The browser tries to open it again by itself. */
  readonly onBreak?: () => void
}

/** Follows a stream of the tool. Returns what ends it. */
export function follow<T>(path: string, query: Query, { onOpen, onMessage, onBreak }: Listener<T>): () => void {
  const source = new EventSource(addressOf(path, query))
  source.addEventListener('open', onOpen)
  source.addEventListener('message', ({ data }: MessageEvent<string>) => onMessage(JSON.parse(data) as T))
  source.addEventListener('error', () => onBreak?.())
  return () => source.close()
}
