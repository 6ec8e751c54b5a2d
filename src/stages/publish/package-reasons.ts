import {
  erroringCondition,
  notReadyCondition,
  type PublishedReason,
  packageCondition,
  reasonsKey,
} from '../../schemas/annotations.ts'
import type { NodeConditionReason } from '../../schemas/catalogue/conditions.ts'
import type { SkyhookRecord } from '../../schemas/journal.ts'
import { isObject, type JsonObject, ownValue, parseObject } from '../../schemas/json.ts'
import type { KubernetesNode, NodeCondition } from '../../schemas/kubernetes.ts'
import type { StatusReadResult } from '../../schemas/package-status.ts'
import { clip } from '../../schemas/plain-text.ts'
import { formatTime } from '../../schemas/time.ts'
import { counted } from '../../schemas/wording.ts'
import { settleMs, type TimedReason } from '../model/plan.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { statusOf } from '../package/run-requests.ts'

/** Annotations of a Node share 256 KiB. */
const maxBytes = 4_096
/** Maximum lengths of messages to try, in characters, until all packages fit. */
const shortestMessage = 128
const messageLengths = [1_024, 512, 256, shortestMessage]

type Entries = readonly (readonly [name: string, reason: PublishedReason])[]

/**
 * Text of the annotation with the reason of every failing package, the worst first; null without any. An entry keeps
 * its `since` while all else stays. A new entry is written once it has lasted a while, or together with another change.
 */
export function packageReasonsText(
  snapshot: Snapshot,
  skyhook: string,
  reasons: ReadonlyMap<string, TimedReason> = new Map(),
  isWriting: boolean,
): { readonly text: string | null; readonly recheckAtMs: number } {
  const currentText = snapshot.node.metadata.annotations?.[reasonsKey(skyhook)]
  const current = parseObject(currentText) ?? {}
  const entries: (readonly [string, PublishedReason])[] = []
  let recheckAtMs = Infinity
  for (const [name, reason] of reasons) {
    const shown = shownReason(ownValue(current, name))
    const isShown = shown !== undefined && isSameReason(shown, reason)
    const { sinceMs, firstSinceMs = sinceMs } = reason
    const settledAtMs = (shown ? sinceMs : firstSinceMs) + settleMs(snapshot)
    const isNew = !isShown && settledAtMs > snapshot.nowMs && !isWriting
    if (isNew) recheckAtMs = Math.min(recheckAtMs, settledAtMs)
    if (isNew || isShown) entries.push(...(shown ? [[name, shown] as const] : []))
    else entries.push([name, publishedReason(reason, snapshot)])
  }
  return { text: entries.length === 0 ? null : bounded(entries), recheckAtMs }
}

function shownReason(value: unknown): PublishedReason | undefined {
  if (!isObject(value)) return undefined
  const { reason, message, code, package: key, since, attempts, nextTry } = value
  if (typeof reason !== 'string' || typeof message !== 'string' || typeof since !== 'string') return undefined
  return {
    reason,
    message,
    ...(typeof code === 'string' && { code }),
    ...(typeof key === 'string' && { package: key }),
    since,
    ...(typeof attempts === 'number' && { attempts }),
    ...(typeof nextTry === 'string' && { nextTry }),
  }
}

/** Shortens messages, then leaves out the last packages and counts them. */
function bounded(entries: Entries): string {
  for (const length of messageLengths) {
    const text = textOf(withShortMessages(entries, length))
    if (Buffer.byteLength(text) <= maxBytes) return text
  }
  const short = withShortMessages(entries, shortestMessage)
  return (
    short
      .map(([, { reason, since }], kept) => {
        const omitted = { reason, message: counted(short.length - kept, 'more package'), since }
        return textOf([...short.slice(0, kept), ['…', omitted]])
      })
      .findLast((text) => Buffer.byteLength(text) <= maxBytes) ?? '{}'
  )
}

const withShortMessages = (entries: Entries, length: number): Entries =>
  entries.map(([name, reason]) => [name, { ...reason, message: clip(reason.message, length) }])

const textOf = (entries: Entries): string => JSON.stringify(Object.fromEntries(entries))

/** The text of a condition may change with every run of a package; only a changed request is written at once. */
const messageRefreshMs = 3_600_000

type ConditionChanges = {
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

/** A reason as in the annotations of the Node. */

/** `since` by the current wall clock: the clock may have been wrong when the wait started. */
export const publishedReason = (
  { reason, message, code, package: key, attempts, sinceMs, failingSinceMs = sinceMs }: TimedReason,
  { wallOffsetMs }: { readonly wallOffsetMs: number },
): PublishedReason => ({
  reason,
  message,
  ...(code && { code }),
  ...(key !== undefined && { package: key }),
  since: new Date(failingSinceMs + wallOffsetMs).toISOString(),
  ...(attempts && { attempts: attempts.count, nextTry: new Date(attempts.retryAtMs + wallOffsetMs).toISOString() }),
})

/** The Node has the same reason; its `since` is older, or by another clock. */
export const isSameReason = (shown: JsonObject | PublishedReason, reason: TimedReason): boolean =>
  (['reason', 'message', 'code', 'package'] as const).every((field) => shown[field] === reason[field]) &&
  shown.attempts === reason.attempts?.count
