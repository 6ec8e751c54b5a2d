import { isConflict, isNotFound } from '../kube/errors.ts'
import { METADATA_ONLY, type KubeObject } from '../kube/objects.ts'
import type { Transport } from '../kube/transport.ts'
import { apiLevel, prefix } from '../schemas/annotations.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import { finalizersAfter, type FinalizerPlan } from './finalizer.ts'
import type { SkyhookStatus } from './skyhook-status.ts'

export const SKYHOOKS = '/apis/skyhook.nvidia.com/v1alpha1/skyhooks'

export type SkyhookWritten =
  /** As it is now, as far as we know it. */
  | { readonly outcome: 'written'; readonly skyhook: Skyhook }
  /** Somebody wrote since it was read, or it is gone: the watch will tell. */
  | { readonly outcome: 'conflict' }

/**
 * Replaces the status of exactly the version that was read: what is said holds for that spec or is not said. Whole, because a merge
 * would leave nodes in the maps that are no more.
 */
export async function writeStatus(
  transport: Transport,
  skyhook: Skyhook,
  status: SkyhookStatus,
  signal: AbortSignal,
): Promise<SkyhookWritten> {
  const { name, uid, resourceVersion } = skyhook.metadata
  const body = {
    apiVersion: 'skyhook.nvidia.com/v1alpha1',
    kind: 'Skyhook',
    metadata: { name, uid, resourceVersion },
    spec: skyhook.spec,
    status,
  }
  return await send(signal, async () => {
    const { metadata } = await transport.json<KubeObject>('PUT', `${SKYHOOKS}/${name}/status`, { body, accept: METADATA_ONLY, signal })
    return { ...skyhook, metadata: { ...skyhook.metadata, resourceVersion: metadata.resourceVersion }, status }
  })
}

export type Upkeep = { readonly finalizer?: 'add' | 'remove'; readonly version?: string }

/** What the Skyhook's metadata lacks: our finalizer, and the API level where tools of the original operator look for its version. */
export function upkeepOf(skyhook: Skyhook, plan: FinalizerPlan): Upkeep | undefined {
  const finalizer = plan.do === 'add' || plan.do === 'remove' ? plan.do : undefined
  const isOld = skyhook.metadata.deletionTimestamp === undefined && skyhook.metadata.annotations?.[versionKey] !== apiLevel
  if (finalizer === undefined && !isOld) return undefined
  return { ...(finalizer && { finalizer }), ...(isOld && { version: apiLevel }) }
}

/** Writes it over exactly the version that was read. */
export async function writeUpkeep(transport: Transport, skyhook: Skyhook, upkeep: Upkeep, signal: AbortSignal): Promise<SkyhookWritten> {
  const { name, uid, resourceVersion, finalizers } = skyhook.metadata
  const metadata = {
    uid,
    resourceVersion,
    ...(upkeep.finalizer && { finalizers: finalizersAfter(upkeep.finalizer, finalizers) }),
    ...(upkeep.version !== undefined && { annotations: { [versionKey]: upkeep.version } }),
  }
  return await send(signal, async () => {
    const options = { body: { metadata }, contentType: 'application/merge-patch+json', accept: METADATA_ONLY, signal } as const
    const answer = await transport.json<KubeObject>('PATCH', `${SKYHOOKS}/${name}`, options)
    return { ...skyhook, metadata: { ...answer.metadata, name } }
  })
}

const versionKey = `${prefix}/version`

async function send(signal: AbortSignal, request: () => Promise<Skyhook>): Promise<SkyhookWritten> {
  try {
    return { outcome: 'written', skyhook: await request() }
  } catch (error) {
    signal.throwIfAborted()
    if (isConflict(error) || isNotFound(error)) return { outcome: 'conflict' }
    throw error
  }
}
