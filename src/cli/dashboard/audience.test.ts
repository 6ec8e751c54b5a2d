import { expect, test } from 'vitest'
import { type FleetScene, startScene } from '../../../test/kit/fleet/fleet-scene.ts'
import { createSeededRandom } from '../../../test/kit/virtual-clock.ts'
import { statusKey } from '../../schemas/annotations.ts'
import { known, unknown } from '../../stages/model/snapshot.ts'
import { createAudience, type EventStream } from './audience.ts'
import { openFleetSource } from './fleet-source.ts'
import type { ClusterIdentity, NodeSquare, PageState, DashboardSource, FleetMoment } from './page-data.ts'

const identity: ClusterIdentity = {
  context: 'prod',
  server: 'https://api.test',
  namespace: 'skyhook',
  user: known('alice'),
  version: '1',
  isLive: true,
}

/** A browser that keeps what it is sent. */
function viewer() {
  const sent: PageState[] = []
  let isBehind = false
  const stream: EventStream<PageState> = {
    send: (state) => void sent.push(JSON.parse(JSON.stringify(state)) as PageState),
    isBehind: () => isBehind,
  }
  const last = (): PageState | undefined => sent.at(-1)
  const nodes = (): readonly NodeSquare[] => {
    const found = last()?.rollout?.nodes
    return found?.known === true ? found.value : []
  }
  return { stream, sent, last, nodes, fallBehind: (value: boolean) => void (isBehind = value) }
}

async function follow(scene: FleetScene, audience = createAudience(identity)) {
  const { clock } = scene.simulation
  const ending = new AbortController()
  const { signal } = ending
  const random = createSeededRandom(1)
  const source: DashboardSource = await openFleetSource({ transport: scene.transport, clock, random, identity, signal })
  const moments: FleetMoment[] = []
  const ended = source
    .follow((moment) => {
      moments.push(moment)
      audience.show(moment)
    }, signal)
    .catch(() => undefined)
  const end = async (): Promise<void> => {
    ending.abort(new Error('over'))
    await ended
  }
  return { source, audience, moments, end }
}

test('a page follows a rollout from its middle to its end, and one that is opened late shows the same', async () => {
  const scene = startScene()
  await scene.pass(9_500)
  const { audience, end } = await follow(scene)
  const early = viewer()
  audience.add(early.stream, undefined)
  const isComplete = (node: string): boolean => scene.annotation(node, statusKey('s')) === 'complete'
  await scene.until(() => ['node1', 'node2'].every(isComplete), 'complete')
  await scene.pass(5_000)
  const late = viewer()
  audience.add(late.stream, 's')
  expect(early.last()).toMatchObject({
    identity,
    skyhooks: known([{ name: 's', selected: 2, complete: 2, troubled: 0, flags: [] }]),
    rollout: { name: 's', status: { nodes: { value: { selected: 2 } } } },
  })
  expect(early.nodes()).toEqual([
    { node: 'node1', status: 'complete' },
    { node: 'node2', status: 'complete' },
  ])
  const holders = early.last()?.rollout?.lanes.flatMap(({ spans }) => spans.map(({ node }) => node))
  expect(holders?.toSorted((a, b) => a.localeCompare(b))).toEqual(['node1', 'node2'])
  expect(late.sent).toEqual([early.last()])
  const before = early.sent.length
  await scene.pass(20_000)
  // ten heartbeats, and the ages
  expect(early.sent.length - before).toBeLessThanOrEqual(12)
  await end()
})

test('a page is sent its state at most twice a second, however often the fleet changes', async () => {
  const scene = startScene({ nodes: [{ name: 'host1' }] })
  await scene.pass(9_500)
  const { moments, end } = await follow(scene)
  await scene.pass(2_000)
  const before = moments.length
  for (let count = 0; count < 60; count++) {
    scene.editSkyhook('s', { metadata: { annotations: { count: String(count) } } })
    await scene.pass(100)
  }
  const times = moments.slice(before).map(({ fleet }) => fleet.takenAtMs)
  expect(times.length).toBeGreaterThan(10)
  expect(Math.min(...times.slice(1).map((ms, index) => ms - (times[index] ?? 0)))).toBeGreaterThanOrEqual(500)
  await end()
})

test('a browser that does not keep up gets the latest data when it has caught up', async () => {
  const scene = startScene({ nodes: [{ name: 'host1' }] })
  await scene.pass(9_500)
  const { audience, end } = await follow(scene)
  const slow = viewer()
  audience.add(slow.stream, 's')
  slow.fallBehind(true)
  const count = slow.sent.length
  await scene.until(() => scene.annotation('node1', statusKey('s')) === 'complete', 'complete')
  await scene.pass(2_000)
  expect(slow.sent.length).toBe(count)
  slow.fallBehind(false)
  await scene.pass(10_000)
  expect(slow.nodes()).toMatchObject([{ node: 'node1', status: 'complete' }])
  await end()
})

test('deleted Nodes and the nodes of deleted Skyhooks leave the page', async () => {
  const scene = startScene()
  await scene.pass(9_500)
  const { moments, end } = await follow(scene)
  await end()
  const audience = createAudience(identity)
  const page = viewer()
  audience.add(page.stream, 's')
  const moment = moments.at(-1)
  if (moment === undefined || !moment.fleet.nodes.known) throw new Error('nothing was read')
  const { fleet } = moment
  const names = (): readonly string[] => page.nodes().map(({ node }) => node)
  audience.show(moment)
  expect(names()).toEqual(['node1', 'node2'])
  audience.show({ ...moment, fleet: { ...fleet, nodes: known(moment.fleet.nodes.value.slice(0, 1)) } })
  expect(names()).toEqual(['node1'])
  audience.show({ ...moment, fleet: { ...fleet, skyhooks: known([]) } })
  expect(page.last()?.rollout).toMatchObject({ name: 's', nodes: known([]) })
  expect(page.last()?.rollout?.status).toBeUndefined()
})

test('what may not be read is unknown on the page, and never empty', async () => {
  const scene = startScene()
  await scene.pass(9_500)
  const { moments, end } = await follow(scene)
  await end()
  const audience = createAudience(identity)
  const page = viewer()
  audience.add(page.stream, 's')
  const moment = moments.at(-1)
  if (moment === undefined) throw new Error('nothing was read')
  const hidden = unknown('you may not read Nodes')
  audience.show({ ...moment, fleet: { ...moment.fleet, nodes: hidden, slots: unknown('you may not read Leases') } })
  expect(page.last()?.skyhooks).toEqual(known([{ name: 's', complete: 0, troubled: 0, flags: [] }]))
  expect(page.last()?.rollout).toMatchObject({
    status: { nodes: hidden, budget: { known: false, why: 'you may not read Leases' } },
    nodes: hidden,
  })
  audience.show({ ...moment, fleet: { ...moment.fleet, skyhooks: unknown('you may not read Skyhooks') } })
  expect(page.last()?.skyhooks).toEqual({ known: false, why: 'you may not read Skyhooks' })
})

test('the data is old as soon as the API server does not answer, and live again with its next answer', async () => {
  const scene = startScene({ nodes: [{ name: 'host1' }] })
  await scene.pass(9_500)
  const { moments, end } = await follow(scene)
  await scene.pass(3_000)
  const { clock, server } = scene.simulation
  expect(moments.at(-1)?.freshness).toEqual({ state: 'live' })
  const goneAtMs = clock.wallMs()
  server.stop()
  await scene.pass(5_000)
  const lost = moments.at(-1)
  expect(lost?.freshness).toMatchObject({ state: 'lost', why: expect.stringContaining('ECONN') })
  expect(lost?.contactAtMs).toBeLessThanOrEqual(goneAtMs)
  server.start()
  await scene.pass(40_000)
  expect(moments.at(-1)?.freshness).toEqual({ state: 'live' })
  expect(clock.wallMs() - (moments.at(-1)?.contactAtMs ?? 0)).toBeLessThan(5_000)
  await end()
})

test('a network that swallows everything is noticed within ten seconds', async () => {
  const scene = startScene({ nodes: [{ name: 'host1' }] })
  await scene.pass(9_500)
  const { moments, end } = await follow(scene)
  await scene.pass(3_000)
  const { transport } = scene as { transport: { cut?: () => void } }
  transport.cut?.()
  await scene.pass(10_000)
  expect(moments.at(-1)?.freshness.state).toBe('lost')
  await end()
})

test('a click on a node explains it with commands for the cluster of the page', async () => {
  const scene = startScene({ nodes: [{ name: 'host1' }] })
  await scene.pass(9_500)
  scene.editSkyhook('s', { metadata: { annotations: { 'skyhook.nvidia.com/pause': 'true' } } })
  const { source, end } = await follow(scene)
  await scene.pass(2_000)
  const { signal } = new AbortController()
  const answer = await source.explain({ skyhook: 's', node: 'node1' }, signal)
  expect(answer.explanation.verdict).toMatchObject({
    cause: 'paused',
    command: 'kubectl skyhook resume s --context prod',
  })
  for (const { command } of answer.actions) expect(command).toMatch(/^kubectl skyhook .* --context prod$/)
  await expect(source.explain({ skyhook: 's', node: 'gone' }, signal)).rejects.toThrow('there is no Node gone')
  await expect(source.explain({ skyhook: 'gone', node: 'node1' }, signal)).rejects.toThrow('there is no Skyhook gone')
  await end()
})
