/** The controller that counts the pods of PodDisruptionBudgets and says how many may be disrupted. */
import type { Clock } from '../../../src/schemas/clock.ts'
import { formatTime } from '../../../src/schemas/time.ts'
import { type Budget, isReadyPod, selectsPod } from './eviction.ts'
import type { SimulatedApiServer } from './server.ts'
import type { SimObject } from './versions.ts'

export type DisruptionControllerOptions = {
  readonly clock: Clock
  /** From a change of a pod or a budget to the new count; default 100 ms. */
  readonly delayMs?: number
}

/** An eviction that has not ended its pod by then is forgotten. */
const evictionTimeoutMs = 2 * 60_000

/**
 * Returns a function that stops it. Pods have no controllers here: `maxUnavailable` and percentages are of the pods
 * that match.
 */
export function startDisruptionController(
  server: SimulatedApiServer,
  { clock, delayMs = 100 }: DisruptionControllerOptions,
): () => void {
  let cancel: (() => void) | undefined

  const schedule = (): void => {
    cancel ??= clock.startTimer(
      delayMs,
      () => {
        cancel = undefined
        if (server.isAway()) return schedule()
        for (const budget of server.objects('poddisruptionbudgets')) count(budget as SimObject & Budget)
      },
      { isBackground: true },
    )
  }

  const count = (budget: SimObject & Budget): void => {
    const { namespace = '', name, generation = 0 } = budget.metadata
    const pods = server
      .objects('pods')
      .filter((pod) => pod.metadata.namespace === namespace && selectsPod(budget.spec.selector, pod))
    const disruptedPods = Object.fromEntries(
      Object.entries(budget.status.disruptedPods ?? {}).filter(([podName, since]) => {
        const pod = pods.find(({ metadata }) => metadata.name === podName)
        const isOld = clock.wallMs() - Date.parse(since) > evictionTimeoutMs
        return pod !== undefined && pod.metadata.deletionTimestamp === undefined && !isOld
      }),
    )
    const currentHealthy = pods.filter(
      (pod) => pod.metadata.deletionTimestamp === undefined && isReadyPod(pod) && !(pod.metadata.name in disruptedPods),
    ).length
    const desiredHealthy = desiredOf(budget.spec, pods.length)
    const disruptionsAllowed = Math.max(0, pods.length === 0 ? 0 : currentHealthy - desiredHealthy)
    const isAllowed = disruptionsAllowed > 0
    const condition = {
      type: 'DisruptionAllowed',
      status: isAllowed ? 'True' : 'False',
      observedGeneration: generation,
      reason: isAllowed ? 'SufficientPods' : 'InsufficientPods',
      message: '',
    }
    const former = budget.status.conditions?.find(({ type }) => type === condition.type)
    const lastTransitionTime =
      former?.['status'] === condition.status ? former['lastTransitionTime'] : formatTime(clock.wallMs())
    const status = {
      observedGeneration: generation,
      expectedPods: pods.length,
      currentHealthy,
      desiredHealthy,
      disruptionsAllowed,
      ...(Object.keys(disruptedPods).length > 0 && { disruptedPods }),
      conditions: [{ ...condition, lastTransitionTime }],
    }
    const { apiVersion, kind, metadata } = budget
    const body = { apiVersion, kind, metadata: { name, resourceVersion: metadata.resourceVersion }, status }
    const path = `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets/${name}/status`
    const client = 'disruption-controller'
    const { code } = server.handle({ client, manager: client, method: 'PUT', path, query: {}, body })
    if (code >= 300) schedule()
    if (Object.keys(disruptedPods).length > 0) clock.startTimer(evictionTimeoutMs, schedule, { isBackground: true })
  }

  const isOurs = (plural: string): boolean => plural === 'pods' || plural === 'poddisruptionbudgets'
  const stopObserving = server.observe({
    committed({ resource }, client) {
      if (isOurs(resource.plural) && client !== 'disruption-controller') schedule()
    },
    restored: schedule,
  })
  schedule()
  return () => {
    stopObserving()
    cancel?.()
  }
}

function desiredOf({ minAvailable, maxUnavailable }: Budget['spec'], pods: number): number {
  if (maxUnavailable !== undefined) return Math.max(0, pods - amountOf(maxUnavailable, pods))
  return amountOf(minAvailable ?? 1, pods)
}

/** A percentage is rounded up. */
const amountOf = (value: number | string, pods: number): number =>
  typeof value === 'number' ? value : Math.ceil((Number.parseInt(value, 10) * pods) / 100)
