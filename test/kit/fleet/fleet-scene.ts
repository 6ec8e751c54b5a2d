/** A simulated fleet as a person with a kubeconfig sees it: whole agents work, and a client reads what they publish. */
import { onTestFinished } from 'vitest'
import { statusKey } from '../../../src/schemas/annotations.ts'
import type { KubeTransport } from '../../../src/kube/transport.ts'
import type { Budget } from '../../../src/schemas/budget.ts'
import type { DeploymentPolicySpec } from '../../../src/schemas/deployment-policy.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import type { Skyhook, SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import type { Fact } from '../../promises/facts.ts'
import { createSeededRandom } from '../virtual-clock.ts'
import { createClient } from '../api-server/client.ts'
import { nodePath, skyhookPath } from './cluster-writer.ts'
import type { NodePlan, PodPlan } from './plan.ts'
import { startWorld, type World, type WorldHost } from './world.ts'

export type SceneOptions = {
  readonly seed?: number
  /** By default two hosts without pods. */
  readonly nodes?: readonly (Partial<NodePlan> & { readonly name: string })[]
  readonly skyhooks?: Readonly<Record<string, Partial<SkyhookSpec>>>
  readonly policies?: Readonly<Record<string, DeploymentPolicySpec>>
  /** As the chart's values have it: the agents are given it, and a ConfigMap says so. Absent: there is none. */
  readonly defaultBudget?: Budget
  /** Hears all that happens. */
  readonly onFact?: (fact: Fact) => void
}

export type FleetScene = {
  readonly simulation: World
  /** What the person's requests go through. */
  readonly transport: KubeTransport
  host(name: string): WorldHost
  node(name: string): KubernetesNode
  skyhook(name: string): Skyhook
  /** What a Node says of a Skyhook, under a key of schemas/annotations.ts. */
  annotation(node: string, key: string): string | undefined
  editNode(node: string, patch: object): void
  editSkyhook(name: string, patch: object): void
  /** Lets virtual time pass until the condition holds; throws when it does not. */
  until(isReached: () => boolean, what: string): Promise<void>
  pass(ms: number): Promise<void>
}

export const pod = (name: string, rest: Partial<PodPlan> = {}): PodPlan => ({
  name,
  isProtected: false,
  isGuarded: false,
  graceMs: 2_000,
  ...rest,
})

/** A Skyhook of one package that selects all hosts, one at a time. */
export const specOf = (spec: Partial<SkyhookSpec> = {}): SkyhookSpec => ({
  nodeSelectors: { matchLabels: { pool: 'a' } },
  interruptionBudget: { count: 1 },
  packages: { p0a: { version: '1.0.0', image: 'registry.test/p0a' } },
  ...spec,
})

/** Starts it; all agents are killed when the test is over. */
export function startScene(options: SceneOptions = {}): FleetScene {
  const {
    seed = 1,
    nodes = [{ name: 'host1' }, { name: 'host2' }],
    skyhooks = { s: {} },
    policies = {},
    defaultBudget,
    onFact = () => undefined,
  } = options
  const world = startWorld(
    {
      seed,
      nodes: nodes.map((node) => ({ isControlPlane: false, pods: [], ...node })),
      skyhooks: Object.entries(skyhooks).map(([name, spec]) => ({ name, spec: specOf(spec) })),
      policies: Object.entries(policies).map(([name, spec]) => ({ name, spec })),
      actions: [],
      ...(defaultBudget && { defaultBudget }),
    },
    {
      onEvent: onFact,
      onBroken(rule, message) {
        throw new Error(`${rule}: ${message}`)
      },
      faultsEndedAtMs: () => undefined,
    },
  )
  onTestFinished(() => {
    for (const { supervisor, host } of world.hosts.values()) {
      supervisor.freeze()
      for (const process of host.processes()) process.kill()
    }
  })
  if (defaultBudget)
    world.admin.send('POST', '/api/v1/namespaces/skyhook/configmaps', {
      metadata: { name: 'skyhookd', labels: { 'app.kubernetes.io/name': 'skyhookd' } },
      data: { 'defaults.interruptionBudget': JSON.stringify(defaultBudget) },
    })
  const transport = createClient(world.server, {
    name: 'person',
    clock: world.clock,
    random: createSeededRandom(seed + 100),
  })
  const node = (name: string): KubernetesNode => {
    const found = world.server.object('nodes', undefined, name) as KubernetesNode | undefined
    if (found === undefined) throw new Error(`there is no Node ${name}`)
    return found
  }
  return {
    simulation: world,
    transport,
    host(name) {
      const found = world.hosts.get(name)
      if (found === undefined) throw new Error(`there is no host ${name}`)
      return found
    },
    node,
    skyhook(name) {
      const found = world.server.object('skyhooks', undefined, name) as Skyhook | undefined
      if (found === undefined) throw new Error(`there is no Skyhook ${name}`)
      return found
    },
    annotation: (name, key) =>
      (world.server.object('nodes', undefined, name) as KubernetesNode | undefined)?.metadata.annotations?.[key],
    editNode: (name, patch) => world.admin.patch(nodePath(name), patch),
    editSkyhook: (name, patch) => world.admin.patch(skyhookPath(name), patch),
    async until(isReached, what) {
      const endMs = world.clock.monotonicMs() + 900_000
      while (!isReached()) {
        if (world.clock.monotonicMs() > endMs) throw new Error(`not within 15 minutes: ${what}`)
        await world.clock.advance(100)
      }
    },
    pass: async (ms) => {
      for (let rest = ms; rest > 0; rest -= 100) await world.clock.advance(Math.min(100, rest))
    },
  }
}

/** A scene in which node1 is at its drain, held up by a budget of pods, and node2 waits for the slot. */
export async function startBlockedScene(packages: NonNullable<SkyhookSpec['packages']>): Promise<FleetScene> {
  const nodes = [{ name: 'host1', pods: [pod('shop')] }, { name: 'host2' }]
  const scene = startScene({ nodes, skyhooks: { s: { packages } } })
  scene.simulation.admin.send('POST', '/apis/policy/v1/namespaces/apps/poddisruptionbudgets', {
    metadata: { name: 'strict' },
    spec: { selector: {}, maxUnavailable: 0 },
  })
  scene.host('host2').conditions.change({ fetch: { durationMs: 4_000 } })
  await scene.until(() => scene.annotation('node1', statusKey('s')) === 'in_progress', 'node1 drains')
  await scene.pass(8_000)
  return scene
}
