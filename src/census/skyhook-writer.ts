import { isConflict, isNotFound } from '../kube/errors.ts'
import { metadataOnlyAccept, type KubeObject } from '../kube/objects.ts'
import type { KubeTransport } from '../kube/transport.ts'
import { apiLevel } from '../schemas/annotations.ts'
import { apiGroup, skyhooksPath, skyhookTypeMeta } from '../schemas/api.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import { finalizersAfter, type FinalizerPlan } from './finalizer.ts'
import type { SkyhookStatus } from './skyhook-status.ts'

export type SkyhookWriteResult =
  /** The current version as far as we know it. */
  | { readonly outcome: 'written'; readonly skyhook: Skyhook }
  /** Someone wrote since it was read, or it no longer exists: the watch will show it. */
  | { readonly outcome: 'conflict' }

/**
 * Replaces the status of exactly the version that was read, so that it describes that spec. Replaces it as a whole,
 * because a merge would keep nodes in the maps that no longer exist.
 */
export async function writeStatus(
  transport: KubeTransport,
  skyhook: Skyhook,
  status: SkyhookStatus,
  signal: AbortSignal,
): Promise<SkyhookWriteResult> {
  const { name, uid, resourceVersion } = skyhook.metadata
  const body = { ...skyhookTypeMeta, metadata: { name, uid, resourceVersion }, spec: skyhook.spec, status }
  return await send(signal, async () => {
    const request = { body, accept: metadataOnlyAccept, signal }
    const { metadata } = await transport.json<KubeObject>('PUT', `${skyhooksPath}/${name}/status`, request)
    return { ...skyhook, metadata: { ...skyhook.metadata, resourceVersion: metadata.resourceVersion }, status }
  })
}

export type MetadataPatch = { readonly finalizer?: 'add' | 'remove'; readonly version?: string }

/** Missing metadata of the Skyhook: our finalizer, and the API level where the operator's tools expect its version. */
export function metadataPatchFor(skyhook: Skyhook, plan: FinalizerPlan): MetadataPatch | undefined {
  const finalizer = plan.action === 'add' || plan.action === 'remove' ? plan.action : undefined
  const isVersionStale =
    skyhook.metadata.deletionTimestamp === undefined && skyhook.metadata.annotations?.[operatorVersionKey] !== apiLevel
  if (finalizer === undefined && !isVersionStale) return undefined
  return { ...(finalizer && { finalizer }), ...(isVersionStale && { version: apiLevel }) }
}

/** Writes the patch over exactly the version that was read. */
export async function patchSkyhookMetadata(
  transport: KubeTransport,
  skyhook: Skyhook,
  metadataPatch: MetadataPatch,
  signal: AbortSignal,
): Promise<SkyhookWriteResult> {
  const { name, uid, resourceVersion, finalizers } = skyhook.metadata
  const metadata = {
    uid,
    resourceVersion,
    ...(metadataPatch.finalizer && { finalizers: finalizersAfter(metadataPatch.finalizer, finalizers) }),
    ...(metadataPatch.version !== undefined && { annotations: { [operatorVersionKey]: metadataPatch.version } }),
  }
  return await send(signal, async () => {
    const options = {
      body: { metadata },
      contentType: 'application/merge-patch+json',
      accept: metadataOnlyAccept,
      signal,
    } as const
    const answer = await transport.json<KubeObject>('PATCH', `${skyhooksPath}/${name}`, options)
    return { ...skyhook, metadata: { ...answer.metadata, name } }
  })
}

const operatorVersionKey = `${apiGroup}/version`

async function send(signal: AbortSignal, request: () => Promise<Skyhook>): Promise<SkyhookWriteResult> {
  try {
    return { outcome: 'written', skyhook: await request() }
  } catch (error) {
    signal.throwIfAborted()
    if (isConflict(error) || isNotFound(error)) return { outcome: 'conflict' }
    throw error
  }
}
