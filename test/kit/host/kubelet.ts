/**
 * The kubelet of a simulated host, and what the node lifecycle controller makes of it: the Node is registered, says
 * Ready and from which boot, and is unknown while nobody reports.
 */
import { isNotFound } from '../../../src/kube/errors.ts'
import type { KubeTransport } from '../../../src/kube/transport.ts'
import { type Clock, startInterval } from '../../../src/schemas/clock.ts'
import type { SimulatedHost } from './simulated-host.ts'

export type KubeletOptions = {
  /** Virtual time. */
  readonly clock: Clock
  readonly transport: KubeTransport
  readonly nodeName: string
  readonly labels?: Readonly<Record<string, string>>
  /** Of each registration. */
  readonly taints?: readonly Taint[]
  /** From its start until the Node is Ready; by default 5 s. */
  readonly readyMs?: () => number
}

export type Kubelet = {
  /** Registers the Node again if it is gone, as only a kubelet that starts does. */
  restart(): void
  stop(): void
}

export type Taint = { readonly key: string; readonly value?: string; readonly effect: string }
type NodeObject = {
  readonly metadata: { resourceVersion: string }
  readonly spec?: { readonly taints?: readonly Taint[] }
}

/** What has failed is tried again this much later; nothing is written where nothing has changed. */
const retryMs = 10_000
/** The controller waits this long for a kubelet. */
const graceMs = 40_000
const controllersTaint = /^node\.kubernetes\.io\/(not-ready|unreachable)$/

/** Runs whenever the host does, from now on. */
export function startKubelet(host: SimulatedHost, options: KubeletOptions): Kubelet {
  const { clock, transport, nodeName, labels = {}, taints = [], readyMs = () => 5_000 } = options
  const path = `/api/v1/nodes/${nodeName}`
  let stopTimers = (): void => undefined
  let isStopped = false

  /** Tries until it has been done. */
  function keepTrying(firstMs: number, task: () => Promise<unknown>): void {
    stopTimers()
    const attempt = (): void => void task().then(stopTimers, () => undefined)
    const cancelFirst = clock.startTimer(firstMs, attempt)
    const cancelRest = startInterval(clock, retryMs, attempt)
    stopTimers = () => {
      cancelFirst()
      cancelRest()
    }
  }

  async function report(status: 'True' | 'Unknown', nodeInfo?: { readonly bootID: string }): Promise<void> {
    const at = new Date(clock.wallMs()).toISOString().replace(/\.\d+Z$/, 'Z')
    const condition = { type: 'Ready', status, reason: 'Simulated', lastHeartbeatTime: at, lastTransitionTime: at }
    await transport.json('PATCH', `${path}/status`, {
      contentType: 'application/strategic-merge-patch+json',
      body: { status: { nodeInfo, conditions: [condition] } },
    })
    const { metadata, spec } = await transport.json<NodeObject>('GET', path)
    const kept = (spec?.taints ?? []).filter(({ key }) => !controllersTaint.test(key))
    const own = status === 'True' ? [] : [{ key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' }]
    await transport.json('PATCH', path, {
      contentType: 'application/merge-patch+json',
      body: { metadata: { resourceVersion: metadata.resourceVersion }, spec: { taints: [...kept, ...own] } },
    })
  }

  async function register(): Promise<void> {
    await transport.json('GET', path).catch(async (error: unknown) => {
      if (isStopped || !isNotFound(error)) throw error
      const spec = taints.length > 0 ? { taints } : undefined
      await transport.json('POST', '/api/v1/nodes', { body: { metadata: { name: nodeName, labels }, spec } })
    })
    await report('True', { bootID: host.bootId() })
  }

  const restart = (): void => {
    if (host.power() !== 'down') keepTrying(readyMs(), register) // else the next boot does
  }
  const stopObserving = host.observe(({ event }) => {
    if (event === 'wentDown') keepTrying(graceMs, () => report('Unknown'))
    else if (event === 'booted') restart()
  })
  restart()
  return {
    restart,
    stop() {
      isStopped = true
      stopObserving()
      stopTimers()
    },
  }
}
