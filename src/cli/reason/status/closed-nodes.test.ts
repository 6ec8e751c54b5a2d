import { describe, expect, test } from 'vitest'
import { type FleetScene, type SceneOptions, pod, startScene } from '../../../../test/kit/fleet/fleet-scene.ts'
import { commandContext } from '../../../../test/kit/tool/command-context.ts'
import { disableKey, ignoreLabel, keepCordonedKey, pauseKey, statusKey } from '../../../schemas/annotations.ts'
import type { SkyhookSpec } from '../../../schemas/skyhook.ts'
import { status } from '../../commands/status.ts'
import { closedText } from './status-text.ts'

const hosts = ['host1', 'host2', 'host3']
const asking = { runtimeRequired: true, autoTaintNewNodes: true }
const rebooting: Partial<SkyhookSpec> = {
  packages: { p0a: { version: '1.0.0', image: 'registry.test/p0a', interrupt: { type: 'reboot' } } },
}

/** Nodes long in service: their pods would have to leave. */
function sceneOf(spec: Partial<SkyhookSpec>, options: Partial<SceneOptions> = {}): FleetScene {
  const nodes = hosts.map((name) => ({ name, pods: [pod(`of-${name}`)] }))
  const scene = startScene({ nodes, skyhooks: { s: spec }, ...options })
  for (const name of hosts) scene.host(name).conditions.change({ stepMs: 20_000 })
  return scene
}

const mark = (scene: FleetScene, annotations: object): void => scene.editSkyhook('s', { metadata: { annotations } })

const isAt = (scene: FleetScene, word: string) => (node: string) => scene.annotation(node, statusKey('s')) === word
const nodes = ['node1', 'node2', 'node3']

async function untilWorking(scene: FleetScene): Promise<string> {
  await scene.until(() => nodes.some(isAt(scene, 'in_progress')), 'a node at work')
  await scene.pass(5_000)
  return nodes.find(isAt(scene, 'in_progress')) ?? ''
}

/** The line of `status` that names them. */
async function closedLine({ transport, simulation: { clock } }: FleetScene): Promise<string | undefined> {
  const { context, stdout } = commandContext({ transport, clock })
  await status.run(context, { arguments: { skyhook: undefined }, flags: {} } as never)
  return stdout()
    .split('\n')
    .find((line) => line.includes('closed for new pods') || line.includes('node hold'))
    ?.trim()
}

const closed = 'closed for new pods, nothing at work: '
const byTaint = 'by the runtime-required taint'

describe('status names nodes that take no new pods while nothing is at work on them:', () => {
  test('those in service that autoTaintNewNodes closes before their turn', async () => {
    const scene = sceneOf({ ...asking, ...rebooting })
    const busy = await untilWorking(scene)
    const idle = nodes.filter((node) => node !== busy)
    expect(await closedLine(scene)).toBe(`${closed}2 nodes ${byTaint} [${idle.join(', ')}]`)
  })

  test.each([
    ['paused', { [pauseKey]: 'true' }],
    ['disabled', { [disableKey]: 'true' }],
  ])('those of a Skyhook that is %s', async (_, annotations) => {
    const scene = sceneOf({ ...asking, ...rebooting }, { skyhooks: {} })
    const { admin } = scene.simulation
    await scene.pass(9_000)
    const spec = { nodeSelectors: { matchLabels: { pool: 'a' } }, ...asking, ...rebooting }
    admin.send('POST', '/apis/skyhook.nvidia.com/v1alpha1/skyhooks', { metadata: { name: 's', annotations }, spec })
    await scene.pass(30_000)
    expect(await closedLine(scene)).toBe(`${closed}3 nodes ${byTaint} [node1, node2, node3]`)
  })

  test('an ignored one', async () => {
    const scene = sceneOf({ ...asking, ...rebooting })
    const busy = await untilWorking(scene)
    const [ignored = ''] = nodes.filter((node) => node !== busy)
    scene.editNode(ignored, { metadata: { labels: { [ignoreLabel]: 'true' } } })
    await scene.until(
      () => nodes.filter((node) => node !== ignored).every(isAt(scene, 'complete')),
      'the others are complete',
    )
    await scene.pass(5_000)
    expect(await closedLine(scene)).toBe(`${closed}1 node ${byTaint} [${ignored}]`)
  })

  test('one that a paused Skyhook has cordoned', async () => {
    const scene = sceneOf(rebooting)
    const busy = await untilWorking(scene)
    expect(await closedLine(scene)).toBeUndefined()
    mark(scene, { [pauseKey]: 'true' })
    await scene.pass(30_000)
    expect(await closedLine(scene)).toBe(`${closed}1 node by a cordon of the Skyhook [${busy}]`)
  })

  test('one that a person holds', async () => {
    const scene = sceneOf({})
    await scene.until(() => nodes.every(isAt(scene, 'complete')), 'complete')
    scene.editNode('node2', { metadata: { annotations: { [keepCordonedKey]: 'true' } }, spec: { unschedulable: true } })
    await scene.pass(5_000)
    expect(await closedLine(scene)).toBe('held (node hold): node2')
  })
})

test('a node whose taint was lifted is not closed while it waits for the next version', async () => {
  const scene = sceneOf({ ...asking, ...rebooting })
  await scene.until(() => nodes.every(isAt(scene, 'complete')), 'complete')
  scene.editSkyhook('s', { spec: { packages: { p0a: { version: '2.0.0' } } } })
  await untilWorking(scene)
  expect(await closedLine(scene)).toBeUndefined()
})

test('the spec of Nodes is read only where a Skyhook requires nodes that are not complete', async () => {
  const readsOf = async (scene: FleetScene): Promise<number> => {
    let reads = 0
    const transport: FleetScene['transport'] = {
      ...scene.transport,
      async json<T>(...request: Parameters<FleetScene['transport']['json']>): Promise<T> {
        if (request[1] === '/api/v1/nodes' && request[2]?.accept === undefined) reads++
        return await scene.transport.json<T>(...request)
      },
    }
    await closedLine({ ...scene, transport })
    return reads
  }
  const plain = sceneOf(rebooting)
  await untilWorking(plain)
  expect(await readsOf(plain)).toBe(0)
  const required = sceneOf({ ...asking })
  await untilWorking(required)
  expect(await readsOf(required)).toBe(1)
  await required.until(() => nodes.every(isAt(required, 'complete')), 'complete')
  await required.pass(1_000)
  expect(await readsOf(required)).toBe(0)
})

test('the line names the first four of many nodes, for each way in which they are closed', () => {
  const many = ['n1', 'n2', 'n3', 'n4', 'n5', 'n6']
  const text = closedText([
    { by: 'taint', nodes: many },
    { by: 'cordon', nodes: ['n7'] },
  ])
  expect(text).toBe(`${closed}6 nodes ${byTaint} [n1, n2, n3, n4 and 2 more], 1 node by a cordon of the Skyhook [n7]`)
})
