import type { Journal } from '../../schemas/journal.ts'
import { afterForeignChange, cordonFor, uncordonFor } from './cordon-ownership.ts'
import type { CordonChange, CordonState } from './cordon-ownership.ts'
import { cordonState } from './drain.ts'
import { keepOffAnnotations, requiredTaint, withCordonChange } from './node-spec.ts'
import type { RequiredSkyhook } from './node-spec.ts'
import type { NodePatch, StageEvent } from '../model/plan.ts'
import { emptyPatch } from '../publish/node-annotations.ts'
import type { SkyhookView, World } from '../model/snapshot.ts'

/** After the third time in this span we cordon again only once a minute: somebody means it. */
const againSpanMs = 300_000
const againFreely = 3
const againPauseMs = 60_000

/** What the Skyhooks of one decision want of the Node's spec, brought together into one change of it. */
export class NodeSpecDraft {
  readonly #world: World
  readonly #annotations: Record<string, string | null> = {}
  readonly #required: RequiredSkyhook[] = []
  readonly #hadMarks: boolean
  /** An earlier decision changed the cordon, and the Node does not show it yet. */
  readonly #isPending: boolean
  #state: CordonState
  #againMs: readonly number[]

  constructor(world: World, events: StageEvent[]) {
    this.#world = world
    this.#state = cordonState(world.node)
    this.#hadMarks = this.#state.marks.size > 0
    this.#againMs = world.journal.cordonedAgainMs ?? []
    const { cordonSeen, cordonPending } = world.journal
    const { unschedulable, marks } = this.#state
    const differs = cordonSeen !== undefined && cordonSeen !== unschedulable
    this.#isPending = differs && cordonPending === true
    if (differs && !this.#isPending && marks.size > 0) {
      for (const skyhook of marks) events.push({ type: 'cordonForeign', skyhook, unschedulable })
      this.#apply(afterForeignChange(cordonSeen, this.#state))
    }
  }

  marks(): readonly string[] {
    return [...this.#state.marks]
  }

  /** Returns when to decide again at the latest. */
  cordon(skyhook: string, wanted: 'on' | 'off' | 'as-is'): number {
    if (wanted === 'off') this.#apply(uncordonFor(skyhook, this.#state))
    if (wanted !== 'on') return Number.POSITIVE_INFINITY
    const again = this.#state.marks.has(skyhook) && !this.#state.unschedulable
    const isNew = again && !this.#isPending
    const waitUntilMs = isNew ? this.#nextAgainMs() : 0
    if (waitUntilMs > this.#world.nowMs) return waitUntilMs
    if (isNew) this.#againMs = [...this.#recentAgain(), this.#world.nowMs]
    this.#apply(cordonFor(skyhook, this.#state))
    return Number.POSITIVE_INFINITY
  }

  required({ spec }: SkyhookView, complete: boolean): void {
    if (spec.runtimeRequired === true) this.#required.push({ complete, autoTaint: spec.autoTaintNewNodes === true })
  }

  /** The change of the Node, and what the journal has to remember of it. */
  finish(): { readonly patch: NodePatch; readonly memory: Pick<Journal, 'cordonSeen' | 'cordonPending' | 'cordonedAgainMs'> } {
    const { node, settings } = this.#world
    const has = this.#state.marks.size > 0
    Object.assign(this.#annotations, keepOffAnnotations(node, this.#hadMarks, has))
    const taint = requiredTaint(node, settings.runtimeRequiredTaint, this.#required)
    Object.assign(this.#annotations, taint?.annotations)
    const was = node.spec?.unschedulable === true
    const patch: NodePatch = {
      ...emptyPatch(),
      annotations: this.#annotations,
      ...(this.#state.unschedulable !== was && { unschedulable: this.#state.unschedulable }),
      ...(taint && { taints: taint.taints }),
    }
    const again = has ? this.#recentAgain() : []
    const memory = {
      ...(has && { cordonSeen: this.#state.unschedulable }),
      ...(has && this.#state.unschedulable !== was && { cordonPending: true as const }),
      ...(again.length > 0 && { cordonedAgainMs: again }),
    }
    return { patch, memory }
  }

  #apply(change: CordonChange | undefined): void {
    const { state, annotations } = withCordonChange(this.#state, change)
    this.#state = state
    Object.assign(this.#annotations, annotations)
  }

  #recentAgain(): readonly number[] {
    return this.#againMs.filter((atMs) => atMs > this.#world.nowMs - againSpanMs)
  }

  #nextAgainMs(): number {
    const recent = this.#recentAgain()
    return recent.length < againFreely ? 0 : (recent.at(-1) ?? 0) + againPauseMs
  }
}
