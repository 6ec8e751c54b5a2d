import { apiGroup } from '../../schemas/api.ts'
import type { ObjectMeta, Toleration } from '../../schemas/kubernetes.ts'

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

export const isFinished = ({ status }: Pick<MaybePackagePod, 'status'>): boolean =>
  status?.phase === 'Succeeded' || status?.phase === 'Failed'

/** Which pods to watch: none, the current ones, or those listed after our cordon became visible. */
export type PodWatch = 'no' | 'any' | 'cordoned'

export type DrainReason = { readonly reason: 'ProtectedPods' | 'DrainBlocked'; readonly message: string }

/** The label by which the Skyhook operator finds the pods and ConfigMaps of a Skyhook. */
export const operatorNameKey = `${apiGroup}/name`

/** The fields that show the state of a package pod. */
export type ContainerStatus = {
  readonly restartCount?: number
  readonly state?: {
    readonly waiting?: { readonly reason?: string }
    readonly terminated?: { readonly exitCode?: number }
  }
}

export type PackagePodState = 'running' | 'failing' | 'ended'

type MaybePackagePod = {
  readonly metadata: Pick<ObjectMeta, 'labels' | 'annotations'>
  readonly status?: { readonly phase?: string; readonly initContainerStatuses?: readonly ContainerStatus[] }
}

/** The Skyhook of a pod in which the operator runs a package; undefined for any other pod. */
export const skyhookOfPackagePod = ({ metadata }: MaybePackagePod): string | undefined =>
  metadata.annotations?.[`${apiGroup}/package`] === undefined ? undefined : metadata.labels?.[operatorNameKey]

/**
 * `failing`: it fails repeatedly. `ended`: it has no work left. The work is in init containers; the container after
 * them only waits.
 */
export function packagePodState(pod: MaybePackagePod): PackagePodState {
  const containers = pod.status?.initContainerStatuses ?? []
  const hasEnded =
    isFinished(pod) || (containers.length > 0 && containers.every(({ state }) => state?.terminated?.exitCode === 0))
  const isFailing = containers.some(
    ({ state, restartCount = 0 }) =>
      restartCount > 0 || state?.waiting?.reason === 'CrashLoopBackOff' || (state?.terminated?.exitCode ?? 0) !== 0,
  )
  return hasEnded ? 'ended' : isFailing ? 'failing' : 'running'
}
