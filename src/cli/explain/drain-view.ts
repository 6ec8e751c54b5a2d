/** Pods that keep a node from being drained, and the budgets that protect them. */
import type { LabelSelector } from '../../schemas/kubernetes.ts'
import { selects } from '../../schemas/selectors.ts'
import type { Eviction } from '../../stages/model/snapshot.ts'
import type { Pod } from '../../stages/model/pods.ts'
import type { DisruptionBudget } from '../fleet-view/node-detail.ts'

/** Budgets that select the pod. */
export const budgetsOf = (pod: Pod, budgets: readonly DisruptionBudget[]): readonly DisruptionBudget[] =>
  budgets.filter(
    ({ namespace, selector }) =>
      namespace === pod.metadata.namespace && isSelecting(selector) && selects(selector, pod.metadata.labels ?? {}),
  )

/** A budget without a selector selects nothing; an empty one selects all pods of its namespace. */
const isSelecting = (selector: LabelSelector | undefined): boolean => selector !== undefined

/** The expected answer of the Eviction API, from the current budgets; no request is sent. */
export function expectedEvictions(
  pods: readonly Pod[],
  budgets: readonly DisruptionBudget[],
  nowMs: number,
): ReadonlyMap<string, Eviction> {
  return new Map(
    pods.flatMap((pod) => {
      if (pod.metadata.deletionTimestamp !== undefined) return []
      const message = refusalOf(budgetsOf(pod, budgets))
      if (message === undefined) return []
      return [[pod.metadata.uid, { state: 'blocked', message, sinceMs: nowMs, retryAtMs: nowMs + 1 }] as const]
    }),
  )
}

function refusalOf(guards: readonly DisruptionBudget[]): string | undefined {
  if (guards.length > 1) return `more than one PodDisruptionBudget selects it: ${guards.map(nameOf).join(', ')}`
  const exhausted = guards.find(({ disruptionsAllowed }) => disruptionsAllowed <= 0)
  return exhausted && `PodDisruptionBudget ${nameOf(exhausted)} allows ${exhausted.disruptionsAllowed} disruptions`
}

const nameOf = ({ namespace, name }: DisruptionBudget): string => `${namespace}/${name}`

/** No controller replaces it. */
export const isBare = ({ metadata }: Pod): boolean =>
  metadata.ownerReferences?.some(({ controller }) => controller === true) !== true
