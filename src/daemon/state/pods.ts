import { listAll } from '../../kube/list.ts'
import type { KubeObject } from '../../kube/objects.ts'
import { startReflector } from '../../kube/reflector.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { known, unknown } from '../../stages/model/snapshot.ts'
import type { State } from './state.ts'
import type { Pod, PodWatch } from '../../stages/model/pods.ts'

type PodObject = Pod & KubeObject

/** Follows the pods of this node while somebody needs them. */
export type PodSource = {
  /** `cordoned` begins with a LIST of its own, taken after the cordon became visible. */
  follow(podWatch: PodWatch): void
  /** One consistent LIST of this moment, also put into the state. */
  listNow(signal: AbortSignal): Promise<readonly Pod[]>
}

export function createPodSource(
  transport: KubeTransport,
  nodeName: string,
  state: State,
  wake: () => void,
  signal: AbortSignal,
): PodSource {
  const query = { fieldSelector: `spec.nodeName=${nodeName}` }
  let currentWatch: PodWatch = 'no'
  let watchController = new AbortController()

  function setPods(pods: readonly Pod[], since: 'any' | 'cordoned'): void {
    state.pods = known({ pods, since })
    const uids = new Set(pods.map(({ metadata }) => metadata.uid))
    for (const uid of state.evictions.keys()) if (!uids.has(uid)) state.evictions.delete(uid)
  }

  function start(since: 'any' | 'cordoned', watchSignal: AbortSignal): void {
    const reflector = startReflector<PodObject>(transport, {
      path: '/api/v1/pods',
      query,
      transform: stripPod,
      onChange: ({ state: reflected }) => {
        if (watchSignal.aborted) return
        // a broken watch may miss a pod that comes; what it showed last is not the present
        if (reflected.state === 'synced') setPods([...reflector.store.values()], since)
        else state.pods = unknown('the pods of this node cannot be listed')
        wake()
      },
      signal: AbortSignal.any([signal, watchSignal]),
    })
    reflector.ended.catch(() => undefined) // only `onChange` could make it reject, and it does not throw
    reflector.synced.catch(() => undefined) // aborted before
  }

  return {
    follow(podWatch) {
      if (podWatch === currentWatch) return
      currentWatch = podWatch
      watchController.abort()
      watchController = new AbortController()
      state.pods = unknown('the pods of this node are not followed')
      if (podWatch === 'no') state.evictions.clear()
      else start(podWatch, watchController.signal)
    },

    async listNow(readSignal) {
      const { items } = await listAll<PodObject, Pod>(transport, '/api/v1/pods', {
        query,
        signal: readSignal,
        transform: stripPod,
      })
      if (currentWatch !== 'no') setPods(items, currentWatch)
      return items
    },
  }
}

const stripPod = ({ metadata, spec, status }: PodObject): PodObject => ({
  metadata,
  spec: {
    ...(spec?.nodeName !== undefined && { nodeName: spec.nodeName }),
    ...(spec?.tolerations && { tolerations: spec.tolerations }),
  },
  status: { ...(status?.phase !== undefined && { phase: status.phase }) },
})
