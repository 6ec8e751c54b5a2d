import { runtimeRequiredCondition, statusKey } from '../../schemas/annotations.ts'
import type { NodeConditionReason } from '../../schemas/catalogue/conditions.ts'
import type { Journal } from '../../schemas/journal.ts'
import type { NodeCondition, NodePatch } from '../../schemas/kubernetes.ts'
import { selects } from '../../schemas/selectors.ts'
import { formatTime } from '../../schemas/time.ts'
import { hasRequiredTaint, unliftedTaint } from '../drain/node-spec.ts'
import { emptyPatch } from '../model/plan.ts'
import type { SkyhookView, Snapshot } from '../model/snapshot.ts'
import { named } from '../../schemas/wording.ts'

/** A cloud provider adds labels after the Node exists, and with them a Skyhook may select it. */
const taintSettleMs = 10_000
const maxNames = 3

type TaintCondition = {
  readonly patch: NodePatch
  /** The part that the journal must keep. */
  readonly journalFields: Pick<Journal, 'taintUnliftedSinceMs'>
  readonly recheckAtMs: number
}

/**
 * The condition that no Skyhook lifts the Node's runtime-required taint, once that has lasted. While the Skyhooks are
 * not known, the condition stays. `isWriting`: the Node is written anyway.
 */
export function taintCondition(snapshot: Snapshot, isWriting: boolean): TaintCondition {
  const { node, settings, skyhooks, areSkyhooksInDoubt = false, journal, nowMs } = snapshot
  const isTainted = hasRequiredTaint(node, settings.runtimeRequiredTaint)
  const { taintUnliftedSinceMs: lastSinceMs } = journal
  if (isTainted && (!skyhooks.known || areSkyhooksInDoubt))
    return {
      ...unchanged,
      journalFields: lastSinceMs === undefined ? {} : { taintUnliftedSinceMs: lastSinceMs },
    }
  // the last Skyhook that required it is gone: this decision lifts it
  const isLifted = journal.runtimeRequired === true
  const taint =
    skyhooks.known && !isLifted ? unliftedTaint(node, settings.runtimeRequiredTaint, skyhooks.value) : undefined
  if (!taint) return { ...unchanged, patch: removalOf(snapshot, isWriting || !isTainted) }

  const sinceMs = lastSinceMs ?? nowMs
  const journalFields = { taintUnliftedSinceMs: sinceMs }
  const shown = shownCondition(snapshot)
  const message = messageOf(taint)
  if (shown?.status === 'True' && shown.message === message) return { ...unchanged, journalFields }
  const settledAtMs = sinceMs + taintSettleMs
  if (settledAtMs > nowMs && !shown) return { ...unchanged, journalFields, recheckAtMs: settledAtMs }
  const at = formatTime(nowMs + snapshot.wallOffsetMs)
  const reason: NodeConditionReason = 'RuntimeRequired'
  const condition: NodeCondition = {
    type: runtimeRequiredCondition,
    status: 'True',
    reason,
    message,
    lastHeartbeatTime: at,
    lastTransitionTime: shown?.status === 'True' ? (shown.lastTransitionTime ?? at) : at,
  }
  return { ...unchanged, patch: { ...emptyPatch(), conditions: [condition] }, journalFields }
}

const unchanged: TaintCondition = { patch: emptyPatch(), journalFields: {}, recheckAtMs: Infinity }

const shownCondition = ({ node }: Snapshot): NodeCondition | undefined =>
  node.status?.conditions?.find(({ type }) => type === runtimeRequiredCondition)

/** A Skyhook that now selects the node writes its status soon: the condition goes with that write, or later. */
function removalOf(snapshot: Snapshot, isDue: boolean): NodePatch {
  const { skyhooks, node } = snapshot
  if (!shownCondition(snapshot)) return emptyPatch()
  const { annotations = {}, labels = {} } = node.metadata
  const isReported = ({ metadata, spec }: SkyhookView): boolean =>
    spec.runtimeRequired === true &&
    selects(spec.nodeSelectors, labels) &&
    Object.hasOwn(annotations, statusKey(metadata.name))
  const isNow = isDue || (skyhooks.known && skyhooks.value.some(isReported))
  return { ...emptyPatch(), removedConditions: isNow ? [runtimeRequiredCondition] : [] }
}

function messageOf({ text, others }: { readonly text: string; readonly others: readonly string[] }): string {
  const verb = others.length === 1 ? 'selects' : 'select'
  const also = others.length > 0 ? ` (${named(others, maxNames)} ${verb} other nodes)` : ''
  return (
    `no Skyhook with runtimeRequired selects the node${also}, so nobody lifts the taint ${text}: ` +
    'apply one that does, or remove the taint'
  )
}
