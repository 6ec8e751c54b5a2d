/** The play on simulated hosts: whole agents in one process, on virtual time, that serve their own metrics. */
import { nodeStateKey } from '../../src/schemas/annotations.ts'
import { policiesPath } from '../../src/schemas/api.ts'
import type { KubeObject } from '../../src/kube/objects.ts'
import { nodePath, skyhookPath } from '../kit/fleet/cluster-writer.ts'
import { type World, type WorldHost, startWorld } from '../kit/fleet/world.ts'
import { createRecorder, type RecordedKind, type Recorder, type Recording, type Target } from './recording.ts'
import { type Actors, wholePlay, withInterrupt } from './troubles.ts'

const source =
  'Simulated hosts: whole agents of this source tree in one process, on virtual time. It stands in for one of real ' +
  'hosts.'
const kinds: readonly RecordedKind[] = ['nodes', 'leases', 'skyhooks', 'pods']
const guardPath = '/apis/policy/v1/namespaces/apps/poddisruptionbudgets'
const minuteMs = 60_000
const { nodeCount, endsAtMinute, scrapeIntervalMs } = wholePlay
const seed = 1

/** Plays it from the first to the last scene. The same each time. */
export async function recordSimulatedPlay(): Promise<Recording> {
  const recorder = createRecorder(source, scrapeIntervalMs)
  const broken: string[] = []
  const world = startWorld(
    {
      seed,
      nodes: Array.from({ length: nodeCount }, (_, index) => ({
        name: `host-${String(index + 1).padStart(2, '0')}`,
        isControlPlane: false,
        pods: [],
      })),
      skyhooks: [],
      actions: [],
    },
    {
      onEvent: () => undefined,
      onBroken: (rule, message) => broken.push(`${rule}: ${message}`),
      faultsEndedAtMs: () => undefined,
    },
  )
  world.server.observe({
    committed({ type, resource, version: { object } }) {
      const kind = kinds.find((one) => one === resource.plural)
      if (kind) recorder.addChange({ kind, type, atMs: world.clock.wallMs(), object: object as KubeObject })
    },
  })
  const hosts = new Map([...world.hosts.values()].map((host) => [host.nodeName(), host]))
  const actors = simulatedActors(world, hosts)
  const scenes = [...wholePlay.scenesOf([...hosts.keys()])]
  for (let atMs = 0; atMs < endsAtMinute * minuteMs; ) {
    const nextMs = Math.min(
      atMs - (atMs % scrapeIntervalMs) + scrapeIntervalMs,
      (scenes[0]?.atMinute ?? Infinity) * minuteMs,
    )
    await world.clock.advance(nextMs - atMs)
    atMs = nextMs
    for (; scenes[0] !== undefined && scenes[0].atMinute * minuteMs <= atMs; scenes.shift())
      await scenes[0].play(actors)
    if (atMs % scrapeIntervalMs === 0) await scrape(recorder, world, hosts)
  }
  for (const { host } of world.hosts.values()) for (const process of host.processes()) process.kill()
  if (broken.length > 0) throw new Error(broken.join('\n'))
  return recorder.finish()
}

async function scrape(recorder: Recorder, { clock }: World, hosts: ReadonlyMap<string, WorldHost>): Promise<void> {
  const answers: [Target, string | undefined][] = []
  for (const [node, host] of hosts)
    answers.push([{ node, instance: `${node}:9475` }, await host.agents()[0]?.metrics()])
  recorder.addScrape(clock.wallMs(), answers)
}

function simulatedActors(world: World, hosts: ReadonlyMap<string, WorldHost>): Actors {
  const { admin, server, workload } = world
  const hostOf = (node: string): WorldHost => {
    const host = hosts.get(node)
    if (host === undefined) throw new Error(`the play has no node ${node}`)
    return host
  }
  const failures = new Map<string, () => void>()
  const frozen = new Map<string, () => void>()
  return {
    packageOf: (version, interrupt) => ({
      version,
      image: 'registry.test/p0a',
      ...(interrupt && { interrupt }),
    }),
    createPolicy: async (name, spec) => admin.send('POST', policiesPath, { metadata: { name }, spec }),
    createSkyhook: async (name, spec) => world.createSkyhook({ name, spec }),
    patchSkyhook: async (name, patch) => admin.patch(skyhookPath(name), patch),
    deleteSkyhook: async (name) => admin.send('DELETE', skyhookPath(name)),
    labelNode: async (node, labels) => admin.patch(nodePath(node), { metadata: { labels } }),
    async requestInterrupt(node, skyhook) {
      const key = nodeStateKey(skyhook)
      const text = server.object('nodes', undefined, node)?.metadata.annotations?.[key] ?? ''
      admin.patch(nodePath(node), { metadata: { annotations: { [key]: withInterrupt(text) } } })
    },
    async setFailing(node, mode) {
      failures.get(node)?.()
      if (mode !== undefined)
        failures.set(node, hostOf(node).conditions.change({ isFailing: (step) => step.mode === mode }))
    },
    async guardPods(nodes) {
      const spec = { selector: { matchLabels: { app: 'guarded' } }, maxUnavailable: 0 }
      admin.send('POST', guardPath, { metadata: { name: 'never' }, spec })
      for (const node of nodes)
        workload.place({ name: `pod-of-${node}`, isProtected: false, isGuarded: true, graceMs: 1_000 }, node)
    },
    dropGuard: async () => admin.send('DELETE', `${guardPath}/never`),
    async stopAgents(nodes) {
      for (const { nodeName, supervisor } of nodes.map(hostOf)) {
        frozen.set(nodeName(), supervisor.freeze())
        supervisor.kill()
      }
    },
    async startAgents(nodes) {
      for (const node of nodes) frozen.get(node)?.()
    },
  }
}
