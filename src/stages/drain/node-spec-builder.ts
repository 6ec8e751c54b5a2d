import { cordonedBeforeKey } from '../../schemas/annotations.ts'
import { ownValue } from '../../schemas/json.ts'
import type { NodePatch } from '../../schemas/kubernetes.ts'
import type { Journal } from '../../schemas/journal.ts'
import { emptyPatch, type StageEvent } from '../model/plan.ts'
import { cordonState, hasMark } from './drain.ts'
import type { SkyhookView, Snapshot } from '../model/snapshot.ts'
import {
  autoscalerAnnotations,
  autoTaintRemoval,
  type CordonChange,
  type CordonState,
  cordonAfterExternalChange,
  cordonFor,
  hasRequiredTaint,
  isRequirementOver,
  type RequiredSkyhook,
  recalledBefore,
  requiredTaint,
  uncordonFor,
  withCordonChange,
} from './node-spec.ts'

/** After the third time in this span we cordon again only once a minute: the uncordon is intentional. */
const cordonRetryWindowMs = 300_000
const maxImmediateCordonRetries = 3
const cordonRetryPauseMs = 60_000

/** Merges the changes of the Node's spec that the Skyhooks of one decision request. */
export class NodeSpecBuilder {
  readonly #snapshot: Snapshot
  readonly #annotations: Record<string, string | null> = {}
  readonly #required: RequiredSkyhook[] = []
  readonly #hadMarks: boolean
  /** An earlier decision changed the cordon, and the Node does not show it yet. */
  readonly #isPending: boolean
  /** Skyhooks whose work has the cordon: the Node showed their marks, and they have not given it back. */
  readonly #held: Set<string>
  /** `before` of a Node that may have lost it. */
  readonly #recalled: boolean | undefined
  #state: CordonState
  #isTaintUntouched = false
  #cordonRetriesMs: readonly number[]

  constructor(snapshot: Snapshot, events: StageEvent[]) {
    this.#snapshot = snapshot
    const { nodeUid, cordon: held, lastSeenUnschedulable, cordonPending } = snapshot.journal
    const isSameNode = snapshot.node.metadata.uid === nodeUid
    this.#held = new Set(held?.skyhooks)
    const shown = cordonState(snapshot.node)
    this.#recalled = recalledBefore(shown, held, { isSameNode, lastSeen: lastSeenUnschedulable })
    this.#state = { ...shown, before: shown.before ?? this.#recalled }
    this.#hadMarks = this.#state.marks.size > 0
    this.#cordonRetriesMs = snapshot.journal.cordonRetriesAtMs ?? []
    const { unschedulable, marks } = this.#state
    const isChanged = lastSeenUnschedulable !== undefined && lastSeenUnschedulable !== unschedulable
    this.#isPending = isChanged && cordonPending === true
    if (isChanged && !this.#isPending && marks.size > 0) {
      for (const skyhook of marks) events.push({ type: 'cordonChangedExternally', skyhook, unschedulable })
      this.#apply(cordonAfterExternalChange(lastSeenUnschedulable, this.#state))
    }
  }

  /** On the Node, or lost by it. */
  marks(): readonly string[] {
    return [...this.#state.marks.union(this.#held)]
  }

  /**
   * Returns when to decide again at the latest. A mark that the Node lost is written again first, even if the cordon
   * must go: then uncordon and mark go in one PATCH, and if it fails, the mark still shows whose cordon it is.
   */
  cordon(skyhook: string, desired: 'on' | 'off' | 'as-is'): number {
    const isLost = this.#held.has(skyhook) && !this.#state.marks.has(skyhook)
    if (desired === 'off' && !(isLost && this.#state.unschedulable)) {
      this.#held.delete(skyhook)
      this.#apply(uncordonFor(skyhook, this.#state))
      return Infinity
    }
    if (desired !== 'on' && !isLost) return Infinity
    // during a write, an earlier decision may be removing the mark
    const isSeen = hasMark(this.#snapshot.node, skyhook) && this.#snapshot.isNodeInDoubt !== true
    if (isSeen) this.#held.add(skyhook)
    const isRetry = this.#state.marks.has(skyhook) && !this.#state.unschedulable
    const isNew = isRetry && !this.#isPending
    const waitUntilMs = isNew ? this.#nextCordonRetryMs() : 0
    if (waitUntilMs > this.#snapshot.nowMs) return waitUntilMs
    if (isNew) this.#cordonRetriesMs = [...this.#recentCordonRetries(), this.#snapshot.nowMs]
    this.#apply(cordonFor(skyhook, this.#state))
    return Infinity
  }

  /** Adds a Skyhook that selects the node. If another operator may have worked on it, the taint stays as it is. */
  required({
    view: { spec },
    isComplete,
    isUntouched,
  }: {
    readonly view: SkyhookView
    readonly isComplete: boolean
    readonly isUntouched: boolean
  }): void {
    if (spec.runtimeRequired !== true) return
    if (isUntouched) this.#isTaintUntouched = true
    else this.#required.push({ complete: isComplete, autoTaint: spec.autoTaintNewNodes === true })
  }

  /** Whether the required Skyhooks are complete: the taints go now, or as soon as they can. */
  hasJoined(): boolean {
    return !this.#isTaintUntouched && isRequirementOver(this.#required, this.#snapshot.journal.runtimeRequired === true)
  }

  /** The change of the Node, and what the journal must keep of it. `after`: the decisions for Skyhooks. */
  finish(after: Journal): {
    readonly patch: NodePatch
    readonly journalFields: Pick<
      Journal,
      'lastSeenUnschedulable' | 'cordonPending' | 'cordonRetriesAtMs' | 'cordon' | 'runtimeRequired'
    >
  } {
    const { node, settings, journal, skyhooks, otherOperator, areSkyhooksInDoubt = false } = this.#snapshot
    const { marks, before } = this.#state
    const hasMarks = marks.size > 0
    const isBeforeLost = before !== undefined && cordonState(node).before === undefined
    if (hasMarks && isBeforeLost) this.#annotations[cordonedBeforeKey] = String(before)
    Object.assign(this.#annotations, autoscalerAnnotations(node, this.#hadMarks, hasMarks))
    const wasRequired = journal.runtimeRequired === true
    const isCertain = skyhooks.known && !areSkyhooksInDoubt && !skyhooks.value.some(({ stale }) => stale)
    const mayTaint = !this.#isTaintUntouched && isCertain
    const mayLift = mayTaint && !isJoiningWorkUnderWay(this.#snapshot, after)
    const taint = requiredTaint(node, settings.runtimeRequiredTaint, this.#required, { wasRequired, mayLift })
    const taints = taint?.taints ?? node.spec?.taints ?? []
    if (mayTaint && skyhooks.known && !otherOperator.isNodeWrightServed)
      Object.assign(this.#annotations, autoTaintRemoval(node, taints, settings.runtimeRequiredTaint, skyhooks.value))
    const isTaintDue = wasRequired && (!skyhooks.known || hasRequiredTaint(node, settings.runtimeRequiredTaint))
    Object.assign(this.#annotations, taint?.annotations)
    const wasUnschedulable = node.spec?.unschedulable === true
    const patch: NodePatch = {
      ...emptyPatch(),
      annotations: this.#annotations,
      ...(this.#state.unschedulable !== wasUnschedulable && { unschedulable: this.#state.unschedulable }),
      ...(taint && { taints: taint.taints }),
    }
    // for a Node without marks, nothing that is only about to be written: someone may cordon it before
    const heldBefore = this.#hadMarks ? before : this.#recalled
    const retries = hasMarks ? this.#recentCordonRetries() : []
    const journalFields = {
      ...(hasMarks && { lastSeenUnschedulable: this.#state.unschedulable }),
      ...(hasMarks && this.#state.unschedulable !== wasUnschedulable && { cordonPending: true as const }),
      ...(retries.length > 0 && { cordonRetriesAtMs: retries }),
      ...(this.#held.size > 0 && {
        cordon: { skyhooks: [...this.#held].toSorted(), ...(heldBefore !== undefined && { before: heldBefore }) },
      }),
      ...((this.#required.length > 0 || isTaintDue) && { runtimeRequired: true as const }),
    }
    return { patch, journalFields }
  }

  #apply(change: CordonChange | undefined): void {
    const { state, annotations } = withCordonChange(this.#state, change)
    this.#state = state
    Object.assign(this.#annotations, annotations)
  }

  #recentCordonRetries(): readonly number[] {
    return this.#cordonRetriesMs.filter((atMs) => atMs > this.#snapshot.nowMs - cordonRetryWindowMs)
  }

  #nextCordonRetryMs(): number {
    const recent = this.#recentCordonRetries()
    return recent.length < maxImmediateCordonRetries ? 0 : (recent.at(-1) ?? 0) + cordonRetryPauseMs
  }
}

/**
 * Work that started under a slot for joining nodes is running: until it ends, the taint keeps pods away from the node.
 */
const isJoiningWorkUnderWay = ({ slots }: Snapshot, { skyhooks }: Journal): boolean =>
  slots.known &&
  slots.value.some(
    ({ isBootstrap, isFormer, skyhook }) =>
      isBootstrap === true && !isFormer && ownValue(skyhooks, skyhook)?.lifecycle !== undefined,
  )
