import { skyhooksPath } from '../../schemas/api.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { isNotFound } from '../../kube/errors.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { listCollection } from '../fleet-view/collections.ts'
import { notFoundError } from '../framework/command-error.ts'

export const skyhookPath = (name: string): string => `${skyhooksPath}/${encodeURIComponent(name)}`

/** One Skyhook. Throws "not found" with a command that lists all. */
export async function getSkyhook(transport: KubeTransport, name: string, signal: AbortSignal): Promise<Skyhook> {
  try {
    return await transport.json<Skyhook>('GET', skyhookPath(name), { signal })
  } catch (error) {
    if (isNotFound(error)) throw noSkyhook(name)
    throw error
  }
}

/** The error for a Skyhook that does not exist. */
export const noSkyhook = (name: string): Error =>
  notFoundError(`there is no Skyhook "${name}"`, 'see kubectl get skyhooks')

/** The error for a package that a Skyhook does not have. `known`: those that it has. */
export function noPackage(name: string, skyhook: string, known: readonly string[]): Error {
  const remedy = known.length === 0 ? 'it has no packages' : `it has: ${known.join(', ')}`
  return notFoundError(`Skyhook "${skyhook}" has no package "${name}"`, remedy)
}

/** Names of all Skyhooks, in order. */
export async function listSkyhookNames(transport: KubeTransport, signal: AbortSignal): Promise<readonly string[]> {
  const names = { what: 'Skyhooks', path: skyhooksPath, keep: ({ metadata }: Skyhook) => metadata.name }
  return (await listCollection(transport, names, signal)).toSorted()
}
