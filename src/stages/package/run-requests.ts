import { erroringCondition, notReadyCondition, packageCondition } from '../../schemas/annotations.ts'
import { durationMs } from '../../schemas/duration.ts'
import type { PackageRecord, SkyhookRecord } from '../../schemas/journal.ts'
import type { NodeCondition } from '../../schemas/kubernetes.ts'
import type { StatusRead } from '../../schemas/package-status.ts'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import type { Draft } from '../model/plan-builder.ts'
import { setEntry, wakeAt } from '../model/plan-builder.ts'
import { isConditional } from '../interrupt/merge.ts'
import type { World } from '../model/snapshot.ts'

/**
 * What packages find out on their hosts between their stages: a wish for a run of config, which is granted like a change by a
 * person, and a line for people, which stands on the Node as a condition.
 */
export const packageOf = (skyhook: string, name: string): string => `${skyhook}/${name}`

/** Words of a condition may change with every look of a package; only what it wants is worth a write of its own at once. */
const wordsEveryMs = 3_600_000

const statusOf = ({ statuses }: World, skyhook: string, name: string): StatusRead | undefined =>
  statuses.known ? statuses.value.get(packageOf(skyhook, name)) : undefined

/** True when config of a complete package is due because its host asks for it. */
export function isWanted(draft: Draft, spec: PackageSpec, entry: PackageRecord): boolean {
  const { world, view } = draft
  const limitMs = spec.rerunOnRequest && durationMs(spec.rerunOnRequest.minInterval)
  if (limitMs === undefined || entry.finished === undefined || entry.stage === 'uninstall') return false
  const found = statusOf(world, view.metadata.name, entry.name)
  if (found?.state !== 'read' || found.status.bootId !== world.bootId) return false
  const { passedAtMs = 0, wantedAtMs = Number.NEGATIVE_INFINITY } = entry
  if (found.writtenAtMs <= passedAtMs && passedAtMs <= world.nowMs) return false // of before the last run, which has seen to it
  const { run, interrupt } = found.status.requests
  const mayInterrupt = spec.interrupt !== undefined && isConditional(spec.interrupt) // else a run would change nothing
  if (!run && !(interrupt && mayInterrupt)) return false
  const sinceMs = world.nowMs - wantedAtMs
  if (sinceMs < 0 || sinceMs >= limitMs) return true // a clock that was set back must not silence the host
  wakeAt(draft, world.nowMs + limitMs - sinceMs)
  return false
}

/** From here on it counts how often the host was listened to. */
export function noteWish(draft: Draft, key: string): void {
  const entry = draft.record.packages[key]
  if (entry) setEntry(draft, { ...entry, wantedAtMs: draft.world.nowMs })
}

export type ConditionChanges = {
  readonly conditions: readonly NodeCondition[]
  readonly removed: readonly string[]
  /** When words that changed are to be written at the latest. */
  readonly againAtMs: number
}

/** Conditions of the Skyhook's packages, as differences to what the Node shows; `isWriting`: the Node is written anyway. */
export function packageConditions(world: World, skyhook: string, record: SkyhookRecord, isWriting: boolean): ConditionChanges {
  const conditions: NodeCondition[] = []
  let againAtMs = Number.POSITIVE_INFINITY
  if (!world.statuses.known) return { conditions, removed: [], againAtMs } // not looked at yet: what stands there stays
  const shown = new Map((world.node.status?.conditions ?? []).map((condition) => [condition.type, condition]))
  const wanted = new Set<string>()
  for (const name of new Set(Object.values(record.packages).flatMap(({ name, work }) => (work ? [name] : [])))) {
    const found = statusOf(world, skyhook, name)
    if (!found) continue
    const type = packageCondition(skyhook, name)
    wanted.add(type)
    const before = shown.get(type)
    const now = words(found, world.bootId)
    const isSame = before?.status === now.status && before.reason === now.reason
    if (isSame && before.message === now.message) continue
    const dueMs = isSame ? Date.parse(before.lastHeartbeatTime ?? '') + wordsEveryMs : world.nowMs
    if (!isWriting && dueMs > world.nowMs) {
      againAtMs = Math.min(againAtMs, dueMs)
      continue
    }
    const at = new Date(world.nowMs).toISOString().replace(/\.\d+Z$/, 'Z')
    const since = before?.status === now.status ? (before.lastTransitionTime ?? at) : at
    conditions.push({ type, ...now, lastHeartbeatTime: at, lastTransitionTime: since })
  }
  return { conditions, removed: [...shown.keys()].filter((type) => isOfPackage(type, skyhook) && !wanted.has(type)), againAtMs }
}

/** Types of this Skyhook's conditions that a Node shows, those of its packages included. */
export const isOfPackage = (type: string, skyhook: string): boolean =>
  type.startsWith(packageCondition(skyhook, '')) && type !== notReadyCondition(skyhook) && type !== erroringCondition(skyhook)

function words(found: StatusRead, bootId: string): Pick<NodeCondition, 'status' | 'reason' | 'message'> {
  if (found.state === 'unusable') return { status: 'Unknown', reason: 'StatusInvalid', message: found.why }
  const { message, requests } = found.status
  if (found.status.bootId !== bootId) return { status: 'Unknown', reason: 'StaleSinceBoot', message }
  if (requests.interrupt) return { status: 'True', reason: 'InterruptRequired', message }
  return requests.run ? { status: 'True', reason: 'RunRequested', message } : { status: 'False', reason: 'NoActionRequired', message }
}

/** How many packages of this host want a run, and how many an interrupt. */
export function countWishes(statuses: World['statuses'], bootId: string): ReadonlyMap<'run' | 'interrupt', number> {
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
