/**
 * A static pod of a control-plane host, which stands for etcd: the kubelet starts it after each boot, some time after
 * the node is Ready. Until then the cluster shows it as it was before the boot.
 */
import type { Clock } from '../../../src/schemas/clock.ts'
import { formatTime } from '../../../src/schemas/time.ts'
import type { SimulatedApiServer } from '../api-server/server.ts'
import type { SimulatedHost } from '../host/simulated-host.ts'
import { createClusterWriter } from './cluster-writer.ts'

const folder = '/api/v1/namespaces/kube-system/pods'
/** From the boot on; longer than a kubelet takes to be Ready. */
const startMs = 30_000

export type StaticPod = {
  /** The host is new, or has another Node now, or the cluster has forgotten the pod. */
  create(): void
}

export function startStaticPod(
  server: SimulatedApiServer,
  ports: {
    readonly clock: Clock
    readonly host: SimulatedHost
    readonly nodeName: () => string
    readonly isCut: () => boolean
  },
): StaticPod {
  const { clock, host, nodeName, isCut } = ports
  const writer = createClusterWriter(server, { clock, client: `kubelet:${host.name}`, isCut })
  const annotations = { 'kubernetes.io/config.mirror': 'manifest' }
  let name = ''
  let containerID = host.bootId()
  let cancelStart = (): void => undefined

  function publish(): void {
    const at = formatTime(clock.wallMs())
    const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: at }]
    const status = { phase: 'Running', conditions, containerStatuses: [{ name: 'etcd', containerID }] }
    writer.patch(`${folder}/${name}/status`, { status })
  }

  host.observe(({ event }) => {
    if (event !== 'booted' && event !== 'wentDown') return
    cancelStart()
    if (event === 'wentDown') return
    cancelStart = clock.startTimer(startMs, () => {
      containerID = host.bootId()
      host.tell({ event: 'staticPodsRun' })
      publish()
    })
  })

  return {
    create() {
      if (name !== '') writer.send('DELETE', `${folder}/${name}`, { gracePeriodSeconds: 0 })
      name = `etcd-${nodeName()}`
      const spec = { nodeName: nodeName(), containers: [{ name: 'etcd', image: 'none' }] }
      writer.send('POST', folder, { metadata: { name, annotations }, spec })
      publish()
    },
  }
}
