import type { ObjectMeta, Toleration } from '../../schemas/kubernetes.ts'
import type { ContainerStatus } from './package-pods.ts'

/** A pod as far as draining and a takeover from the operator look at it. */
export type Pod = {
  readonly metadata: ObjectMeta & { readonly namespace: string }
  readonly spec?: {
    readonly nodeName?: string
    readonly restartPolicy?: string
    readonly tolerations?: readonly Toleration[]
  }
  readonly status?: {
    readonly phase?: string
    /** The Ready condition alone. */
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
    /** Of static pods alone. */
    readonly containerStatuses?: readonly { readonly containerID?: string }[]
    /** Of the operator's package pods alone. */
    readonly initContainerStatuses?: readonly ContainerStatus[]
  }
}

/** What the API server shows of a static pod, which the kubelet runs from a file of the host. */
export const isMirrorPod = ({ metadata }: Pick<Pod, 'metadata'>): boolean =>
  metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined

export const isReadyPod = ({ metadata, status }: Pod): boolean =>
  metadata.deletionTimestamp === undefined &&
  status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') === true

/** Which pods matter: none, the current ones, or those listed after our cordon became visible. */
export type PodWatch = 'no' | 'any' | 'cordoned'

export type DrainReason = { readonly reason: 'ProtectedPods' | 'DrainBlocked'; readonly message: string }
