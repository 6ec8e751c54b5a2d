/** The Lease of the census' election, and what its leader publishes in it. */
import { isAlreadyExists, isConflict, isNotFound } from '../kube/errors.ts'
import { getIfExists } from '../kube/objects.ts'
import { apiGroup, leaseTypeMeta } from '../schemas/api.ts'
import { formatTime } from '../schemas/time.ts'
import { censusLeaseName } from './names.ts'
import { leasesPathOf, type Leases } from './slot-reads.ts'
import type { Lease } from './slot.ts'

/** Ready agents, as counted by the leader: all agents spread their requests by this number. */
const agentsAnnotation = `${apiGroup}/agents`

/** When a census last counted, by the clock of the leader then; before the first count, when the leader was elected. */
const countedAnnotation = `${apiGroup}/counted-at`

/** What a leader publishes; undefined: its census has not counted yet. */
export type Published = { readonly agents: number | undefined; readonly countedAtMs: number | undefined }

/** A leader resigns after a minute without a count, and the next one is elected and counts within seconds. */
const maxUncountedMs = 120_000

/** What one exchange with the API server may take. */
type Limits = { readonly signal: AbortSignal; readonly timeoutMs?: number }

export type LeaseChange = {
  readonly holder: string
  readonly isNewTerm: boolean
  readonly renewTime: string
  readonly leaseDurationMs: number
  readonly published?: () => Published
}

/** The values that the leader published. */
export function publishedAgents(lease: Lease | undefined): number | undefined {
  const agents = Number(lease?.metadata.annotations?.[agentsAnnotation])
  return Number.isSafeInteger(agents) && agents > 0 ? agents : undefined
}

/** How many terms started between two versions of the Lease; undefined: it was created again, or edited by hand. */
export function termsBetween(earlier: Lease | undefined, later: Lease | undefined): number | undefined {
  const [from, to] = [earlier, later].map((lease) => lease?.spec?.leaseTransitions)
  return typeof from === 'number' && typeof to === 'number' && to >= from ? to - from : undefined
}

/**
 * Since when no census has counted, although agents are elected; undefined while one counts, and where no agent of this
 * version has led. Only times of the Lease are compared.
 */
export function uncountedSince(lease: Lease | undefined): string | undefined {
  return uncountedMs(lease) >= maxUncountedMs ? lease?.metadata.annotations?.[countedAnnotation] : undefined
}

/** For how long no census had counted when the Lease was written; 0 where the Lease lacks the time. */
export function uncountedMs(lease: Lease | undefined): number {
  const countedAt = lease?.metadata.annotations?.[countedAnnotation]
  return Math.max(0, Date.parse(lease?.spec?.renewTime ?? '') - Date.parse(countedAt ?? '') || 0)
}

/** Candidates read the server's cache: that costs the store nothing, and an attempt to take an outdated Lease fails. */
export function readLease(leases: Leases, from: 'cache' | 'store', limits: Limits): Promise<Lease | undefined> {
  const query = from === 'cache' ? { resourceVersion: 0 } : {}
  return getIfExists(leases.transport, `${leasesPathOf(leases)}/${censusLeaseName}`, { query, ...limits })
}

/** Replaces exactly the version that was read. undefined = another agent was faster. */
export async function writeLease(
  leases: Leases,
  found: Lease | undefined,
  change: LeaseChange,
  limits: Limits,
): Promise<Lease | undefined> {
  const collection = leasesPathOf(leases)
  const body = leaseBody(found, change)
  try {
    return found === undefined
      ? await leases.transport.json<Lease>('POST', collection, { body, ...limits })
      : await leases.transport.json<Lease>('PUT', `${collection}/${censusLeaseName}`, { body, ...limits })
  } catch (error) {
    if (isConflict(error) || isAlreadyExists(error) || isNotFound(error)) return undefined
    throw error
  }
}

function leaseBody(
  found: Lease | undefined,
  { holder, isNewTerm, renewTime, leaseDurationMs, published }: LeaseChange,
): object {
  const spec: Record<string, unknown> = { ...found?.spec, holderIdentity: holder, renewTime }
  spec['leaseDurationSeconds'] = Math.ceil(leaseDurationMs / 1000)
  if (isNewTerm) {
    const transitions = spec['leaseTransitions']
    spec['acquireTime'] = renewTime
    spec['leaseTransitions'] = typeof transitions === 'number' ? transitions + 1 : 0
  }
  const { agents, countedAtMs } = published?.() ?? {}
  const before = found?.metadata.annotations
  const countedAt = countedAtMs === undefined ? (before?.[countedAnnotation] ?? renewTime) : formatTime(countedAtMs)
  const annotations = {
    ...before,
    ...(agents !== undefined && { [agentsAnnotation]: `${agents}` }),
    [countedAnnotation]: countedAt,
  }
  const metadata = { ...(found?.metadata ?? { name: censusLeaseName }), annotations }
  return { ...leaseTypeMeta, metadata, spec }
}
