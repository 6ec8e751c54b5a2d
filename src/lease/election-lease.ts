/** The Lease of the census' election, and what its leader publishes in it. */
import { isAlreadyExists, isConflict, isNotFound } from '../kube/errors.ts'
import { getIfExists } from '../kube/get.ts'
import { apiGroup, leaseTypeMeta } from '../schemas/api.ts'
import { censusLeaseName } from './names.ts'
import { leasesPathOf, type Leases } from './slot-reads.ts'
import type { Lease } from './slot.ts'

/** Ready agents, as the elected one has counted them: all agents spread their requests by it. */
const agentsAnnotation = `${apiGroup}/agents`

/** What one exchange with the API server may take. */
type Limits = { readonly signal: AbortSignal; readonly timeoutMs?: number }

export type LeaseChange = {
  readonly holder: string
  readonly isNewTerm: boolean
  readonly renewTime: string
  readonly leaseDurationMs: number
  readonly countedAgents?: () => number | undefined
}

/** As a leader has published them. */
export function publishedAgents(lease: Lease | undefined): number | undefined {
  const agents = Number(lease?.metadata.annotations?.[agentsAnnotation])
  return Number.isSafeInteger(agents) && agents > 0 ? agents : undefined
}

/** Candidates read the server's cache: that costs the store nothing, and taking a Lease that was old there fails. */
export function readLease(leases: Leases, from: 'cache' | 'store', limits: Limits): Promise<Lease | undefined> {
  const query = from === 'cache' ? { resourceVersion: 0 } : {}
  return getIfExists(leases.transport, `${leasesPathOf(leases)}/${censusLeaseName}`, { query, ...limits })
}

/** Writes over exactly what was read. undefined = somebody else was faster. */
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
  { holder, isNewTerm, renewTime, leaseDurationMs, countedAgents }: LeaseChange,
): object {
  const spec: Record<string, unknown> = { ...found?.spec, holderIdentity: holder, renewTime }
  spec['leaseDurationSeconds'] = Math.ceil(leaseDurationMs / 1000)
  if (isNewTerm) {
    const transitions = spec['leaseTransitions']
    spec['acquireTime'] = renewTime
    spec['leaseTransitions'] = typeof transitions === 'number' ? transitions + 1 : 0
  }
  const agents = countedAgents?.()
  const annotations = {
    ...found?.metadata.annotations,
    ...(agents !== undefined && { [agentsAnnotation]: `${agents}` }),
  }
  const metadata = { ...(found?.metadata ?? { name: censusLeaseName }), annotations }
  return { ...leaseTypeMeta, metadata, spec }
}
