import { apiGroup } from '../../schemas/api.ts'
import type { ObjectMeta } from '../../schemas/kubernetes.ts'

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
export function packagePodState({ status }: MaybePackagePod): PackagePodState {
  const containers = status?.initContainerStatuses ?? []
  const hasEnded =
    ['Succeeded', 'Failed'].includes(status?.phase ?? '') ||
    (containers.length > 0 && containers.every(({ state }) => state?.terminated?.exitCode === 0))
  const isFailing = containers.some(
    ({ state, restartCount = 0 }) =>
      restartCount > 0 || state?.waiting?.reason === 'CrashLoopBackOff' || (state?.terminated?.exitCode ?? 0) !== 0,
  )
  return hasEnded ? 'ended' : isFailing ? 'failing' : 'running'
}
