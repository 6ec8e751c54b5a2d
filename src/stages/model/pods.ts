import type { ObjectMeta, Toleration } from '../../schemas/kubernetes.ts'
import type { ContainerStatus } from './package-pods.ts'

/** The fields of a pod for draining and for a takeover from the operator. */
export type Pod = {
  readonly metadata: ObjectMeta & { readonly namespace: string }
  readonly spec?: {
    readonly nodeName?: string
    readonly restartPolicy?: string
    readonly tolerations?: readonly Toleration[]
  }
  readonly status?: {
    readonly phase?: string
    /** Only the Ready condition. */
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
    /** Only of static pods. */
    readonly containerStatuses?: readonly { readonly containerID?: string }[]
    /** Only of the operator's package pods. */
    readonly initContainerStatuses?: readonly ContainerStatus[]
  }
}

/** The API server's view of a static pod, which the kubelet runs from a file of the host. */
export const isMirrorPod = ({ metadata }: Pick<Pod, 'metadata'>): boolean =>
  metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined

export const isReadyPod = ({ metadata, status }: Pod): boolean =>
  metadata.deletionTimestamp === undefined &&
  status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') === true

/** Which pods to watch: none, the current ones, or those listed after our cordon became visible. */
export type PodWatch = 'no' | 'any' | 'cordoned'

export type DrainReason = { readonly reason: 'ProtectedPods' | 'DrainBlocked'; readonly message: string }
