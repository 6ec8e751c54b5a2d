import { type KubeObject, listAll } from '../../kube/objects.ts'
import { startReflector } from '../../kube/reflector.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { isMirrorPod, type Pod, type PodWatch, skyhookOfPackagePod } from '../../stages/model/pods.ts'
import { type Known, known, unknown, type WatchedPods } from '../../stages/model/snapshot.ts'
import type { WatchPorts } from './watch-facts.ts'

type PodObject = Pod & KubeObject

/** Follows the pods of this node while they are needed. */
export type PodSource = {
  /** `cordoned` starts with its own LIST, after the cordon became visible. */
  follow(podWatch: PodWatch): void
  /** One consistent LIST. Its result also becomes current, and the watch continues from there. */
  listNow(signal: AbortSignal): Promise<readonly Pod[]>
  readonly current: () => Known<WatchedPods>
}

export function createPodSource(
  options: WatchPorts & {
    readonly transport: KubeTransport
    readonly nodeName: string
    /** Called with the uids after every LIST and change; with none while the pods are not followed. */
    readonly onUids: (uids: ReadonlySet<string>) => void
    readonly onUnfollowed: () => void
  },
): PodSource {
  const { transport, clock, random, nodeName, onUids, wake, signal } = options
  const query = { fieldSelector: `spec.nodeName=${nodeName}` }
  let current: Known<WatchedPods> = unknown('the pods of this node are not watched')
  let currentWatch: PodWatch = 'no'
  let watchController = new AbortController()

  function setPods(pods: readonly Pod[], since: 'any' | 'cordoned'): void {
    current = known({ pods, since })
    onUids(new Set(pods.map(({ metadata }) => metadata.uid)))
  }

  function start(since: 'any' | 'cordoned', watchSignal: AbortSignal): void {
    const reflector = startReflector<PodObject>(transport, {
      clock,
      random,
      path: '/api/v1/pods',
      query,
      relistsAfterOverload: true, // a continued watch does not show how far behind it is
      transform: stripPod,
      onChange: ({ state }) => {
        if (watchSignal.aborted) return
        // a broken watch misses new pods: its last state may be old
        if (state.state !== 'synced') current = unknown('the pods of this node cannot be listed')
        else if (state.lastError) current = unknown('the pods of this node are unknown: their watch is broken')
        else setPods([...reflector.store.values()], since)
        wake()
      },
      onFact: options.onFact,
      signal: AbortSignal.any([signal, watchSignal]),
    })
    reflector.ended.catch(() => undefined) // only `onChange` could make it reject, and it never throws
    reflector.synced.catch(() => undefined) // aborted before
  }

  return {
    follow(podWatch) {
      if (podWatch === currentWatch) return
      currentWatch = podWatch
      watchController.abort()
      options.onUnfollowed()
      watchController = new AbortController()
      current = unknown('the pods of this node are not watched')
      if (podWatch === 'no') onUids(new Set())
      else start(podWatch, watchController.signal)
    },

    async listNow(readSignal) {
      const { items } = await listAll<PodObject, Pod>(transport, '/api/v1/pods', {
        query,
        signal: readSignal,
        transform: stripPod,
      })
      if (currentWatch !== 'no' && current.known) setPods(items, currentWatch) // otherwise the next pod would be missed
      return items
    },

    current: () => current,
  }
}

const stripPod = (pod: PodObject): PodObject => {
  const { metadata, spec, status } = pod
  return {
    metadata,
    spec: {
      ...(spec?.nodeName !== undefined && { nodeName: spec.nodeName }),
      ...(spec?.restartPolicy !== undefined && { restartPolicy: spec.restartPolicy }),
      ...(spec?.tolerations && { tolerations: spec.tolerations }),
    },
    status: {
      ...(status?.phase !== undefined && { phase: status.phase }),
      ...(status?.conditions && {
        conditions: status.conditions
          .filter(({ type }) => type === 'Ready')
          .map(({ type, status: value }) => ({ type, status: value })),
      }),
      ...(status?.containerStatuses &&
        isMirrorPod(pod) && {
          containerStatuses: status.containerStatuses.map(({ containerID }) => (containerID ? { containerID } : {})),
        }),
      ...(status?.initContainerStatuses &&
        skyhookOfPackagePod(pod) !== undefined && {
          initContainerStatuses: status.initContainerStatuses.map(({ restartCount, state }) => ({
            ...(restartCount !== undefined && { restartCount }),
            ...(state && { state }),
          })),
        }),
    },
  }
}
