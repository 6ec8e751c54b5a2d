import { erroringCondition, notReadyCondition, packageCondition } from '../../schemas/annotations.ts'
import type { SkyhookRecord } from '../../schemas/journal.ts'
import type { NodeConditionReason } from '../../schemas/catalogue/conditions.ts'
import type { KubernetesNode, NodeCondition } from '../../schemas/kubernetes.ts'
import type { StatusReadResult } from '../../schemas/package-status.ts'
import { formatTime } from '../../schemas/time.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { statusOf } from '../package/run-requests.ts'

/** The text of a condition may change with every run of a package; only a changed request is written at once. */
const messageRefreshMs = 3_600_000

export type ConditionChanges = {
  readonly conditions: readonly NodeCondition[]
  readonly removed: readonly string[]
  /** When a changed text must be written at the latest. */
  readonly recheckAtMs: number
}

/** Conditions of the Skyhook's packages, as differences to the Node's; `isWriting`: the Node is written anyway. */
export function packageConditions(
  snapshot: Snapshot,
  skyhook: string,
  record: SkyhookRecord,
  isWriting: boolean,
): ConditionChanges {
  const conditions: NodeCondition[] = []
  let recheckAtMs = Infinity
  // not read yet: the condition stays
  if (!snapshot.statuses.known) return { conditions, removed: [], recheckAtMs }
  const currentConditions = new Map(
    conditionsOfSkyhook(snapshot.node, skyhook).map((condition) => [condition.type, condition]),
  )
  const desiredTypes = new Set([notReadyCondition(skyhook), erroringCondition(skyhook)])
  const wallMs = snapshot.nowMs + snapshot.wallOffsetMs
  for (const name of new Set(Object.values(record.packages).flatMap(({ name, work }) => (work ? [name] : [])))) {
    const found = statusOf(snapshot, skyhook, name)
    if (!found) continue
    const type = packageCondition(skyhook, name)
    desiredTypes.add(type)
    const currentCondition = currentConditions.get(type)
    const desired = formatCondition(found, snapshot.bootId)
    const isSame = currentCondition?.status === desired.status && currentCondition.reason === desired.reason
    if (isSame && currentCondition.message === desired.message) continue
    const ageMs = isSame ? wallMs - Date.parse(currentCondition.lastHeartbeatTime ?? '') : Infinity
    // a text from the future comes from a wrong clock, and is due
    if (!isWriting && ageMs >= 0 && ageMs < messageRefreshMs) {
      recheckAtMs = Math.min(recheckAtMs, snapshot.nowMs + messageRefreshMs - ageMs)
      continue
    }
    const at = formatTime(wallMs)
    const since = currentCondition?.status === desired.status ? (currentCondition.lastTransitionTime ?? at) : at
    conditions.push({ type, ...desired, lastHeartbeatTime: at, lastTransitionTime: since })
  }
  return {
    conditions,
    removed: [...currentConditions.keys()].filter((type) => !desiredTypes.has(type)),
    recheckAtMs,
  }
}

/** What a Node shows of this Skyhook, the conditions of its packages included. */
export function conditionsOfSkyhook({ status }: KubernetesNode, skyhook: string): readonly NodeCondition[] {
  const prefix = packageCondition(skyhook, '')
  return (status?.conditions ?? []).filter(({ type }) => type.startsWith(prefix))
}

function formatCondition(
  found: StatusReadResult,
  bootId: string,
): Pick<NodeCondition, 'status' | 'message'> & { readonly reason: NodeConditionReason } {
  if (found.state === 'unusable') return { status: 'Unknown', reason: 'StatusInvalid', message: found.why }
  const { message, requests } = found.status
  if (found.status.bootId !== bootId) return { status: 'Unknown', reason: 'StaleSinceBoot', message }
  if (requests.interrupt) return { status: 'True', reason: 'InterruptRequired', message }
  return requests.run
    ? { status: 'True', reason: 'RunRequested', message }
    : { status: 'False', reason: 'NoActionRequired', message }
}
