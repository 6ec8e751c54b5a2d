/** Requests to the tool. */
import type { PageError } from '../page-data.ts'

/** Throws an Error with what went wrong and its remedy. */
export async function ask<T>(path: string, query: Readonly<Record<string, string>>, body?: object): Promise<T> {
  const address = `${path}?${new URLSearchParams(query)}`
  const post = body && { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  let response: Response
  try {
    response = await fetch(address, post)
  } catch {
    throw new Error('kubectl skyhook dashboard does not answer: it has ended, start it again')
  }
  const answer: unknown = await response.json()
  if (response.ok) return answer as T
  const { error, remedy } = answer as PageError
  throw new Error(remedy === undefined ? error : `${error}. ${remedy}`)
}
