import { expect, test } from 'vitest'
import { type FleetScene, startScene } from '../../../test/kit/fleet/fleet-scene.ts'
import { statusKey } from '../../schemas/annotations.ts'
import { known } from '../../stages/model/snapshot.ts'
import { readFleet } from '../fleet/fleet-view/collections.ts'
import { createNodeReader } from '../reason/status/node-report.ts'
import type { ClusterIdentity, FleetMoment } from './page-data.ts'
import { pageState } from './audience.ts'

const identity: ClusterIdentity = {
  context: 'prod',
  server: 'https://api.test',
  namespace: 'skyhook',
  user: known('alice'),
  version: '1',
  isLive: true,
}

async function momentOf({ transport, simulation: { clock } }: FleetScene): Promise<FleetMoment> {
  const from = { namespace: 'skyhook', clock, nodeOf: createNodeReader(), isMetadataEnough: true }
  const fleet = await readFleet(transport, from)
  return { fleet, completions: [], freshness: { state: 'live' }, contactAtMs: fleet.takenAtMs }
}

test('the square of a node has the zone of its label', async () => {
  const scene = startScene()
  await scene.until(() => scene.annotation('node2', statusKey('s')) !== undefined, 'agents')
  scene.editNode('node1', { metadata: { labels: { 'topology.kubernetes.io/zone': 'eu-west-1a' } } })
  expect(pageState(identity, await momentOf(scene), new Map(), 's').rollout?.nodes).toMatchObject({
    value: [
      { node: 'node1', zone: 'eu-west-1a' },
      { node: 'node2', status: expect.any(String) as string },
    ],
  })
})

test('the square of a node at work at work says since when its agent does not answer', async () => {
  const scene = startScene({ nodes: [{ name: 'host1' }] })
  scene.host('host1').conditions.change({ stepMs: 3_600_000 })
  await scene.until(() => scene.annotation('node1', statusKey('s')) === 'in_progress', 'work')
  scene.host('host1').supervisor.freeze()
  scene.host('host1').supervisor.kill()
  await scene.pass(45_000)
  const moment = await momentOf(scene)
  const silent = {
    reason: 'AgentNotReady',
    message: 'the agent does not answer',
    sinceMs: expect.any(Number) as number,
  }
  expect(pageState(identity, moment, new Map(), 's').rollout?.nodes).toMatchObject({
    value: [{ node: 'node1', status: 'in_progress', ...silent }],
  })
})
