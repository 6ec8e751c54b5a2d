/** Which pods an interrupt may end, by the spec alone: written apart from the product's. */
import type { HostEvent } from '../kit/host/observer.ts'
import { isEmptySelector, selects } from '../../src/schemas/selectors.ts'
import type { Toleration } from '../../src/schemas/kubernetes.ts'
import type { SkyhookSpec } from '../../src/schemas/skyhook.ts'
import type { SimObject } from '../kit/api-server/versions.ts'

export type RunningPod = SimObject & {
  readonly spec?: {
    readonly nodeName?: string
    readonly restartPolicy?: string
    readonly tolerations?: readonly Toleration[]
  }
  readonly status?: { readonly phase?: string }
}

const skipNamespaces = ['kube-system']
const cordonTaint = 'node.kubernetes.io/unschedulable'

type Situation = {
  /** No other Node exists. */
  readonly isOnlyNode: boolean
  /** A pod of the same owner was evicted from this Node, and this one was created there after it. */
  readonly cameBack: boolean
}

/** Whether an interrupt for a Skyhook of this spec may end the pod. */
export function mayEnd(pod: RunningPod, spec: SkyhookSpec, situation: Situation): boolean {
  const { drain } = spec
  if (isProtected(pod, spec)) return false
  if (isOutOfReach(pod)) return true
  if (drain?.singleNode === 'skip' && situation.isOnlyNode) return true
  const tolerations = (pod.spec?.tolerations ?? []).filter(toleratesCordon)
  if (tolerations.length === 0) return false
  switch (drain?.tolerating) {
    case 'leave':
      return true
    case 'wait':
      return false
    case 'evict':
      return situation.cameBack && !runsToCompletion(pod)
    case undefined:
      return tolerations.some(({ key }) => key === cordonTaint) && !runsToCompletion(pod)
  }
}

export const isRunningOn = ({ spec, status }: RunningPod, nodeName: string): boolean =>
  spec?.nodeName === nodeName && status?.phase !== 'Succeeded' && status?.phase !== 'Failed'

export const isProtected = ({ metadata }: RunningPod, { podNonInterruptLabels }: SkyhookSpec): boolean =>
  !isEmptySelector(podNonInterruptLabels) && selects(podNonInterruptLabels, metadata.labels ?? {})

/** No drain touches it, whatever the spec says. */
export const isOutOfReach = (pod: RunningPod): boolean =>
  isStatic(pod) ||
  skipNamespaces.includes(pod.metadata.namespace ?? '') ||
  controllerOf(pod.metadata)?.kind === 'DaemonSet'

export const isStatic = ({ metadata }: RunningPod): boolean =>
  metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined

const controllerOf = ({ ownerReferences = [] }: SimObject['metadata']) =>
  ownerReferences.find(({ controller }) => controller === true)

/** Those who come in each other's place have it in common. */
export const ownerKey = ({ metadata }: RunningPod): string =>
  controllerOf(metadata)?.uid ?? `${metadata.namespace ?? ''}/${metadata.name}`

const runsToCompletion = ({ metadata, spec }: RunningPod): boolean =>
  controllerOf(metadata)?.kind === 'Job' || (spec?.restartPolicy ?? 'Always') !== 'Always'

/** As Kubernetes reads it: an absent key stands for all keys, an absent effect for all effects. */
export function toleratesCordon({ key = '', operator = 'Equal', value = '', effect = '' }: Toleration): boolean {
  if (effect !== '' && effect !== 'NoSchedule') return false
  if (key === '') return operator === 'Exists'
  return key === cordonTaint && (operator === 'Exists' || value === '')
}

/** What a host asks for that may end pods; undefined: nothing. */
export function interruptIn(event: HostEvent): string | undefined {
  if (event.event === 'restartRequested') return `restarts ${event.unit}`
  return event.event === 'rebootRequested' ? 'asks for a reboot' : undefined
}
