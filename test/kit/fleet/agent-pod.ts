/** The pod of a host's agent, as the DaemonSet and the kubelet show it to the cluster. */
import type { Clock } from '../../../src/schemas/clock.ts'
import { formatTime } from '../../../src/schemas/time.ts'
import type { SimulatedApiServer } from '../api-server/server.ts'
import { createClusterWriter } from './cluster-writer.ts'

const folder = '/api/v1/namespaces/skyhook/pods'
const owner = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'skyhookd', uid: 'daemon-set', controller: true }
/** From a start until the probe has been answered. */
const probeMs = 1_000

export type AgentPod = {
  setReady(isRunning: boolean): void
  /** The host is new, or has another Node now, or the cluster has forgotten the pod. */
  create(): void
}

export function startAgentPod(
  server: SimulatedApiServer,
  ports: {
    readonly clock: Clock
    readonly host: string
    readonly nodeName: () => string
    readonly isCut: () => boolean
  },
): AgentPod {
  const { clock, host, nodeName, isCut } = ports
  const writer = createClusterWriter(server, { clock, client: `kubelet:${host}`, isCut })
  let name = ''
  let isReady = false
  let changes = 0

  function create(): void {
    if (name !== '') writer.send('DELETE', `${folder}/${name}`, { gracePeriodSeconds: 0 })
    name = `agent-of-${nodeName()}`
    const labels = { 'app.kubernetes.io/name': 'skyhookd' }
    const spec = { nodeName: nodeName(), containers: [{ name: 'agent', image: 'none' }] }
    writer.send('POST', folder, { metadata: { name, labels, ownerReferences: [owner] }, spec })
    publish()
  }

  function publish(): void {
    const at = formatTime(clock.wallMs())
    const conditions = [{ type: 'Ready', status: isReady ? 'True' : 'False', lastTransitionTime: at }]
    writer.patch(`${folder}/${name}/status`, { status: { phase: 'Running', conditions } })
  }

  return {
    setReady(isRunning) {
      const change = ++changes
      clock.startTimer(isRunning ? probeMs : 0, () => {
        if (change !== changes || isReady === isRunning) return
        isReady = isRunning
        publish()
      })
    },
    create,
  }
}
