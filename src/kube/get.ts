import { isNotFound } from './errors.ts'
import type { KubeTransport, KubeRequestOptions } from './transport.ts'

/** One object; undefined if it is not there. Without a resourceVersion in the query it is a consistent read. */
export async function getIfExists<T>(
  transport: Pick<KubeTransport, 'json'>,
  path: string,
  options?: KubeRequestOptions,
): Promise<T | undefined> {
  try {
    return await transport.json<T>('GET', path, options)
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}
