/**
 * What a cluster has beside the simulated API server: the DaemonSet of the agents with its controller, Leases of
 * kubelets, webhooks, logs of pods, registries, and what a person sees at the shell of a host.
 */
import { Readable } from 'node:stream'
import { ApiError } from '../../../src/kube/errors.ts'
import type { KubeRequestOptions, KubeTransport, Method } from '../../../src/kube/transport.ts'
import { isObject } from '../../../src/schemas/json.ts'
import { formatTime } from '../../../src/schemas/time.ts'
import type { FleetScene } from '../../kit/fleet/fleet-scene.ts'
import type { Fact } from '../../promises/facts.ts'

type Fields = Readonly<Record<string, unknown>>

/** What a command has shown, and its exit status. */
export type Shown = { readonly status: number; readonly output: string }

export type Outside = {
  /** The API server with all that it has. */
  withObjects(transport: KubeTransport): KubeTransport
  /** Creates or replaces an object that the simulated API server does not have. */
  put(folder: string, object: Fields & { readonly metadata: Fields & { readonly name: string } }): void
  get(path: string): Fields | undefined
  remove(path: string): void
  /** What a command shows on the host of node1. */
  setHostCommand(command: string, shown: () => Shown): void
  onHost(command: string): Shown
  /** What `kubectl skyhook validate` finds in an image; the real registries are not asked. */
  setImage(image: string, finding: string): void
  image(name: string): string | undefined
  /** Kubelets that do not renew their Leases. */
  readonly silentKubelets: Set<string>
  /** Ends the agent of node1 and deletes its pod, which comes back once it is allowed. */
  removeAgent(): () => void
}

export const daemonSetPath = '/apis/apps/v1/namespaces/skyhook/daemonsets/skyhookd'
const agentsFolder = '/api/v1/namespaces/skyhook/pods'
const agentImage = 'none' // of the pods of simulated agents
const served = ['/apis/apps/v1/', '/apis/admissionregistration.k8s.io/v1/']
/** Group, namespace, resource, name. */
const pathForm = /^(\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/]+))?\/([^/]+)(?:\/([^/]+))?$/

/** The lines that agents log, by host. */
export type AgentLogs = { readonly note: (fact: Fact) => void; readonly of: (host: string) => readonly string[] }

export function createAgentLogs(): AgentLogs {
  const lines = new Map<string, string[]>()
  return {
    note(fact) {
      if (fact.kind !== 'log') return
      const { atMs, message, fields } = fact.line
      const time = new Date(atMs).toISOString()
      const own = lines.get(fact.host) ?? []
      lines.set(fact.host, own)
      own.push(`${time} ${JSON.stringify({ ...fields, time, message })}\n`)
    },
    of: (host) => lines.get(host) ?? [],
  }
}

export function startOutside(scene: FleetScene, logs: AgentLogs): Outside {
  const { clock, admin, server } = scene.simulation
  const objects = new Map<string, Fields>()
  const commands = new Map<string, () => Shown>()
  const images = new Map<string, string>()
  const silentKubelets = new Set<string>()
  const blocked = new Set<string>()

  const outside: Outside = {
    withObjects: (transport) => ({
      ...transport,
      async json<T>(method: Method, path: string, options: KubeRequestOptions = {}): Promise<T> {
        if (!served.some((prefix) => path.startsWith(prefix))) return await transport.json<T>(method, path, options)
        return answer(method, path, options) as T
      },
      async stream(path, options = {}) {
        const [, node] = new RegExp(`^${agentsFolder}/agent-of-([^/]+)/log$`).exec(path) ?? []
        if (node === undefined) return await transport.stream(path, options)
        return Readable.from(logs.of(node.replace('node', 'host')).map((line) => Buffer.from(line)))
      },
    }),
    put: (folder, object) => void objects.set(`${folder}/${object.metadata.name}`, object),
    get: (path) => objects.get(path),
    remove: (path) => void objects.delete(path),
    setHostCommand: (command, shown) => void commands.set(command, shown),
    onHost(command) {
      const shown = commands.get(command)
      if (shown === undefined) throw new Error(`nobody has said what ${command} shows on the host`)
      return shown()
    },
    setImage: (image, finding) => void images.set(image, finding),
    image: (name) => images.get(name),
    silentKubelets,
    removeAgent() {
      blocked.add('host1')
      const { supervisor } = scene.host('host1')
      const unfreeze = supervisor.freeze()
      supervisor.kill()
      admin.send('DELETE', `${agentsFolder}/agent-of-node1`, { gracePeriodSeconds: 0 })
      return () => {
        blocked.delete('host1')
        unfreeze()
      }
    },
  }

  function answer(method: Method, path: string, { body }: KubeRequestOptions): Fields {
    const [, group = '', namespace, plural = '', name] = pathForm.exec(path) ?? []
    if (name === undefined) {
      const items = [...objects].filter(([at]) => {
        const [, ofGroup, ofNamespace, ofPlural] = pathForm.exec(at) ?? []
        return ofGroup === group && ofPlural === plural && (namespace === undefined || namespace === ofNamespace)
      })
      return { kind: 'List', metadata: { resourceVersion: '1' }, items: items.map(([, object]) => object) }
    }
    const found = objects.get(path)
    if (found === undefined) throw new ApiError({ status: 404, reason: 'NotFound', message: `${path} not found` })
    if (method === 'DELETE') objects.delete(path)
    if (method === 'PATCH') objects.set(path, merged(found, body as Fields))
    return objects.get(path) ?? found
  }

  outside.put('/apis/apps/v1/namespaces/skyhook/daemonsets', {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'skyhookd', namespace: 'skyhook', labels: { 'app.kubernetes.io/name': 'skyhookd' } },
    spec: { template: { spec: { containers: [{ name: 'agent', image: agentImage }] } } },
  })

  // the controller of the DaemonSet, and the kubelets that end its pods
  const ending = new Set<string>()
  const reconcile = (): void => {
    for (const one of hosts()) {
      const { name, host, nodeName, supervisor } = one
      const pod = server.object('pods', 'skyhook', `agent-of-${nodeName()}`)
      if (pod?.metadata.deletionTimestamp !== undefined && !ending.has(pod.metadata.uid)) {
        ending.add(pod.metadata.uid)
        supervisor.terminate()
        admin.send('DELETE', `${agentsFolder}/${pod.metadata.name}`, { gracePeriodSeconds: 0 })
      }
      if (pod === undefined && host.power() === 'up' && !blocked.has(name)) one.restore()
    }
  }
  const hosts = () => [...scene.simulation.hosts.values()]
  const everySecond = (): void => {
    if (clock.monotonicMs() > 5_000) reconcile()
    clock.startTimer(1_000, everySecond, { isBackground: true })
  }
  clock.startTimer(1_000, everySecond, { isBackground: true })

  admin.send('POST', '/api/v1/namespaces', { metadata: { name: 'kube-node-lease' } })
  const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
  const renew = (): void => {
    for (const { nodeName, host, network } of hosts()) {
      const name = nodeName()
      if (silentKubelets.has(name) || host.power() !== 'up' || network.isCut()) continue
      const spec = { holderIdentity: name, renewTime: `${formatTime(clock.wallMs()).slice(0, 19)}.000000Z` }
      if (server.object('leases', 'kube-node-lease', name) === undefined)
        admin.send('POST', leases, { metadata: { name }, spec })
      else admin.patch(`${leases}/${name}`, { spec })
    }
    clock.startTimer(10_000, renew, { isBackground: true })
  }
  clock.startTimer(5_000, renew, { isBackground: true })
  return outside
}

/** A merge patch. */
function merged(target: unknown, patch: Fields): Fields {
  const result: Record<string, unknown> = isObject(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else result[key] = isObject(value) ? merged(result[key], value) : value
  }
  return result
}
