import type { Companion, NodeStateEntry } from '../../schemas/annotations.ts'
import * as keys from '../../schemas/annotations.ts'
import type { NodeCondition, Taint } from '../../schemas/kubernetes.ts'
import type { Published, SkyhookRecord } from '../../schemas/journal.ts'
import type { NodeStatus, SkyhookSpec } from '../../schemas/skyhook.ts'
import { appliedHash } from '../model/applied-hash.ts'
import { sha256Hex } from '../../schemas/canonical-json.ts'
import type { NodePatch, TimedReason } from '../model/plan.ts'
import { isOfPackage, packageConditions } from '../package/run-requests.ts'
import type { World } from '../model/snapshot.ts'

/** Progress inside one status goes out at most this often; a change of status goes at once. */
const progressEveryMs = 1_000
/** A reason that is gone again sooner is not worth a write. */
const reasonSettlesMs = 700

/** Text of the nodeState annotation: the incumbent's fields in its order, keys sorted, empty ones left out. */
export function nodeStateText(record: SkyhookRecord): string {
  const entries = Object.entries(record.packages)
    .filter(([, { stage, state, work }]) => !(stage === 'uninstall' && state === 'complete' && work === undefined))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, { name, version, image, containerSHA, stage, state, restarts }]): [string, NodeStateEntry] => [
      key,
      {
        name,
        version,
        image: withoutTag(image),
        ...(containerSHA && { containerSHA }),
        stage,
        ...(state && { state }),
        ...(restarts > 0 && { restarts }),
      },
    ])
  return JSON.stringify(Object.fromEntries(entries))
}

/** The incumbent publishes the repository alone; a registry's port is not a tag. */
function withoutTag(image: string): string {
  const name = image.lastIndexOf('/') + 1
  const tag = image.indexOf(':', name)
  return tag < 0 ? image : image.slice(0, tag)
}

/**
 * What should be published now and when to look again: unchanged while mere progress is younger than its pace, or while
 * a wait has only just begun (most are over before the write would arrive), unless the Node `isBelied`: then at once.
 */
export function nextPublished(
  record: SkyhookRecord,
  status: NodeStatus,
  reason: TimedReason | undefined,
  nowMs: number,
  isBelied: boolean,
): { readonly published: Published | undefined; readonly againAtMs: number } {
  const state = nodeStateText(record)
  const last = record.published
  if (last && last.state === state && last.status === status) return { published: last, againAtMs: Number.POSITIVE_INFINITY }
  const isProgress = last?.status === status && status !== 'complete'
  const dueMs = isProgress
    ? last.atMs + progressEveryMs
    : status === 'waiting' && reason && !isBelied
      ? reason.sinceMs + reasonSettlesMs
      : 0
  if (dueMs > nowMs) return { published: last, againAtMs: dueMs }
  return { published: { rev: (last?.rev ?? record.rev) + 1, state, status, atMs: nowMs }, againAtMs: Number.POSITIVE_INFINITY }
}

/** The Node says complete for this very spec, as it does right after a person's reset. */
export function saysComplete({ node }: World, name: string, spec: SkyhookSpec): boolean {
  const { annotations = {} } = node.metadata
  if (annotations[keys.statusKey(name)] !== 'complete') return false
  return annotations[keys.journalKey(name)]?.includes(`"applied":"${appliedHash(spec)}"`) === true
}

/** Everything the Node should show for one Skyhook, as differences to what it shows. */
export function skyhookPatch(
  world: World,
  name: string,
  record: SkyhookRecord,
  reason: TimedReason | undefined,
): NodePatch & { readonly againAtMs: number } {
  const shown = world.node.metadata.annotations ?? {}
  const { published } = record
  const patch = emptyPatch()
  if (!published) return { ...patch, againAtMs: Number.POSITIVE_INFINITY }

  const companion: Companion = {
    v: 1,
    rev: published.rev,
    sha256: sha256Hex(published.state),
    nodeUID: world.node.metadata.uid,
    ...(record.applied && { applied: record.applied }),
    ...(Object.keys(record.reboots).length > 0 && { reboots: record.reboots }),
  }
  const wanted: Record<string, string | null> = {
    [keys.nodeStateKey(name)]: published.state,
    [keys.statusKey(name)]: published.status,
    [keys.versionKey(name)]: keys.apiLevel,
    [keys.journalKey(name)]: JSON.stringify(companion),
  }
  // the news that nothing goes on brings its reason along; a wait in the middle of work may pass before anybody has read of it
  const isNews = shown[keys.statusKey(name)] !== published.status && published.status !== 'in_progress'
  const { text, againAtMs } = reasonText(world, shown[keys.reasonKey(name)], reason, isNews)
  wanted[keys.reasonKey(name)] = text
  // nodeState and its companion always travel together: the one tells whose the other is
  const stale = [keys.nodeStateKey(name), keys.journalKey(name)].some((key) => shown[key] !== wanted[key])
  for (const [key, value] of Object.entries(wanted)) {
    const together = stale && (key === keys.nodeStateKey(name) || key === keys.journalKey(name))
    if (together || (shown[key] ?? null) !== value) patch.annotations[key] = value
  }
  if (world.node.metadata.labels?.[keys.statusKey(name)] !== published.status) patch.labels[keys.statusKey(name)] = published.status
  for (const condition of conditions(name, published.status, world.nowMs)) if (!shows(world, condition)) patch.conditions.push(condition)
  const ofPackages = packageConditions(world, name, record, !isEmptyPatch(patch))
  patch.conditions.push(...ofPackages.conditions)
  patch.removedConditions.push(...ofPackages.removed)
  return { ...patch, againAtMs: Math.min(againAtMs, ofPackages.againAtMs) }
}

/** Takes everything of a Skyhook off the Node. */
export function removalPatch(world: World, name: string): NodePatch {
  const patch = emptyPatch()
  const { annotations = {}, labels = {} } = world.node.metadata
  for (const key of [keys.nodeStateKey, keys.statusKey, keys.versionKey, keys.journalKey, keys.reasonKey, keys.cordonKey].map((keyOf) =>
    keyOf(name),
  )) {
    if (key in annotations) patch.annotations[key] = null
  }
  if (keys.statusKey(name) in labels) patch.labels[keys.statusKey(name)] = null
  const types = (world.node.status?.conditions ?? []).map(({ type }) => type)
  const own = [keys.notReadyCondition(name), keys.erroringCondition(name)]
  patch.removedConditions.push(...types.filter((type) => own.includes(type) || isOfPackage(type, name)))
  return patch
}

type MutablePatch = {
  annotations: Record<string, string | null>
  labels: Record<string, string | null>
  conditions: NodeCondition[]
  removedConditions: string[]
  unschedulable?: boolean
  taints?: readonly Taint[]
}

export const emptyPatch = (): MutablePatch => ({ annotations: {}, labels: {}, conditions: [], removedConditions: [] })

export const isEmptyPatch = ({ annotations, labels, conditions, removedConditions, unschedulable, taints }: NodePatch): boolean =>
  Object.keys(annotations).length === 0 &&
  Object.keys(labels).length === 0 &&
  conditions.length === 0 &&
  removedConditions.length === 0 &&
  unschedulable === undefined &&
  taints === undefined

/** The published reason keeps its `since` while reason and message stay; one that comes and goes at once is not written. */
function reasonText(
  world: World,
  shownText: string | undefined,
  reason: TimedReason | undefined,
  isNews: boolean,
): { readonly text: string | null; readonly againAtMs: number } {
  if (!reason) return { text: null, againAtMs: Number.POSITIVE_INFINITY }
  const shown = parseReason(shownText)
  if (shownText !== undefined && shown?.reason === reason.reason && shown.message === reason.message)
    return { text: shownText, againAtMs: Number.POSITIVE_INFINITY }
  const settledAtMs = reason.sinceMs + reasonSettlesMs
  if (settledAtMs > world.nowMs && !isNews) return { text: shownText ?? null, againAtMs: settledAtMs }
  const since = new Date(reason.sinceMs).toISOString()
  return { text: JSON.stringify({ reason: reason.reason, message: reason.message, since }), againAtMs: Number.POSITIVE_INFINITY }
}

function parseReason(text: string | undefined): { reason?: unknown; message?: unknown } | undefined {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as { reason?: unknown; message?: unknown })
  } catch {
    return undefined // a person's scribble: written anew
  }
}

function conditions(name: string, status: NodeStatus, nowMs: number): NodeCondition[] {
  const at = new Date(nowMs).toISOString().replace(/\.\d+Z$/, 'Z')
  const times = { lastHeartbeatTime: at, lastTransitionTime: at }
  const done = status === 'complete'
  const failing = status === 'erroring'
  return [
    {
      type: keys.notReadyCondition(name),
      status: done ? 'False' : 'True',
      reason: done ? 'Complete' : 'Incomplete',
      message: `Skyhook ${name} Ready`,
      ...times,
    },
    {
      type: keys.erroringCondition(name),
      status: failing ? 'True' : 'False',
      reason: failing ? 'Package(s) Erroring or Unknown' : 'Not Erroring',
      message: `Package Erroring or Unknown for ${name}`,
      ...times,
    },
  ]
}

const shows = (world: World, { type, status, reason }: NodeCondition): boolean =>
  (world.node.status?.conditions ?? []).some((shown) => shown.type === type && shown.status === status && shown.reason === reason)
