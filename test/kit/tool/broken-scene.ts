/** Breaks something around simulated agents, and carries out what explain prints. */
import { expect } from 'vitest'
import { type FleetScene, type SceneOptions, startScene } from '../fleet/fleet-scene.ts'
import { commandLine } from './command-line.ts'
import { fitCluster } from './doctor-facts.ts'
import { reasonKey, statusKey } from '../../../src/schemas/annotations.ts'
import type { PackageSpec } from '../../../src/schemas/skyhook.ts'
import { checkHosts } from '../../../src/cli/doctor/hosts.ts'
import { checkAgents } from '../../../src/cli/doctor/agents.ts'
import type { FindingId } from '../../../src/cli/doctor/finding.ts'
import { readNodeDetail } from '../../../src/cli/fleet-view/node-detail.ts'
import { slimNode } from '../../../src/cli/fleet-view/project.ts'
import { readFleet } from '../../../src/cli/fleet-view/read-fleet.ts'
import { mapped } from '../../../src/cli/fleet-view/readable.ts'
import { explainNode, type NodeExplanation } from '../../../src/cli/explain/explain-node.ts'
import type { Cause, Finding } from '../../../src/cli/explain/finding.ts'

async function look(scene: FleetScene): Promise<{ found: NodeExplanation; doctor: readonly FindingId[] }> {
  const { transport, simulation } = scene
  const fleet = await readFleet(transport, { namespace: 'skyhook', clock: simulation.clock, nodeOf: slimNode })
  const detail = await readNodeDetail(transport, 'node1')
  const skyhook = fleet.skyhooks.known ? fleet.skyhooks.value.find(({ metadata }) => metadata.name === 's') : undefined
  const node = fleet.nodes.known ? fleet.nodes.value.find(({ metadata }) => metadata.name === 'node1') : undefined
  if (skyhook === undefined || node === undefined) throw new Error('neither may be missing')
  const { vitals } = fitCluster
  // nodes that joined a moment ago may be NotReady
  const nodes = mapped(fleet.nodes, (all) =>
    all.map((one) => ({ ...one, metadata: { ...one.metadata, creationTimestamp: '2020-01-01T00:00:00Z' } })),
  )
  const checks = [checkAgents({ fleet, nodes, vitals, suspicions: [] }), checkHosts(fleet, nodes)]
  const doctor = checks.flatMap(({ findings }) => findings.map(({ id }) => id))
  return { found: explainNode(fleet, { skyhook, node, detail }), doctor }
}

/** Runs what is printed: the tool's own commands, and those of kubectl that change an object. */
async function obey(scene: FleetScene, { command }: Finding): Promise<void> {
  const [, own] = /^kubectl skyhook (.*)$/.exec(command) ?? []
  const [, skyhook = '', patch] = /^kubectl patch skyhook (\S+) --type merge -p '(.*)'$/.exec(command) ?? []
  const [, node = '', key = '', value = ''] =
    /^kubectl label node (\S+) ([^= ]+)=(\S+) --overwrite$/.exec(command) ?? []
  if (own !== undefined) {
    const tool = commandLine({ client: scene.transport, clock: scene.simulation.clock })
    expect(await tool.run(`${own} --yes -n skyhook`)).toMatchObject({ code: 0, stderr: '' })
  } else if (patch !== undefined) scene.editSkyhook(skyhook, JSON.parse(patch) as object)
  else if (node !== '') scene.editNode(node, { metadata: { labels: { [key]: value } } })
  else throw new Error(`nobody has taught the test to run ${command}`)
}

export const one = [{ name: 'host1' }]
export const image = 'registry.test/p0a'
export const packageOf = (rest: Partial<PackageSpec> = {}): Record<string, PackageSpec> => ({
  p0a: { version: '1.0.0', image, ...rest },
})
export const rebooting = { packages: packageOf({ interrupt: { type: 'reboot' } }) }
export const nextVersion = { spec: { packages: packageOf({ version: '1.0.1' }) } }
export const secretOf = (name: string): PackageSpec['env'] => [
  { name: 'TOKEN', valueFrom: { secretKeyRef: { name, key: 'a' } } },
]
export const createSecret = (scene: FleetScene, name: string): void =>
  scene.simulation.admin.send('POST', '/api/v1/namespaces/skyhook/secrets', {
    metadata: { name },
    data: { a: 'YQ==' },
  })
export const budgetsPath = '/apis/policy/v1/namespaces/apps/poddisruptionbudgets'
export const strictBudget = (scene: FleetScene): void =>
  scene.simulation.admin.send('POST', budgetsPath, {
    metadata: { name: 'strict' },
    spec: { selector: {}, maxUnavailable: 0 },
  })

/** As the node controller does with a node whose kubelet is silent, and when it is back. */
export function sayReady(scene: FleetScene, status: 'True' | 'Unknown'): void {
  const lastTransitionTime = new Date(scene.simulation.clock.wallMs()).toISOString()
  const message = status === 'True' ? 'kubelet is posting ready status' : 'Kubelet stopped posting node status.'
  const isReady = status === 'True' ? 'True' : 'False'
  scene.simulation.admin.patch('/api/v1/nodes/node1/status', {
    status: { conditions: [{ type: 'Ready', status, message, lastTransitionTime }] },
  })
  scene.simulation.admin.patch('/api/v1/namespaces/skyhook/pods/agent-of-node1/status', {
    status: { conditions: [{ type: 'Ready', status: isReady, lastTransitionTime }] },
  })
  const taints = status === 'True' ? [] : [{ key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' }]
  scene.editNode('node1', { spec: { taints } })
}

/** Of an image on host1, until the returned function is called. */
export const failFetch = (
  scene: FleetScene,
  code: 'not-found' | 'unreachable' | 'unauthorized' | 'bad-image',
): (() => void) => scene.host('host1').conditions.change({ fetch: { durationMs: 100, code } })
export const failStep = (scene: FleetScene, failing: string): (() => void) =>
  scene.host('host1').conditions.change({ isFailing: ({ mode }) => mode === failing })

/** What is broken around node1, what has to be said of it, and what carrying out the remedy changes. */
export type BrokenScene = SceneOptions & {
  readonly title: string
  /** Breaks it; returns what of the world outside of the cluster changes when its remedy is carried out. */
  readonly broken?: (scene: FleetScene) => (() => void) | void
  /** What node1 has to publish; absent: `reach` waits. */
  readonly reason?: string
  readonly reach?: (scene: FleetScene) => Promise<void>
  readonly cause: Cause
  /** `Kind/name` of each finding, the first of each. */
  readonly objects: readonly string[]
  readonly also?: readonly Cause[]
  readonly says?: readonly string[]
  readonly never?: readonly string[]
  readonly doctor?: readonly FindingId[]
  /** The words of the remedy that are carried out; `command`: the command is. */
  readonly remedy: string
  readonly mend?: (scene: FleetScene) => void
}

export function annotateAtOnce(scene: FleetScene, key: string): void {
  scene.simulation.server.observe({
    committed({ type, resource, version: { object } }) {
      if (type === 'ADDED' && resource.plural === 'skyhooks')
        scene.editSkyhook(object.metadata.name, { metadata: { annotations: { [key]: 'true' } } })
    },
  })
}

/** Nothing is wrong with a node that is next in line, waits for the other one, or fetches its packages. */
const isHealthy: ReadonlySet<Cause> = new Set(['next-in-line', 'preparing', 'budget-full'])

/**
 * Explain and doctor say what they have to; then the remedy is carried out as it is printed, and node1 completes.
 * Returns what explain says of it then.
 */
export async function stateAfterRemedy(situation: BrokenScene): Promise<NodeExplanation['state']> {
  const { broken, reason, reach, cause, objects, also = [], says = [], never = [], doctor = [] } = situation
  const scene = startScene(situation)
  const heal = broken?.(scene)
  await reach?.(scene)
  if (reason !== undefined)
    await scene.until(() => scene.annotation('node1', reasonKey('s'))?.includes(`"${reason}"`) === true, reason)
  await scene.pass(4_000) // Events follow later than reasons

  const { found, doctor: ids } = await look(scene)
  const { verdict } = found
  const blamed = found.gates.flatMap(({ findings }) => findings).filter((one) => !isHealthy.has(one.cause))
  expect(blamed.map((one) => one.cause)).toEqual([cause, ...also])
  expect(blamed.map(({ objects: [first] }) => `${first?.kind}/${first?.name}`).slice(0, objects.length)).toEqual(
    objects,
  )
  expect(verdict?.cause).toBe(cause)
  const text = [verdict?.message, verdict?.unblock, verdict?.command].join('\n')
  for (const part of says) expect(text).toContain(part)
  for (const part of never) expect(text).not.toContain(part)
  expect(ids).toEqual(doctor)

  if (situation.remedy !== 'command') expect(`${verdict?.message} ${verdict?.unblock}`).toContain(situation.remedy)
  else if (verdict) await obey(scene, verdict)
  heal?.()
  situation.mend?.(scene)
  await scene.until(() => scene.annotation('node1', statusKey('s')) === 'complete', 'node1 completes')
  return (await look(scene)).found.state
}
