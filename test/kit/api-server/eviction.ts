/** The eviction of a pod, with the accounting of disruption budgets that the real server does. */
import { formatTime } from '../../../src/schemas/time.ts'
import { selects } from '../../../src/schemas/selectors.ts'
import type { LabelSelector } from '../../../src/schemas/kubernetes.ts'
import { type Fields, fieldsOf, isFields } from './json.ts'
import { badRequest, notFound, Refusal } from './refusals.ts'
import { keyOf, resourceNamed } from './resources.ts'
import type { SimObject } from './versions.ts'
import {
  deleteObject,
  type DeleteOptions,
  patchObject,
  refuseFailedPreconditions,
  type Target,
  type WriteContext,
} from './writes.ts'

const merge = 'application/merge-patch+json'

export type Budget = {
  readonly spec: {
    readonly selector?: LabelSelector
    readonly minAvailable?: number | string
    readonly maxUnavailable?: number | string
    readonly unhealthyPodEvictionPolicy?: string
  }
  readonly status: {
    readonly observedGeneration?: number
    readonly disruptionsAllowed: number
    readonly currentHealthy: number
    readonly desiredHealthy: number
    readonly expectedPods: number
    readonly disruptedPods?: Readonly<Record<string, string>>
    readonly conditions?: readonly Fields[]
  }
}

export function evictPod(context: WriteContext, target: Target, body: unknown): Fields {
  const { store } = context
  const { resource, namespace, name } = target
  const pod = store.get(resource, keyOf(namespace, name))?.object
  if (isFields(body) && fieldsOf(body['metadata'])['name'] !== name)
    throw badRequest('name in URL does not match name in Eviction object')
  if (pod === undefined) throw notFound(resource, name)
  if (!isUnprotected(pod)) chargeBudget(context, pod)
  const deleteOptions = isFields(body) ? (body['deleteOptions'] as DeleteOptions | undefined) : undefined
  refuseFailedPreconditions(resource, pod, deleteOptions?.preconditions ?? {})
  const podTarget = { ...target, subresource: undefined }
  const others = conditionsOf(pod).filter(({ type }) => type !== 'DisruptionTarget')
  const condition = {
    type: 'DisruptionTarget',
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: formatTime(context.clock.wallMs()),
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
  }
  if (others.length === conditionsOf(pod).length) {
    const status = { status: { conditions: [...others, condition] } }
    patchObject(context, { ...target, subresource: 'status' }, status, merge, 'kube-apiserver')
  }
  deleteObject(context, podTarget, deleteOptions)
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }
}

const conditionsOf = (object: SimObject): readonly Fields[] =>
  (fieldsOf(object['status'])['conditions'] as readonly Fields[] | undefined) ?? []

export const isReadyPod = (pod: SimObject): boolean =>
  conditionsOf(pod).some(({ type, status }) => type === 'Ready' && status === 'True')

/** A pod that waits, has ended or is being deleted is evicted without asking a budget. */
function isUnprotected(pod: SimObject): boolean {
  const phase = fieldsOf(pod['status'])['phase']
  return pod.metadata.deletionTimestamp !== undefined || phase !== 'Running'
}

function chargeBudget(context: WriteContext, pod: SimObject): void {
  const budgets = resourceNamed('poddisruptionbudgets')
  const matching = context.store
    .all(budgets)
    .map(({ object }) => object as SimObject & Budget)
    .filter(({ metadata, spec }) => metadata.namespace === pod.metadata.namespace && selectsPod(spec.selector, pod))
  if (matching.length > 1) {
    throw new Refusal(
      500,
      'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
    )
  }
  const [budget] = matching
  if (budget === undefined) return
  const { status, spec, metadata } = budget
  const isHealthyWithout = status.currentHealthy >= status.desiredHealthy && status.desiredHealthy > 0
  if (!isReadyPod(pod) && (spec.unhealthyPodEvictionPolicy === 'AlwaysAllow' || isHealthyWithout)) return
  if ((status.observedGeneration ?? 0) < (metadata.generation ?? 0))
    throw blocked(`The disruption budget ${metadata.name} is still being processed by the server.`, 10)
  if (status.disruptionsAllowed === 0) {
    const counts = `needs ${status.desiredHealthy} healthy pods and has ${status.currentHealthy} currently`
    const isShort = status.currentHealthy <= status.desiredHealthy
    throw blocked(
      `The disruption budget ${metadata.name} ${isShort ? counts : 'does not allow evicting pods currently'}`,
    )
  }
  const now = formatTime(context.clock.wallMs())
  const disruptionsAllowed = status.disruptionsAllowed - 1
  const charged = {
    disruptionsAllowed,
    disruptedPods: { ...status.disruptedPods, [pod.metadata.name]: now },
    ...(disruptionsAllowed === 0 && { conditions: [exhausted(metadata.generation ?? 0, now)] }),
  }
  const target = {
    resource: budgets,
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    subresource: 'status',
  }
  patchObject(context, target, { status: charged }, merge, 'kube-apiserver')
}

/** An absent selector matches nothing, an empty one everything. */
export const selectsPod = (selector: LabelSelector | undefined, pod: SimObject): boolean =>
  selector !== undefined && selects(selector, pod.metadata.labels ?? {})

const exhausted = (observedGeneration: number, lastTransitionTime: string): Fields => ({
  type: 'DisruptionAllowed',
  status: 'False',
  observedGeneration,
  lastTransitionTime,
  reason: 'InsufficientPods',
  message: '',
})

const blocked = (message: string, retryAfterSeconds?: number): Refusal =>
  new Refusal(429, "Cannot evict pod as it would violate the pod's disruption budget.", {
    reason: 'TooManyRequests',
    details: { causes: [{ reason: 'DisruptionBudget', message }] },
    retryAfterSeconds,
  })
