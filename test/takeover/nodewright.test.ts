/**
 * Where NodeWright, the successor of the Skyhook operator, has been, whole agents on simulated hosts start nothing.
 * What judges them is what happens on hosts, Nodes and Leases, and what a person reads on the Node.
 */
import { expect, test, vi } from 'vitest'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import { selects } from '../../src/schemas/selectors.ts'
import type { Skyhook } from '../../src/schemas/skyhook.ts'
import { slotsOf, skyhooksOf } from '../promises/cluster.ts'
import { startWorld, type World } from '../kit/fleet/world.ts'
import { worlds, leaveFiles, shownReason, takenOver, type World as Cluster } from './nodewright-worlds.ts'
import type { Moment } from '../kit/takeover/moments.ts'
import { hostOf, operatorEntries, operatorLeft, simulatedMoment } from './simulation.ts'

vi.setConfig({ testTimeout: 120_000 }) // seconds of a processor, more where others have it

const names = Object.keys(worlds) as (keyof typeof worlds)[]

/** Work that is complete, under way, cordoned, failing, held by people, gated by a taint, or being deleted. */
const moments = [
  '01-idle-complete',
  '02-apply-running',
  '03a-interrupt-package-apply-on-cordoned-node',
  '04-erroring',
  '07-downgrade-uninstall',
  '08-paused-and-disabled',
  '09-runtime-required-taint',
  '10-admin-cordon-before-interrupt',
  '10b-admin-cordon-after-complete',
  '12-deletion-requested-operator-gone',
  '15b-deployment-policy-complete',
]

type Seen = {
  readonly world: World
  /** What agents did that nobody had decided. */
  readonly touched: readonly string[]
  readonly steps: readonly string[]
}

/** Agents on the cluster for so long, on hosts with the files of what was recorded. */
async function agentsOn(recorded: Moment, { moment, isServed, agent }: Cluster, forMs = 45_000): Promise<Seen> {
  const touched: string[] = []
  const steps: string[] = []
  let before: ReadonlyMap<string, object> | undefined
  const texts = new Map(moment.skyhooks.map(({ metadata, status }) => [metadata.name, status.status as unknown]))
  const nodes = ['host-1', 'host-2', 'host-3'].map((name) => ({ name, isControlPlane: false, pods: [] }))
  const world = startWorld(
    { seed: 1, nodes, skyhooks: [], actions: [] },
    {
      onBroken: (rule, message) => void touched.push(`${rule}: ${message}`),
      faultsEndedAtMs: () => undefined,
      onEvent(event) {
        if (event.kind === 'host') {
          const happened = event.event
          if (happened.event === 'stepStarted') {
            const { skyhook, package: name, mode } = happened.step
            steps.push(`${event.host} ${skyhook}/${name} ${mode}`)
            touched.push(`${mode} of ${name} of ${skyhook} starts on ${event.host}`)
          } else if (happened.event === 'restartRequested' || happened.event === 'rebootRequested')
            touched.push(`${happened.event} on ${event.host}`)
        } else if (event.kind === 'commit' && before !== undefined && /^(agent|census):/.test(event.client)) {
          for (const { metadata, status } of skyhooksOf(world))
            if (isServed && holding.has(String(status?.['status'])) && status?.['status'] !== texts.get(metadata.name))
              touched.push(`${event.client} makes NodeWright stop by ${metadata.name}: ${String(status?.['status'])}`)
          const [slot] = slotsOf(world)
          if (slot !== undefined) touched.push(`${slot.holder} takes the slot ${slot.name}`)
          for (const node of nodesOf(world))
            if (JSON.stringify(othersPart(node)) !== JSON.stringify(before.get(node.metadata.name)))
              touched.push(`${event.client} changes ${node.metadata.name}: ${JSON.stringify(othersPart(node))}`)
        }
      },
    },
  )
  operatorLeft(moment, () => undefined).watch(world, () => undefined)
  world.server.otherGroups.push(...(isServed ? [{ name: 'nodewright.nvidia.com', version: 'v1alpha1' }] : []))
  for (const host of world.hosts.values()) leaveFiles(recorded, agent, host)
  before = new Map(nodesOf(world).map((node) => [node.metadata.name, othersPart(node)]))
  await world.clock.advance(forMs)
  for (const { host } of world.hosts.values()) for (const process of host.processes()) process.kill()
  return { world, touched: [...new Set(touched)], steps }
}

const nodesOf = ({ server }: World): readonly KubernetesNode[] =>
  server.objects('nodes') as unknown as readonly KubernetesNode[]

/** While one Skyhook has such a status, NodeWright works on nothing. */
const holding: ReadonlySet<string> = new Set(['in_progress', 'erroring', 'blocked', 'waiting', 'unknown'])

const otherKey =
  /^(nodewright\.nvidia\.com\/|skyhook\.nvidia\.com\/(nodeState_|status_|version_|cordon_|drainStart_|autoTaint_|ignore$))/
const pick = (all: Readonly<Record<string, string>> | undefined): readonly (readonly [string, string])[] =>
  Object.entries(all ?? {})
    .filter(([key]) => otherKey.test(key))
    .toSorted(([a], [b]) => (a < b ? -1 : 1))

/** What an operator reads or writes on a Node: its own, and what a migration copies. */
const othersPart = ({ metadata, spec, status }: KubernetesNode): object => ({
  annotations: pick(metadata.annotations),
  labels: pick(metadata.labels),
  unschedulable: spec?.unschedulable ?? false,
  taints: (spec?.taints ?? []).filter(({ key }) => !key.startsWith('node.kubernetes.io/')),
  conditions: (status?.conditions ?? [])
    .filter(({ type }) => /^(nodewright|skyhook)\.nvidia\.com\/.+\/(NotReady|Erroring)$/.test(type))
    .map(({ type, status: value, reason }) => `${type} ${value} ${reason}`)
    .toSorted(),
})

/** What there is to be found for a Skyhook on a Node, by the cluster as it was made. */
function foundBy({ isServed }: Cluster, skyhook: Skyhook, node: KubernetesNode): RegExp {
  if (isServed) return /\bnodewright\.nvidia\.com\b/
  const { name } = skyhook.metadata
  const [mark] = Object.keys(skyhook.metadata.annotations ?? {}).filter((key) => key.startsWith('nodewright.'))
  if (mark !== undefined) return new RegExp(mark)
  const keys = Object.keys(node.metadata.annotations ?? {})
  if (keys.some((key) => key.startsWith('nodewright.') && key.endsWith(`_${name}`)))
    return new RegExp(`nodewright\\.nvidia\\.com/\\w+_${name}\\b`)
  return new RegExp(`/var/lib/skyhook/${name}\\b`)
}

/** Without a key on the Node, only files tell: those of a package of which some stage has passed. */
const leavesFiles = (recorded: Moment): boolean =>
  recorded.skyhooks.every(({ metadata: { name } }) =>
    recorded.nodes.every(({ metadata }) =>
      operatorEntries(recorded).some(
        ({ host, skyhook, passed }) => host === hostOf(metadata.name) && skyhook === name && passed.length > 0,
      ),
    ),
  )

const cases = names
  .filter((name) => !takenOver.includes(name))
  .flatMap((name) => moments.map((moment) => [name, moment] as const))
  .filter(([name, moment]) => !/all keys/.test(name) || leavesFiles(simulatedMoment(moment)))

test.each(cases)('in world %s, agents start nothing where %s was, and say so', async (name, moment) => {
  const recorded = simulatedMoment(moment)
  const cluster: Cluster = worlds[name](recorded)
  const { world, touched } = await agentsOn(recorded, cluster)
  expect(touched).toEqual([])
  const selected = nodesOf(world).flatMap((node) =>
    skyhooksOf(world)
      .filter(({ spec }) => selects(spec.nodeSelectors, node.metadata.labels ?? {}))
      .map((skyhook) => ({ node, skyhook })),
  )
  expect(selected.length > 0).toBe(skyhooksOf(world).length > 0)
  const shown = nodesOf(world).flatMap(({ metadata }) => Object.keys(metadata.annotations ?? {}))
  expect(shown.filter((key) => key.startsWith('skyhook.nvidia.com/reason_')).length).toBe(selected.length)
  for (const { node, skyhook } of selected) {
    const { name: of } = skyhook.metadata
    const original = cluster.moment.nodes.find(({ metadata }) => metadata.name === node.metadata.name) ?? node
    const { reason, message } = shownReason(node, of)
    expect([reason, message]).toEqual(['Takeover', expect.stringMatching(foundBy(cluster, skyhook, original))])
    expect(message).toContain(`kubectl annotate skyhook ${of} skyhook.nvidia.com/ignore-nodewright=true`)
  }
})

test('agents start where a person has said that the record does not count', async () => {
  const recorded = simulatedMoment('01-idle-complete')
  const cluster = worlds['D pruned by v0.19'](recorded)
  const skyhooks = cluster.moment.skyhooks.map((one) => ({
    ...one,
    metadata: { ...one.metadata, annotations: { 'skyhook.nvidia.com/ignore-nodewright': 'true' } },
  }))
  const { steps } = await agentsOn(recorded, { ...cluster, moment: { ...cluster.moment, skyhooks } })
  expect(steps.length).toBeGreaterThan(0)
})

test.each(takenOver.flatMap((name) => ['01-idle-complete', '06-upgrade'].map((moment) => [name, moment] as const)))(
  'in world %s, agents take over %s',
  async (name, moment) => {
    const recorded = simulatedMoment(moment)
    const cluster = worlds[name as keyof typeof worlds](recorded)
    const { world, steps } = await agentsOn(recorded, { ...cluster, moment: { ...cluster.moment, pods: [] } }, 240_000)
    const complete = nodesOf(world).map(({ metadata }) => metadata.annotations?.['skyhook.nvidia.com/status_tuning'])
    expect([complete, steps.length > 0]).toEqual([['complete', 'complete', 'complete'], moment === '06-upgrade'])
  },
)
