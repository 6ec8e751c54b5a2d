/** A DaemonSet of a simulated fleet: a pod on each Node, whatever its taints, that is Ready some time after a boot. */
import type { Clock } from '../../../src/schemas/clock.ts'
import type { SimulatedApiServer } from '../api-server/server.ts'
import type { SimObject } from '../api-server/versions.ts'
import type { Chance } from './chance.ts'
import { createClusterWriter } from './cluster-writer.ts'
import type { FleetHost } from './fleet-host.ts'
import { podsFolder } from './workload.ts'

const owner = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'exporter', uid: 'exporter-uid', controller: true }
const createMs = 1_000
const readyMs = [1_000, 10_000] as const

/** Follows all hosts from now on. */
export function startDaemonSet(
  server: SimulatedApiServer,
  ports: { readonly clock: Clock; readonly chance: Chance; readonly hosts: ReadonlyMap<string, FleetHost> },
): void {
  const { clock, chance, hosts } = ports
  const writer = createClusterWriter(server, { clock, client: 'workload' })
  let serial = 0
  let isDue = false

  const later = (ms: number, act: () => void): void => void clock.startTimer(ms, act, { isBackground: true })

  const own = (): readonly SimObject[] =>
    server.objects('pods').filter(({ metadata }) => metadata.ownerReferences?.[0]?.uid === owner.uid)
  const nodeOf = (pod: SimObject): string => (pod['spec'] as { readonly nodeName?: string }).nodeName ?? ''

  /** Until the pods are as they should be: any number of changes may have come. */
  function reconcileSoon(): void {
    if (isDue) return
    isDue = true
    later(createMs, () => {
      isDue = false
      const covered = new Set(own().map(nodeOf))
      for (const { metadata } of server.objects('nodes')) if (!covered.has(metadata.name)) create(metadata.name)
    })
  }

  function create(nodeName: string): void {
    const name = `exporter-${++serial}`
    const spec = { nodeName, containers: [{ name: 'main', image: 'none' }], tolerations: [{ operator: 'Exists' }] }
    writer.send('POST', podsFolder, { metadata: { name, ownerReferences: [owner] }, spec })
    start(name)
  }

  function start(name: string): void {
    publish(name, 'False')
    later(chance.integer(...readyMs), () => publish(name, 'True'))
  }

  const publish = (name: string, status: 'True' | 'False'): void =>
    writer.patch(`${podsFolder}/${name}/status`, {
      status: { phase: 'Running', conditions: [{ type: 'Ready', status }] },
    })

  server.observe({
    committed({ type, resource, version: { object } }) {
      const isOfNode = resource.plural === 'nodes'
      const isOwn = resource.plural === 'pods' && object.metadata.ownerReferences?.[0]?.uid === owner.uid
      if ((isOfNode && type === 'ADDED') || (isOwn && type === 'DELETED')) reconcileSoon()
    },
    restored: reconcileSoon,
  })
  for (const { host, nodeName } of hosts.values())
    host.observe(({ event }) => {
      if (event === 'booted') for (const pod of own()) if (nodeOf(pod) === nodeName()) start(pod.metadata.name)
    })
}
