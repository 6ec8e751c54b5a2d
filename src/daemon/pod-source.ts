import { listAll } from '../kube/list.ts'
import type { KubeObject } from '../kube/objects.ts'
import { startReflector } from '../kube/reflector.ts'
import type { Transport } from '../kube/transport.ts'
import type { Pod } from '../stages/pods.ts'
import { known, unknown } from '../stages/world.ts'
import type { State } from './state.ts'

type PodObject = Pod & KubeObject

/** Follows the pods of this node while somebody needs them: the first LIST is taken after the cordon became visible. */
export type PodSource = {
  follow(wanted: boolean): void
  /** One consistent LIST of this moment, also put into the state. */
  readFresh(signal: AbortSignal): Promise<readonly Pod[]>
}

export function createPodSource(transport: Transport, nodeName: string, state: State, wake: () => void, signal: AbortSignal): PodSource {
  const query = { fieldSelector: `spec.nodeName=${nodeName}` }
  let stop: AbortController | undefined

  function show(pods: readonly Pod[]): void {
    state.pods = known(pods)
    const uids = new Set(pods.map(({ metadata }) => metadata.uid))
    for (const uid of state.evictions.keys()) if (!uids.has(uid)) state.evictions.delete(uid)
  }

  return {
    follow(wanted) {
      if (wanted === (stop !== undefined)) return
      if (!wanted) {
        stop?.abort()
        stop = undefined
        state.pods = unknown('the pods of this node are not followed')
        state.evictions.clear()
        return
      }
      stop = new AbortController()
      const mine = stop
      const reflector = startReflector<PodObject>(transport, {
        path: '/api/v1/pods',
        query,
        keep: slim,
        onChange: ({ state: reflected }) => {
          if (mine.signal.aborted) return
          // a broken watch may miss a pod that comes; what it showed last is not the present
          if (reflected.state === 'synced') show([...reflector.store.values()])
          else state.pods = unknown('the pods of this node cannot be listed')
          wake()
        },
        signal: AbortSignal.any([signal, stop.signal]),
      })
      reflector.ended.catch(() => undefined) // only `onChange` could make it reject, and it does not throw
    },

    async readFresh(readSignal) {
      const { items } = await listAll<PodObject, Pod>(transport, '/api/v1/pods', { query, signal: readSignal, keep: slim })
      if (stop) show(items)
      return items
    },
  }
}

const slim = ({ metadata, spec, status }: PodObject): PodObject => ({
  metadata,
  spec: { ...(spec?.nodeName !== undefined && { nodeName: spec.nodeName }), ...(spec?.tolerations && { tolerations: spec.tolerations }) },
  status: { ...(status?.phase !== undefined && { phase: status.phase }) },
})
