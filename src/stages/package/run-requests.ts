import { erroringCondition, notReadyCondition, packageCondition } from '../../schemas/annotations.ts'
import { durationMs } from '../../schemas/duration.ts'
import type { PackageRecord, SkyhookRecord } from '../../schemas/journal.ts'
import type { NodeCondition } from '../../schemas/kubernetes.ts'
import type { StatusReadResult } from '../../schemas/package-status.ts'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import { type PlanBuilder, setEntry, requeueAt } from '../model/plan-builder.ts'
import { isConditional } from '../interrupt/merge.ts'
import type { Snapshot } from '../model/snapshot.ts'

/**
 * What packages find out on their hosts between their stages: a wish for a run of config, which is granted like a
 * change by a person, and a line for people, which stands on the Node as a condition.
 * /
 */
export const packageStatusKey = (skyhook: string, name: string): string => `${skyhook}/${name}`

/**
 * Words of a condition may change with every look of a package; only what it wants is worth a write of its own at once.
 */
const messageRefreshMs = 3_600_000

const statusOf = ({ statuses }: Snapshot, skyhook: string, name: string): StatusReadResult | undefined =>
  statuses.known ? statuses.value.get(packageStatusKey(skyhook, name)) : undefined

/** True when config of a complete package is due because its host asks for it. */
export function isRunRequested(builder: PlanBuilder, spec: PackageSpec, entry: PackageRecord): boolean {
  const { snapshot, view } = builder
  const limitMs = spec.rerunOnRequest && durationMs(spec.rerunOnRequest.minInterval)
  if (limitMs === undefined || entry.finishedInputs === undefined || entry.stage === 'uninstall') return false
  const found = statusOf(snapshot, view.metadata.name, entry.name)
  if (found?.state !== 'read' || found.status.bootId !== snapshot.bootId) return false
  const { passedAtMs = 0, lastRequestedRunAtMs = -Infinity } = entry
  if (found.writtenAtMs <= passedAtMs && passedAtMs <= snapshot.nowMs) return false // of before the last run, which has seen to it
  const { run, interrupt } = found.status.requests
  const mayInterrupt = spec.interrupt !== undefined && isConditional(spec.interrupt) // else a run would change nothing
  if (!run && !(interrupt && mayInterrupt)) return false
  const sinceMs = snapshot.nowMs - lastRequestedRunAtMs
  if (sinceMs < 0 || sinceMs >= limitMs) return true // a clock that was set back must not silence the host
  requeueAt(builder, snapshot.nowMs + limitMs - sinceMs)
  return false
}

/** From here on it counts how often the host was listened to. */
export function recordRunRequest(builder: PlanBuilder, key: string): void {
  const entry = builder.record.packages[key]
  if (entry) setEntry(builder, { ...entry, lastRequestedRunAtMs: builder.snapshot.nowMs })
}

export type ConditionChanges = {
  readonly conditions: readonly NodeCondition[]
  readonly removed: readonly string[]
  /** When words that changed are to be written at the latest. */
  readonly recheckAtMs: number
}

/**
 * Conditions of the Skyhook's packages, as differences to what the Node shows; `isWriting`: the Node is written anyway.
 */
export function packageConditions(
  snapshot: Snapshot,
  skyhook: string,
  record: SkyhookRecord,
  isWriting: boolean,
): ConditionChanges {
  const conditions: NodeCondition[] = []
  let recheckAtMs = Infinity
  if (!snapshot.statuses.known) return { conditions, removed: [], recheckAtMs } // not looked at yet: what stands there stays
  const currentConditions = new Map(
    (snapshot.node.status?.conditions ?? []).map((condition) => [condition.type, condition]),
  )
  const desiredTypes = new Set<string>()
  for (const name of new Set(Object.values(record.packages).flatMap(({ name, work }) => (work ? [name] : [])))) {
    const found = statusOf(snapshot, skyhook, name)
    if (!found) continue
    const type = packageCondition(skyhook, name)
    desiredTypes.add(type)
    const currentCondition = currentConditions.get(type)
    const desired = formatCondition(found, snapshot.bootId)
    const isSame = currentCondition?.status === desired.status && currentCondition.reason === desired.reason
    if (isSame && currentCondition.message === desired.message) continue
    const dueMs = isSame ? Date.parse(currentCondition.lastHeartbeatTime ?? '') + messageRefreshMs : snapshot.nowMs
    if (!isWriting && dueMs > snapshot.nowMs) {
      recheckAtMs = Math.min(recheckAtMs, dueMs)
      continue
    }
    const at = new Date(snapshot.nowMs).toISOString().replace(/\.\d+Z$/, 'Z')
    const since = currentCondition?.status === desired.status ? (currentCondition.lastTransitionTime ?? at) : at
    conditions.push({ type, ...desired, lastHeartbeatTime: at, lastTransitionTime: since })
  }
  return {
    conditions,
    removed: [...currentConditions.keys()].filter(
      (type) => isConditionOfSkyhook(type, skyhook) && !desiredTypes.has(type),
    ),
    recheckAtMs,
  }
}

/** Types of this Skyhook's conditions that a Node shows, those of its packages included. */
export const isConditionOfSkyhook = (type: string, skyhook: string): boolean =>
  type.startsWith(packageCondition(skyhook, '')) &&
  type !== notReadyCondition(skyhook) &&
  type !== erroringCondition(skyhook)

function formatCondition(
  found: StatusReadResult,
  bootId: string,
): Pick<NodeCondition, 'status' | 'reason' | 'message'> {
  if (found.state === 'unusable') return { status: 'Unknown', reason: 'StatusInvalid', message: found.why }
  const { message, requests } = found.status
  if (found.status.bootId !== bootId) return { status: 'Unknown', reason: 'StaleSinceBoot', message }
  if (requests.interrupt) return { status: 'True', reason: 'InterruptRequired', message }
  return requests.run
    ? { status: 'True', reason: 'RunRequested', message }
    : { status: 'False', reason: 'NoActionRequired', message }
}

/** How many packages of this host want a run, and how many an interrupt. */
export function countRequests(
  statuses: Snapshot['statuses'],
  bootId: string,
): ReadonlyMap<'run' | 'interrupt', number> {
  const current = statuses.known
    ? [...statuses.value.values()].flatMap((found) =>
        found.state === 'read' && found.status.bootId === bootId ? [found.status.requests] : [],
      )
    : []
  return new Map([
    ['run', current.filter(({ run }) => run).length],
    ['interrupt', current.filter(({ interrupt }) => interrupt).length],
  ])
}
