import { isUnknownOutcome } from '../../kube/errors.ts'
import type { KubeObject } from '../../kube/objects.ts'
import { lastErrorOf, type Reflector, startReflector } from '../../kube/reflector.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { WatchPorts } from './watch-facts.ts'

type NodeObject = KubernetesNode & KubeObject

export type NodeSource = {
  readonly synced: Promise<void>
  /** Undefined until the Node was read, and while no Node has this name. */
  readonly current: () => KubernetesNode | undefined
  ageMs(): number
  /**
   * Records the answer to the agent's own write. It is the current Node until the watch shows this version or a later
   * one.
   */
  written(node: KubernetesNode): void
  /** Sends a write of the agent, one at a time. If its outcome is unknown, the Node is read again. */
  write<T>(request: () => Promise<T>): Promise<T>
  /**
   * Whether the known Node may be outdated: a write is pending; its outcome is unknown, until a newer version or a LIST
   * is seen; or the watch is broken, perhaps by a restore of etcd.
   */
  isInDoubt(): boolean
  /** The API server refuses a write over the version known here: reads it again. */
  relist(): void
  /** Resolves when the own Node is seen in a version other than `resourceVersion`, or after `timeoutMs`. */
  untilChanged(resourceVersion: string, timeoutMs: number): Promise<void>
  /** Resolves when the own Node is seen in this version or a later one, or after `timeoutMs`. */
  untilReached(resourceVersion: string, timeoutMs: number): Promise<void>
  /**
   * Resolves when the node controller's taint of unschedulable nodes agrees with the Node's spec, or after
   * `timeoutMs`.
   */
  untilTaintMatches(timeoutMs: number): Promise<void>
}

/** After this time, an unanswered write will not be executed. */
const maxDoubtMs = 60_000
/** Interval of the requests to list a Node in doubt; the reflector lists at most twice a minute. */
const lookAgainMs = 5_000

/** Follows only the own Node. Drops images, volumes and other large parts of its status. */
export function followNode(transport: KubeTransport, name: string, options: WatchPorts): NodeSource {
  const { clock, random, signal } = options
  let current: KubernetesNode | undefined
  /** The answer to a write that is newer than the Node in the watch. */
  let written: KubernetesNode | undefined
  let isWriting = false
  let doubtedUntilMs = 0
  let cancelLook = (): void => {}
  let waiters: (() => void)[] = []
  const reflector: Reflector<NodeObject> = startReflector<NodeObject>(transport, {
    clock,
    random,
    path: '/api/v1/nodes',
    query: { fieldSelector: `metadata.name=${name}` },
    transform: stripNode,
    onChange({ changes }) {
      const shown = reflector.store.get(name)
      if (written !== undefined && !isBefore(shown, written)) written = undefined
      if (changes.length > 0) doubtedUntilMs = 0
      show(written ?? shown)
    },
    // a LIST is authoritative, even after a restore of etcd
    onListed() {
      const isChanged = written !== undefined || doubtedUntilMs > 0
      written = undefined
      doubtedUntilMs = 0
      if (isChanged) show(reflector.store.get(name))
    },
    onFact: options.onFact,
    signal,
  })

  signal.addEventListener('abort', () => cancelLook())

  function show(node: KubernetesNode | undefined): void {
    current = node
    options.wake()
    const notified = waiters
    waiters = []
    for (const notify of notified) notify()
  }

  /**
   * Reads the Node until it is certain, because nothing else may trigger a read: the write may no longer be needed, and
   * an unchanged Node has no event.
   */
  function lookWhileInDoubt(): void {
    cancelLook()
    if (doubtedUntilMs === 0 || signal.aborted) return
    if (clock.steadyMs() >= doubtedUntilMs) {
      doubtedUntilMs = 0
      return options.wake()
    }
    reflector.relist()
    cancelLook = clock.startTimer(lookAgainMs, lookWhileInDoubt)
  }

  async function waitUntil(isSatisfied: () => boolean, timeoutMs: number): Promise<void> {
    const deadlineMs = clock.steadyMs() + timeoutMs
    while (!isSatisfied() && clock.steadyMs() < deadlineMs && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const cancel = clock.startTimer(deadlineMs - clock.steadyMs(), resolve)
        waiters.push(() => {
          cancel()
          resolve()
        })
      })
    }
  }

  return {
    synced: reflector.synced,
    current: () => current,
    ageMs: () => reflector.ageMs(),
    written(node) {
      if (!isBefore(reflector.store.get(name), node)) return
      written = node
      doubtedUntilMs = 0
      show(node)
    },
    async write(request) {
      isWriting = true
      try {
        return await request()
      } catch (error) {
        if (isUnknownOutcome(error)) {
          doubtedUntilMs = clock.steadyMs() + maxDoubtMs
          lookWhileInDoubt()
        }
        throw error
      } finally {
        isWriting = false
      }
    },
    isInDoubt: () => isWriting || doubtedUntilMs > 0 || lastErrorOf(reflector.state()) !== undefined,
    relist: () => reflector.relist(),
    untilChanged: (version, timeoutMs) => waitUntil(() => current?.metadata.resourceVersion !== version, timeoutMs),
    untilReached: (version, timeoutMs) =>
      waitUntil(() => {
        const shown = reflector.store.get(name)
        return shown === undefined || isAtLeast(shown.metadata.resourceVersion, version)
      }, timeoutMs),
    untilTaintMatches: (timeoutMs) =>
      waitUntil(
        () => current === undefined || isTainted(current) === (current.spec?.unschedulable === true),
        timeoutMs,
      ),
  }
}

/** Whether it is an earlier version of the same Node. */
const isBefore = (shown: KubernetesNode | undefined, { metadata }: KubernetesNode): boolean =>
  shown?.metadata.uid === metadata.uid && !isAtLeast(shown.metadata.resourceVersion, metadata.resourceVersion)

const isTainted = ({ spec }: KubernetesNode): boolean =>
  spec?.taints?.some(({ key }) => key === 'node.kubernetes.io/unschedulable') === true

/** Resource versions of one object grow as decimal numbers; Kubernetes documents them as comparable since 1.35. */
const isAtLeast = (version: string, minVersion: string): boolean =>
  version.length > minVersion.length || (version.length === minVersion.length && version >= minVersion)

function stripNode({ apiVersion, kind, metadata, spec, status }: NodeObject): NodeObject {
  return {
    ...(apiVersion && { apiVersion }),
    ...(kind && { kind }),
    metadata,
    spec: {
      ...(spec?.unschedulable !== undefined && { unschedulable: spec.unschedulable }),
      ...(spec?.taints && { taints: spec.taints }),
    },
    status: {
      ...(status?.conditions && { conditions: status.conditions }),
      ...(status?.nodeInfo && { nodeInfo: { ...(status.nodeInfo.bootID && { bootID: status.nodeInfo.bootID }) } }),
      ...(status?.addresses && { addresses: status.addresses }),
    },
  }
}
