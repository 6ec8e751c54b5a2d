import { skyhooksPath } from '../../schemas/api.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { isNotFound } from '../../kube/errors.ts'
import { listAll } from '../../kube/list.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { notFoundError } from '../framework/command-error.ts'

export const skyhookPath = (name: string): string => `${skyhooksPath}/${encodeURIComponent(name)}`

/** One Skyhook. Throws "not found" with what to look at. */
export async function getSkyhook(transport: KubeTransport, name: string, signal: AbortSignal): Promise<Skyhook> {
  try {
    return await transport.json<Skyhook>('GET', skyhookPath(name), { signal })
  } catch (error) {
    if (isNotFound(error)) throw noSkyhook(name)
    throw error
  }
}

/** The error for a Skyhook that is not there. */
export const noSkyhook = (name: string): Error =>
  notFoundError(`there is no Skyhook "${name}"`, 'see kubectl get skyhooks')

/** Names of all Skyhooks, in order. */
export async function listSkyhookNames(transport: KubeTransport, signal: AbortSignal): Promise<readonly string[]> {
  const { items } = await listAll<Skyhook, string>(transport, skyhooksPath, {
    signal,
    transform: ({ metadata }) => metadata.name,
  })
  return [...items].sort()
}
