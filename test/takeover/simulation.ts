/**
 * A simulated fleet that the operator has just left: its objects as they were recorded, and what is known of its work
 * for the rules that judge the fleet. Agents start in the same moment.
 */
import { policiesPath, skyhooksPath } from '../../src/schemas/api.ts'
import { isObject, parseJson } from '../../src/schemas/json.ts'
import { nodeStateKey } from '../../src/schemas/annotations.ts'
import type { SimObject } from '../kit/api-server/versions.ts'
import type { SimRequest } from '../kit/api-server/request.ts'
import type { HostEvent, HostStep } from '../kit/host/observer.ts'
import { evidenceOf } from '../promises/evidence.ts'
import type { Invariant } from '../promises/promised.ts'
import { nodePath, skyhookPath } from '../kit/fleet/cluster-writer.ts'
import type { HostView, WorldView } from '../kit/fleet/world-view.ts'
import { type Moment, readMoment, withUids } from '../kit/takeover/moments.ts'

/** In the words of the simulation: its selector, its package with all stages, and a service that its hosts have. */
const inSimulation = (text: string): string =>
  text
    .replaceAll(/registry\.example\/packages\/\w+/g, 'registry.test/p0a')
    .replaceAll(/(\bpool: )gpu\b/g, '$1a')
    .replaceAll(/^( *- )cron$/gm, '$1web.service')

export const simulatedMoment = (name: string): Moment => readMoment(name, inSimulation)

/** Each of them has a name that its host is called after. */
export const hostOf = (node: string): string => node.replace('node', 'host')
export const nodeOf = (host: string): string => host.replace('host', 'node')

export type Administrator = {
  /** Sent in the name of an administrator, which the rules know as such. */
  readonly patch: (path: string, body: object) => void
  readonly patchNode: (name: string, body: object) => void
  readonly patchSkyhook: (name: string, body: object) => void
  /** As the steps of the takeover: nobody's edit of a node's state. */
  readonly annotateNode: (name: string, annotations: Readonly<Record<string, string>>) => void
  readonly deletePod: (namespace: string, name: string) => void
}

/** A package that the operator has worked on, on a host. */
export type PackageWork = {
  readonly host: string
  readonly skyhook: string
  readonly package: string
  readonly version: string
  readonly stage: string
  readonly state: string
  /** Stages that have passed: none of them is to run again for this version. */
  readonly passed: readonly string[]
}

/** All entries of the operator; the spec may have another version by now. */
export function operatorEntries({ nodes, skyhooks }: Moment): readonly PackageWork[] {
  return nodes.flatMap(({ metadata: { name, annotations = {} } }) =>
    skyhooks.flatMap(({ metadata: { name: skyhook } }) => {
      const entries = parseJson(annotations[nodeStateKey(skyhook)] ?? '{}')
      return Object.values(isObject(entries) ? entries : {}).flatMap((entry): PackageWork[] => {
        if (!isObject(entry)) return []
        const {
          name: packageName = '',
          version = '',
          stage = '',
          state = '',
        } = entry as Readonly<Record<string, string>>
        const passed = passedBefore[stage] ?? []
        return [
          {
            host: hostOf(name),
            skyhook,
            package: packageName,
            version,
            stage,
            state,
            passed: state === 'complete' ? [...passed, stage] : passed,
          },
        ]
      })
    }),
  )
}

const passedBefore: Readonly<Record<string, readonly string[]>> = {
  config: ['apply', 'upgrade'],
  interrupt: ['apply', 'upgrade', 'config'],
  'post-interrupt': ['apply', 'upgrade', 'config', 'interrupt'],
}

/**
 * Puts the objects into the cluster before anything happens in it, and files onto the hosts that it worked on. The
 * rules after this one find everything as it is: what the operator did is not judged.
 */
export const operatorLeft = (moment: Moment, onWorld: (world: WorldView) => void): Invariant => ({
  name: 'operator-left',
  watch(world) {
    const evidence = evidenceOf(world)
    const stop = world.server.observe({
      committed: (change, client) => evidence.see({ kind: 'commit', change, client }),
    })
    load(world, moment)
    stop()
    for (const view of world.hosts.values()) {
      view.host.systemd.addService('web.service', { restart: () => ({ durationMs: 1_500, result: 'done' }) })
      for (const skyhook of skyhooksOn(moment, view.nodeName()))
        writeFile(view, `/var/lib/skyhook/${skyhook}/flags/.operator`, '')
      view.host.disk.syncAll()
    }
    const deleted = moment.skyhooks.flatMap(({ metadata }) => (metadata.deletionTimestamp ? [metadata.name] : []))
    // nobody goes on with what is being deleted: it counts as begun by nobody
    const entries = operatorEntries(moment).filter(({ skyhook }) => !deleted.includes(skyhook))
    for (const entry of entries) for (const event of eventsOf(entry)) evidence.see(event)
    onWorld(world)
    return { checks: () => 0 }
  },
})

/** What an administrator does at once, and has done before the operator came. Comes after all other rules. */
export const administrator = (act: (administrator: Administrator, world: WorldView) => void): Invariant => ({
  name: 'administrator',
  watch(world) {
    const patch = (path: string, body: object): void => void send(world, 'admin', 'PATCH', path, body)
    act(
      {
        patch,
        patchNode: (name, body) => patch(nodePath(name), body),
        patchSkyhook: (name, body) => patch(skyhookPath(name), body),
        annotateNode: (name, annotations) =>
          void send(world, 'takeover', 'PATCH', nodePath(name), { metadata: { annotations } }),
        deletePod: (namespace, name) =>
          void send(world, 'takeover', 'DELETE', `/api/v1/namespaces/${namespace}/pods/${name}`, {
            gracePeriodSeconds: 0,
          }),
      },
      world,
    )
    return { checks: () => 0 }
  },
})

/** Skyhooks that the operator began on a node. */
const skyhooksOn = ({ nodes }: Moment, node: string): readonly string[] => {
  const prefix = nodeStateKey('')
  const keys = Object.keys(nodes.find(({ metadata }) => metadata.name === node)?.metadata.annotations ?? {})
  return keys.flatMap((key) => (key.startsWith(prefix) ? [key.slice(prefix.length)] : []))
}

function load(world: WorldView, recorded: Moment): void {
  const put = (method: SimRequest['method'], path: string, body?: unknown): SimObject =>
    send(world, 'operator', method, path, body)
  for (const { metadata, spec } of recorded.policies)
    put('POST', policiesPath, { metadata: { name: metadata.name }, spec })
  const uids = new Map<string, string>()
  for (const { apiVersion, kind, metadata, spec } of recorded.skyhooks) {
    const { name, annotations, finalizers } = metadata
    const created = put('POST', skyhooksPath, { apiVersion, kind, metadata: { name, annotations, finalizers }, spec })
    uids.set(name, created.metadata.uid)
  }
  const { nodes, skyhooks, pods, configMaps } = withUids(recorded, uids)
  for (const { metadata, data } of configMaps) {
    const { name, namespace = '', labels, annotations, ownerReferences } = metadata
    put('POST', `/api/v1/namespaces/${namespace}/configmaps`, {
      metadata: { name, labels, annotations, ownerReferences },
      data,
    })
  }
  for (const { metadata, status } of skyhooks) {
    put('PATCH', `${skyhookPath(metadata.name)}/status`, { status })
    if (metadata.deletionTimestamp !== undefined) put('DELETE', skyhookPath(metadata.name))
  }
  for (const { metadata, spec, status } of nodes) {
    const { name, labels, annotations } = metadata
    put('POST', '/api/v1/nodes', { metadata: { name, labels, annotations }, spec })
    put('PATCH', `${nodePath(name)}/status`, { status: { conditions: status?.conditions } })
  }
  for (const { metadata, spec, status } of pods) {
    const { name, namespace = '', labels, annotations, ownerReferences } = metadata
    const path = `/api/v1/namespaces/${namespace}/pods`
    put('POST', path, { metadata: { name, labels, annotations, ownerReferences }, spec })
    put('PATCH', `${path}/${name}/status`, { status })
  }
}

function send(
  { server }: WorldView,
  client: string,
  method: SimRequest['method'],
  path: string,
  body?: unknown,
): SimObject {
  const contentType = method === 'PATCH' ? 'application/merge-patch+json' : undefined
  const answer = server.handle({ client, manager: client, method, path, query: {}, body, contentType })
  if (answer.code >= 300) throw new Error(`${method} ${path}: ${answer.code} ${JSON.stringify(answer.body)}`)
  return answer.body as SimObject
}

function writeFile({ host: { disk } }: HostView, path: string, content: string): void {
  const parts = path.split('/')
  for (let depth = 2; depth < parts.length; depth++) {
    const folder = disk.locate(parts.slice(0, depth).join('/'))
    if (folder.node === undefined) disk.makeFolder(folder, 0o755)
  }
  const place = disk.locate(path)
  disk.write(disk.create(place, 0o644), Buffer.from(content), path)
}

/** As if the host had just run what has passed of the last stages of the package. */
function eventsOf({ host, skyhook, package: name, version, passed }: PackageWork) {
  return passed
    .filter((stage) => stage === 'config' || stage === 'post-interrupt')
    .flatMap((stage) => [stage, `${stage}-check`])
    .flatMap((mode) => {
      const step: HostStep = {
        unit: `operator-${skyhook}-${name}-${mode}.service`,
        attempt: 'operator',
        skyhook,
        package: name,
        version,
        mode,
        path: `${mode}.sh`,
        invocationId: 'operator',
        startedAtMs: 0,
      }
      const events: readonly HostEvent[] = [
        { event: 'stepStarted', step },
        { event: 'stepEnded', step, end: { outcome: 'exited', code: 0 }, isRecorded: true },
      ]
      return events.map((event) => ({ kind: 'host', host, event }) as const)
    })
}
