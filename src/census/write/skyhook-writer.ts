import { isConflict, isNotFound } from '../../kube/errors.ts'
import { metadataOnlyAccept } from '../../kube/objects.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { apiLevel } from '../../schemas/annotations.ts'
import { apiGroup, skyhooksPath, skyhookTypeMeta } from '../../schemas/api.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { type FinalizerPlan, finalizersAfter } from '../model/finalizer.ts'
import type { SkyhookStatus } from '../model/skyhook-status.ts'

/** `conflict`: someone wrote since it was read, or it no longer exists. The watch will show it. */
export type SkyhookWriteResult = 'written' | 'conflict'

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
  const request = { body, accept: metadataOnlyAccept, signal }
  return await resultOf(transport.json('PUT', `${skyhooksPath}/${name}/status`, request), signal)
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
  const request = {
    body: { metadata },
    contentType: 'application/merge-patch+json',
    accept: metadataOnlyAccept,
    signal,
  } as const
  return await resultOf(transport.json('PATCH', `${skyhooksPath}/${name}`, request), signal)
}

const operatorVersionKey = `${apiGroup}/version`

async function resultOf(request: Promise<unknown>, signal: AbortSignal): Promise<SkyhookWriteResult> {
  try {
    await request
    return 'written'
  } catch (error) {
    signal.throwIfAborted()
    if (isConflict(error) || isNotFound(error)) return 'conflict'
    throw error
  }
}

/**
 * When a count may be written. Every write of a status wakes every agent that watches the Skyhook. Mere progress is
 * written less often the more agents there are. What people and programs wait for is written immediately.
 */
type WriteThrottle = {
  /** Own writes to this object; undefined = none in this term. */
  readonly lastWriteMs: number | undefined
  readonly agents: number
  /** It changes what someone may be waiting for: a condition, or its generation. */
  readonly isUrgent: boolean
}

const minIntervalMs = 1_000
/** 100 agents a second parse it. */
const intervalPerAgentMs = 10
const maxIntervalMs = 30_000
/** A condition that keeps changing is written at this interval. */
const urgentIntervalMs = 100

/** The earliest time of the next write. The first one after a quiet time is never delayed. */
export function writeAtMs({ lastWriteMs, agents, isUrgent }: WriteThrottle): number {
  if (lastWriteMs === undefined) return -Infinity
  return lastWriteMs + (isUrgent ? urgentIntervalMs : progressIntervalMs(agents))
}

/** Time between two writes of mere progress. */
const progressIntervalMs = (agents: number): number =>
  Math.min(maxIntervalMs, Math.max(minIntervalMs, intervalPerAgentMs * agents))
