/**
 * The ledger of a Skyhook: a Lease in which the census publishes what it counted, so that every node can turn a
 * percentage into a number. It grants nothing. While it is missing, or was counted for another selector, a percentage
 * has no number and nodes wait.
 */
import { isAlreadyExists, isConflict, isNotFound } from '../kube/errors.ts'
import { getIfExists } from '../kube/objects.ts'
import { apiGroup, leaseTypeMeta, skyhookTypeMeta } from '../schemas/api.ts'
import { sha256Hex } from '../schemas/canonical-json.ts'
import type { BatchState } from '../schemas/deployment-policy.ts'
import { isEqual, isObject, ownValue, parseJson } from '../schemas/json.ts'
import type { LabelSelector, ObjectMeta } from '../schemas/kubernetes.ts'
import { perObject } from '../schemas/per-object.ts'
import { ledgerLabels, ledgerName, type SkyhookIdentity } from './names.ts'
import { type Leases, leasesPathOf } from './slot-reads.ts'
import type { RolloutTimes } from './slot-times.ts'
import { type Lease, microTime } from './slot.ts'
import type { Queue } from './waiting.ts'

/** What was counted in one compartment; `''` is that of a Skyhook without a policy. */
export type LedgerScope = {
  /** Its nodes, an increase only after it has held for a while. */
  readonly matched: number
  readonly completed: number
  /** Of a policy alone: its nodes that wait for a slot. */
  readonly waiters?: number
  /** Of a policy alone: selected nodes that the compartment's selector matches, also those of other compartments. */
  readonly candidates?: number
  readonly batch?: BatchState
}

/** The policy of the count. */
export type PolicyVersion = { readonly uid: string; readonly generation: number }

export type Ledger = {
  readonly v: 1
  readonly skyhookUID: string
  readonly generation: number
  /** Hash of the part of the counted spec that decides work. */
  readonly applied: string
  readonly selectorHash: string
  /** Agents whose pods are Ready; absent while the pods cannot be listed. */
  readonly agents?: number
  /** Nodes whose work waits only for a slot or a batch. */
  readonly waiters: number
  /** For people; never compared with a clock. */
  readonly countedAt: string
  readonly compartments: Readonly<Record<string, LedgerScope>>
  readonly policy?: PolicyVersion
  /** The last executed reset of the batches, as in the Skyhook's annotation. */
  readonly reset?: string
  /** How long slots were held in the last rollouts; for people, and read only with `readSlotTimes`. */
  readonly slotTimes?: readonly RolloutTimes[]
}

export const ledgerAnnotation = `${apiGroup}/ledger`
const ledgerHolder = 'census'

export type LedgerRead =
  | { readonly outcome: 'read'; readonly ledger: Ledger }
  /**
   * `isNewer`: of a version that a newer agent writes. It may have content that this agent does not know, so this agent
   * keeps it.
   */
  | { readonly outcome: 'refused'; readonly reason: string; readonly isNewer: boolean }

/** The ledger in a Lease. An unreadable one, or one of a newer version, is refused with the reason. */
export function readLedger({ metadata }: Lease): LedgerRead {
  const refused = (reason: string, isNewer = false): LedgerRead => ({
    outcome: 'refused',
    reason: `Lease ${metadata.name}: ${reason}`,
    isNewer,
  })
  const text = metadata.annotations?.[ledgerAnnotation]
  if (text === undefined) return refused(`the annotation ${ledgerAnnotation} is missing`)
  const value = parseJson(text)
  if (value === undefined) return refused(`the annotation ${ledgerAnnotation} is not valid JSON`)
  if (isObject(value) && typeof value['v'] === 'number' && value['v'] > 1)
    return refused(`the ledger has version ${value['v']}, this agent reads version 1: upgrade the agent`, true)
  if (!isLedger(value)) return refused(`the annotation ${ledgerAnnotation} is not a ledger`)
  return { outcome: 'read', ledger: value }
}

/** What an asking node knows of its Skyhook. */
export type LedgerQuery = {
  readonly skyhook: SkyhookIdentity
  readonly selectorHash: string
  readonly compartment?: string
  /** With a policy: that of the compartments, and the hash of the work to start. */
  readonly policy?: PolicyVersion & { readonly applied: string }
}

/** The counts of a compartment, with its batch under a policy. */
export type CountedCompartment =
  | { readonly matched: number; readonly batch?: BatchState }
  | { readonly unknown: string }

/**
 * The ledger's count for the asking node, from the Leases of a scope, or why there is no usable count. The ledger of
 * another UID does not count. Its age does not matter: without a census the count stays as it was, and the caller caps
 * it by the number of Nodes.
 */
export function countedScope(ledgers: readonly Lease[], query: LedgerQuery): CountedCompartment {
  const { skyhook, compartment = '' } = query
  const read = ledgerAmong(ledgers, skyhook)
  if (read === undefined) return { unknown: 'the census has not counted this Skyhook yet' }
  if (read.outcome === 'refused') return { unknown: read.reason }
  const { skyhookUID, selectorHash, generation, compartments } = read.ledger
  if (skyhookUID !== skyhook.uid) return { unknown: 'the census counted an earlier Skyhook of this name' }
  if (selectorHash !== query.selectorHash)
    return {
      unknown: `the census has not counted since the selector changed; its last count is of generation ${generation}`,
    }
  const outdated = query.policy && whyOutdated(read.ledger, query.policy)
  if (outdated !== undefined) return { unknown: outdated }
  const scope = ownValue(compartments, compartment)
  if (scope === undefined)
    return { unknown: `the census has not counted compartment ${JSON.stringify(compartment)} yet` }
  return { matched: scope.matched, ...(scope.batch && { batch: scope.batch }) }
}

/** A batch admits nodes for the policy and the work that it was opened for. */
function whyOutdated(
  ledger: Ledger,
  { uid, generation, applied }: NonNullable<LedgerQuery['policy']>,
): string | undefined {
  if (ledger.policy === undefined) return 'the census has not opened a batch for the DeploymentPolicy yet'
  if (ledger.policy.uid !== uid || ledger.policy.generation !== generation)
    return 'the census has not counted since the DeploymentPolicy changed'
  return ledger.applied === applied ? undefined : 'the census has not opened a batch for the current spec yet'
}

/** How many nodes the selectors of a policy's compartments match, according to the ledger. */
export function candidatesInLedger(
  ledgers: readonly Lease[],
  skyhook: SkyhookIdentity,
): (name: string) => number | undefined {
  const read = ledgerAmong(ledgers, skyhook)
  return (name) => (read?.outcome === 'read' ? ownValue(read.ledger.compartments, name)?.candidates : undefined)
}

/**
 * How many nodes wait for a slot of the Skyhook. Undefined without a count for its selector. While the count belongs to
 * other work, all selected nodes are expected to wait.
 * @param applied hash of the work that the asking node knows
 */
export function queueIn(
  ledgers: readonly Lease[],
  { skyhook, selectorHash, compartment = '', applied }: LedgerQuery & { readonly applied: string },
): Queue | undefined {
  const read = ledgerAmong(ledgers, skyhook)
  if (read?.outcome !== 'read') return undefined
  const { ledger } = read
  const { matched, waiters = ledger.waiters } = ownValue(ledger.compartments, compartment) ?? {}
  if (matched === undefined || ledger.skyhookUID !== skyhook.uid || ledger.selectorHash !== selectorHash)
    return undefined
  return { matched, waiters: ledger.applied === applied ? Math.max(1, waiters) : matched }
}

/** Ready agents in the cluster, if a ledger has the number. */
export function agentsIn(ledgers: readonly Lease[]): number | undefined {
  const counts = ledgers.map(readLedger).map((read) => (read.outcome === 'read' ? read.ledger.agents : undefined))
  return counts.find((agents) => agents !== undefined)
}

function ledgerAmong(ledgers: readonly Lease[], skyhook: SkyhookIdentity): LedgerRead | undefined {
  const lease = ledgers.find(({ metadata }) => metadata.name === ledgerName(skyhook))
  return lease && readLedger(lease)
}

export type LedgerWriteOutcome =
  | { readonly outcome: 'written'; readonly lease: Lease }
  /** The Lease was written, created or deleted since it was read: read and count again. */
  | { readonly outcome: 'conflict' }

/**
 * Writes the ledger over exactly the Lease that was read, or creates it if there was none. Two censuses cannot
 * overwrite each other unseen. Its owner is the Skyhook, so that garbage collection takes it with the Skyhook. Throws
 * for everything but a conflict.
 */
export async function writeLedger(
  leases: Leases,
  target: { readonly skyhook: SkyhookIdentity; readonly found: Lease | undefined },
  ledger: Ledger,
  signal?: AbortSignal,
): Promise<LedgerWriteOutcome> {
  const { skyhook, found } = target
  const body = ledgerLease(skyhook, found, ledger, leases.clock.wallMs())
  try {
    const path = found === undefined ? leasesPathOf(leases) : `${leasesPathOf(leases)}/${found.metadata.name}`
    const lease = await leases.transport.json<Lease>(found === undefined ? 'POST' : 'PUT', path, { body, signal })
    return { outcome: 'written', lease }
  } catch (error) {
    if (isAlreadyExists(error)) await showLedger(leases, skyhook, signal)
    if (isConflict(error) || isAlreadyExists(error) || isNotFound(error)) return { outcome: 'conflict' }
    throw error
  }
}

/** If someone removed the labels of a ledger, no LIST finds it, but its name stays taken: restore the labels. */
async function showLedger(leases: Leases, skyhook: SkyhookIdentity, signal: AbortSignal | undefined): Promise<void> {
  const path = `${leasesPathOf(leases)}/${ledgerName(skyhook)}`
  const found = await getIfExists<Lease>(leases.transport, path, { signal })
  const labels = { ...found?.metadata.labels, ...ledgerLabels(skyhook) }
  if (found === undefined || isEqual(found.metadata.labels, labels)) return
  const body = { ...found, metadata: { ...found.metadata, labels } }
  try {
    await leases.transport.json('PUT', path, { body, signal })
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) throw error
  }
}

function ledgerLease(skyhook: SkyhookIdentity, found: Lease | undefined, ledger: Ledger, nowMs: number): object {
  const metadata: { name: string } & Partial<ObjectMeta> = found?.metadata ?? { name: ledgerName(skyhook) }
  return {
    ...leaseTypeMeta,
    metadata: {
      ...metadata, // with the uid: a PUT without it would recreate a ledger that was deleted meanwhile
      labels: { ...metadata.labels, ...ledgerLabels(skyhook) },
      annotations: { ...metadata.annotations, [ledgerAnnotation]: JSON.stringify(ledger) },
      ownerReferences: [{ ...skyhookTypeMeta, name: skyhook.name, uid: skyhook.uid }],
    },
    spec: { ...found?.spec, holderIdentity: ledgerHolder, renewTime: microTime(nowMs) },
  }
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0

const batchCounts = ['epoch', 'currentBatch', 'size', 'completed', 'failed', 'consecutiveFailures', 'lastBatchSize']

const isBatch = (value: unknown): boolean =>
  value === undefined ||
  (isObject(value) &&
    batchCounts.every((count) => isCount(value[count])) &&
    [value['waitedSeconds'], value['notWaiting']].every((count) => count === undefined || isCount(count)) &&
    typeof value['stopped'] === 'boolean' &&
    typeof value['lastBatchFailed'] === 'boolean')

function isLedger(value: unknown): value is Ledger {
  if (!isObject(value)) return false
  const { v, skyhookUID, selectorHash, agents = 0, waiters, generation, compartments } = value
  return (
    typeof v === 'number' &&
    typeof skyhookUID === 'string' &&
    typeof selectorHash === 'string' &&
    [agents, waiters, generation].every(isCount) &&
    isObject(compartments) &&
    Object.values(compartments).every(
      (scope) => isObject(scope) && isCount(scope['matched']) && isBatch(scope['batch']),
    )
  )
}

/**
 * 16 hex digits that are equal for selectors that select the same by their form: order of labels, requirements and
 * values does not matter, absent and empty are one. The ledger carries it, so that nobody takes a percentage of nodes
 * that another selector matched.
 */
export const selectorHash = (selector: LabelSelector = {}): string => hashOf(selector)

const hashOf = perObject((selector: LabelSelector): string => {
  const labels = Object.entries(selector.matchLabels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
  const expressions = (selector.matchExpressions ?? [])
    .map(({ key, operator, values = [] }) => JSON.stringify([key, operator, values.toSorted()]))
    .toSorted()
  return sha256Hex(JSON.stringify([labels, expressions])).slice(0, 16)
})
