/** Pods that would leave with a drain, and what would hold them up. Pure. */
import { type DrainRules, groupPods } from '../../../stages/drain/pods.ts'
import type { Pod } from '../../../stages/model/pods.ts'
import { budgetsOf, isBare } from '../explain/drain-finding.ts'
import type { DisruptionBudget } from '../../fleet/fleet-view/node-detail.ts'

export type DrainedPods = {
  /** Are evicted. */
  readonly leaving: readonly string[]
  /** Of these, the ones that no controller puts elsewhere. */
  readonly bare: readonly string[]
  /** Are never evicted: the node waits until they have ended by themselves. */
  readonly protected: readonly string[]
  /** The same, for they tolerate the cordon (`spec.drain.tolerating`); absent where there is none. */
  readonly waited?: readonly string[]
  /** Tolerate the cordon, and end with the interrupt; absent where there is none. */
  readonly left?: readonly string[]
  /** The budgets that guard some of those that leave. */
  readonly budgets: readonly GuardingBudget[]
  /** Pods that several budgets select: the API server never evicts them. */
  readonly contested: readonly string[]
  /** Pods that leave, of which dry runs say nothing, and why; absent where nobody asked, or all were answered. */
  readonly unanswered?: { readonly pods: number; readonly why: string }
}

export type GuardingBudget = {
  /** `namespace/name` */
  readonly budget: string
  /** Pods among those that leave. The Eviction API would be asked for each alone; the sum is what counts. */
  readonly pods: number
  /** How many of all its pods may be missing more than now. */
  readonly allowed: number
  /** Answers of dry runs of the evictions, where they were asked for. */
  readonly refused?: number
}

/** The answer of the API server to a dry run of an eviction. */
export type EvictionAnswer = { readonly answer: 'granted' | 'refused' | 'unknown'; readonly message?: string }

export type DrainQuestion = {
  readonly pods: readonly Pod[]
  readonly budgets: readonly DisruptionBudget[]
  /** Of the Skyhook's spec. */
  readonly rules: DrainRules
  readonly skipNamespaces: readonly string[]
  /** By uid; undefined: nobody asked. */
  readonly answers?: ReadonlyMap<string, EvictionAnswer> | undefined
}

/** `pods`: all pods of the nodes that are drained. */
export function drainedPods(question: DrainQuestion): DrainedPods {
  const { pods, budgets, rules, skipNamespaces, answers } = question
  const groups = groupPods(pods, rules, { skipNamespaces })
  const guarded = groups.toDrain.map((pod) => ({ pod, guards: budgetsOf(pod, budgets) }))
  const byBudget = Map.groupBy(
    guarded.flatMap(({ pod, guards }) => guards.map((guard) => ({ pod, guard }))),
    ({ guard }) => guard,
  )
  return {
    leaving: namesOf(groups.toDrain),
    bare: namesOf(groups.toDrain.filter(isBare)),
    protected: namesOf(groups.protected),
    ...(groups.waited.length > 0 && { waited: namesOf(groups.waited) }),
    ...(groups.left.length > 0 && { left: namesOf(groups.left) }),
    contested: namesOf(guarded.filter(({ guards }) => guards.length > 1).map(({ pod }) => pod)),
    budgets: [...byBudget]
      .map(([{ namespace, name, disruptionsAllowed }, members]): GuardingBudget => {
        const refused = members.filter(({ pod }) => answers?.get(pod.metadata.uid)?.answer === 'refused').length
        const budget = `${namespace}/${name}`
        return { budget, pods: members.length, allowed: disruptionsAllowed, ...(answers && { refused }) }
      })
      .toSorted((a, b) => a.allowed - b.allowed || (a.budget < b.budget ? -1 : 1)),
    ...unansweredOf(question),
  }
}

function unansweredOf(question: DrainQuestion): Pick<DrainedPods, 'unanswered'> {
  const { answers } = question
  if (answers === undefined) return {}
  const unanswered = podsToEvict(question).map(({ metadata }) => answers.get(metadata.uid) ?? beyondLimit)
  const unknown = unanswered.filter(({ answer }) => answer === 'unknown')
  const [first] = unknown
  return first === undefined ? {} : { unanswered: { pods: unknown.length, why: first.message ?? '' } }
}

const beyondLimit: EvictionAnswer = { answer: 'unknown', message: 'there are too many to ask about' }

/** Pods that would be evicted: those that dry runs are asked about. */
export const podsToEvict = ({ pods, rules, skipNamespaces }: DrainQuestion): readonly Pod[] =>
  groupPods(pods, rules, { skipNamespaces }).toDrain.filter(({ metadata }) => metadata.deletionTimestamp === undefined)

const namesOf = (pods: readonly Pod[]): readonly string[] =>
  pods.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).toSorted()
