import type { Companion, NodeStateEntry } from '../../schemas/annotations.ts'
import * as keys from '../../schemas/annotations.ts'
import type { NodeConditionReason } from '../../schemas/catalogue/conditions.ts'
import type { KubernetesNode, NodeCondition, NodePatch } from '../../schemas/kubernetes.ts'
import type { Published, SkyhookRecord } from '../../schemas/journal.ts'
import type { NodeStatus } from '../../schemas/skyhook.ts'
import { parseObject } from '../../schemas/json.ts'
import { perObject } from '../../schemas/per-object.ts'
import { publishedOf } from '../../schemas/published.ts'
import { publishedReboots } from '../interrupt/reboots.ts'
import { sha256Hex } from '../../schemas/canonical-json.ts'
import { completionHash } from '../model/package-inputs.ts'
import { publishedState } from '../model/package-state.ts'
import { formatTime } from '../../schemas/time.ts'
import { emptyPatch, isEmptyPatch, settleMs, type TimedReason, writePaceMs } from '../model/plan.ts'
import type { SkyhookView, Snapshot } from '../model/snapshot.ts'
import {
  conditionsOfSkyhook,
  isSameReason,
  packageConditions,
  packageReasonsText,
  publishedReason,
} from './package-reasons.ts'
import { isSameCompanion, publishedStepText, publishedWork } from './published-work.ts'

/** Minimum interval between writes of progress inside one status; a change of status is written at once. */
const progressIntervalMs = 1_000

/** Text of the nodeState annotation: the operator's fields in its order, keys sorted, empty ones left out. */
export const nodeStateText = ({ packages }: SkyhookRecord): string => textOfPackages(packages)

const textOfPackages = perObject((packages: SkyhookRecord['packages']): string => {
  const entries = Object.entries(packages)
    .filter(([, { progress, work }]) => {
      const isUninstalled = progress.stage === 'uninstall' && publishedState(progress) === 'complete'
      return !(isUninstalled && work === undefined)
    })
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, { name, version, image, containerSHA, progress, restarts }]): [string, NodeStateEntry] => [
      key,
      {
        name,
        version,
        image: withoutTag(image),
        ...(containerSHA && { containerSHA }),
        stage: progress.stage,
        state: publishedState(progress),
        ...(restarts > 0 && { restarts }),
      },
    ])
  return JSON.stringify(Object.fromEntries(entries))
})

/** The operator publishes only the repository; a registry's port is not a tag. */
function withoutTag(image: string): string {
  const name = image.lastIndexOf('/') + 1
  const tag = image.indexOf(':', name)
  return tag < 0 ? image : image.slice(0, tag)
}

/**
 * What to publish now and when to decide again: unchanged while mere progress is younger than its pace, or while a wait
 * has just started (most are over before the write would arrive). If the Node `isContradicted`, at once.
 */
export function nextPublished(
  record: SkyhookRecord,
  status: NodeStatus,
  reason: TimedReason | undefined,
  snapshot: Pick<Snapshot, 'nowMs' | 'answerMs' | 'spreadMs'>,
  isContradicted: boolean,
): { readonly published: Published | undefined; readonly recheckAtMs: number } {
  const { nowMs } = snapshot
  const state = nodeStateText(record)
  const last = record.published
  if (last && last.state === state && last.status === status) return { published: last, recheckAtMs: Infinity }
  const isProgress = last?.status === status && status !== 'complete'
  const dueMs = isProgress
    ? last.atMs + writePaceMs(progressIntervalMs, snapshot)
    : status === 'waiting' && reason && !isContradicted
      ? (reason.firstSinceMs ?? reason.sinceMs) + settleMs(snapshot)
      : 0
  if (dueMs > nowMs) return { published: last, recheckAtMs: dueMs }
  const rev = (last?.rev ?? record.rev) + 1
  return { published: { rev, state, status, atMs: nowMs }, recheckAtMs: Infinity }
}

/** The Node shows complete for exactly this spec, as right after a person's reset. */
export function nodeShowsComplete({ node }: Snapshot, view: SkyhookView): boolean {
  const { status, companion } = publishedOf(node, view.metadata.name)
  return status === 'complete' && companion?.applied === completionHash(view)
}

/** Everything the Node should show for one Skyhook, as differences to its current content. */
export function skyhookPatch(
  snapshot: Snapshot,
  name: string,
  record: SkyhookRecord,
  reason: TimedReason | undefined,
): NodePatch & { readonly recheckAtMs: number } {
  const current = snapshot.node.metadata.annotations ?? {}
  const { published } = record
  const patch = emptyPatch()
  if (!published) return { ...patch, recheckAtMs: Infinity }

  const companion = JSON.stringify(newCompanion(snapshot, record, published))
  const desired: Record<string, string | null> = {
    [keys.nodeStateKey(name)]: published.state,
    [keys.statusKey(name)]: published.status,
    [keys.versionKey(name)]: keys.apiLevel,
    [keys.journalKey(name)]: companion,
  }
  // a status of waiting needs its reason; a wait during the work may pass before anyone reads it
  const isStatusChange = current[keys.statusKey(name)] !== published.status && published.status !== 'in_progress'
  const { text, recheckAtMs } = reasonText(snapshot, current[keys.reasonKey(name)], reason, isStatusChange)
  desired[keys.reasonKey(name)] = text
  const journal = keys.journalKey(name)
  if (isSameCompanion(current[journal], desired[journal])) desired[journal] = current[journal] ?? null
  const isWriting = Object.entries(desired).some(([key, value]) => (current[key] ?? null) !== value)
  if (isWriting) desired[journal] = companion
  const packageReasons = packageReasonsText(snapshot, name, reason?.packages, isWriting)
  desired[keys.reasonsKey(name)] = packageReasons.text
  const step = publishedStepText(snapshot, name, record, isWriting)
  desired[keys.stepKey(name)] = step.text
  // nodeState and its companion always travel together: the companion proves who wrote nodeState
  const isStale = [keys.nodeStateKey(name), keys.journalKey(name)].some((key) => current[key] !== desired[key])
  for (const [key, value] of Object.entries(desired)) {
    const isPair = isStale && (key === keys.nodeStateKey(name) || key === keys.journalKey(name))
    if (isPair || (current[key] ?? null) !== value) patch.annotations[key] = value
  }
  if (snapshot.node.metadata.labels?.[keys.statusKey(name)] !== published.status)
    patch.labels[keys.statusKey(name)] = published.status
  patch.conditions.push(...ownConditions(snapshot, name, published.status))
  const packageChanges = packageConditions(snapshot, name, record, !isEmptyPatch(patch))
  patch.conditions.push(...packageChanges.conditions)
  patch.removedConditions.push(...packageChanges.removed)
  const recheckTimesMs = [recheckAtMs, packageReasons.recheckAtMs, step.recheckAtMs, packageChanges.recheckAtMs]
  return { ...patch, recheckAtMs: Math.min(...recheckTimesMs) }
}

const hashOf = perObject(({ state }: Published): string => sha256Hex(state))

function newCompanion(snapshot: Snapshot, record: SkyhookRecord, published: Published): Companion {
  const reboots = publishedReboots(record)
  const work = publishedWork(record)
  return {
    v: 1,
    rev: published.rev,
    sha256: hashOf(published),
    nodeUID: snapshot.node.metadata.uid,
    ...(record.applied && { applied: record.applied }),
    ...(record.completedBy && { completedBy: record.completedBy }),
    ...(record.takenOver === 'complete' && { foundComplete: true }),
    ...(Object.keys(reboots).length > 0 && { reboots }),
    ...(Object.keys(work).length > 0 && { work }), // the last: `isSameCompanion` leaves it out
  }
}

/** Removes everything of a Skyhook from the Node. */
export function removalPatch(snapshot: Snapshot, name: string): NodePatch {
  const patch = emptyPatch()
  const { annotations = {}, labels = {} } = snapshot.node.metadata
  const { nodeStateKey, statusKey, versionKey, journalKey, reasonKey, reasonsKey, stepKey, cordonKey } = keys
  for (const keyOf of [nodeStateKey, statusKey, versionKey, journalKey, reasonKey, reasonsKey, stepKey, cordonKey])
    if (Object.hasOwn(annotations, keyOf(name))) patch.annotations[keyOf(name)] = null
  if (Object.hasOwn(labels, keys.statusKey(name))) patch.labels[keys.statusKey(name)] = null
  patch.removedConditions.push(...conditionsOfSkyhook(snapshot.node, name).map(({ type }) => type))
  return patch
}

/** The published reason keeps its `since` while all else stays; a short reason is not written. */
function reasonText(
  snapshot: Snapshot,
  currentText: string | undefined,
  reason: TimedReason | undefined,
  isStatusChange: boolean,
): { readonly text: string | null; readonly recheckAtMs: number } {
  if (!reason) return { text: null, recheckAtMs: Infinity }
  if (currentText !== undefined && showsReason(currentText, reason)) return { text: currentText, recheckAtMs: Infinity }
  // reasons that follow each other count as one, and one of them is published; another text must last before it
  // replaces it
  const { sinceMs, firstSinceMs = sinceMs } = reason
  const settledAtMs = (currentText === undefined ? firstSinceMs : sinceMs) + settleMs(snapshot)
  if (settledAtMs > snapshot.nowMs && !isStatusChange) return { text: currentText ?? null, recheckAtMs: settledAtMs }
  return { text: reasonAnnotation(snapshot, reason), recheckAtMs: Infinity }
}

export const showsReason = (text: string | undefined, reason: TimedReason): boolean =>
  isSameReason(parseObject(text) ?? {}, reason)

export const reasonAnnotation = (snapshot: Pick<Snapshot, 'wallOffsetMs'>, reason: TimedReason): string =>
  JSON.stringify(publishedReason(reason, snapshot))

/** Differences in the Skyhook's own two conditions. */
function ownConditions(snapshot: Snapshot, name: string, status: NodeStatus): readonly NodeCondition[] {
  const condition = (type: string, isTrue: boolean, reason: NodeConditionReason, message: string) =>
    ({ type, status: isTrue ? 'True' : 'False', reason, message }) as const
  const isComplete = status === 'complete'
  const isErroring = status === 'erroring'
  const changed = [
    condition(
      keys.notReadyCondition(name),
      !isComplete,
      isComplete ? 'Complete' : 'Incomplete',
      `Skyhook ${name} Ready`,
    ),
    condition(
      keys.erroringCondition(name),
      isErroring,
      isErroring ? 'Package(s) Erroring or Unknown' : 'Not Erroring',
      `Package Erroring or Unknown for ${name}`,
    ),
  ].filter((one) => !isShown(snapshot.node, one))
  if (changed.length === 0) return []
  const at = formatTime(snapshot.nowMs + snapshot.wallOffsetMs)
  return changed.map((one) => ({ ...one, lastHeartbeatTime: at, lastTransitionTime: at }))
}

const isShown = ({ status: shown }: KubernetesNode, { type, status, reason }: NodeCondition): boolean =>
  (shown?.conditions ?? []).some(
    (current) => current.type === type && current.status === status && current.reason === reason,
  )
