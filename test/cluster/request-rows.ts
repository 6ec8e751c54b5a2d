/** Requests and the answers of a real API server to them, as rows of a table. */
import { expect, test } from 'vitest'
import { allowed, merge, refused, type Agents } from './agents.ts'
import type { Json, Send } from './chart-cluster.ts'

export type Wanted = {
  readonly method: string
  readonly path: string
  /** Or how to make it once the server runs. */
  readonly body?: unknown
  readonly type?: string
}

/** Without text of the refusal, the request is allowed. */
export type Row = [what: string, wanted: Wanted, refusal?: string | RegExp]

export const post = (path: string, body: unknown): Wanted => ({ method: 'POST', path, body })
export const get = (path: string): Wanted => ({ method: 'GET', path })
export const remove = (path: string): Wanted => ({ method: 'DELETE', path })
export const patch = (path: string, body: unknown, type = merge): Wanted => ({ method: 'PATCH', path, body, type })
export const jsonPatch = (path: string, operation: Json): Wanted =>
  patch(path, [operation], 'application/json-patch+json')
/** The stored object with a change. */
export const put = (agents: Agents, path: string, change: (object: Json) => unknown): Wanted => ({
  method: 'PUT',
  path,
  async body() {
    const { body } = await agents.cluster.admin('GET', path)
    change(body)
    return body
  },
})

export const send = async (by: Send, { method, path, body, type }: Wanted) =>
  await by(method, path, typeof body === 'function' ? await (body as () => unknown)() : body, type)

/** A test of each row; `by` is known once the tests run. */
export function tryRows(title: string, by: () => Send, rows: readonly Row[]): void {
  test.each<Row>(rows)(title, async (_, wanted, refusal) => {
    expect(await send(by(), wanted)).toEqual(refusal === undefined ? allowed : refused(refusal))
  })
}
