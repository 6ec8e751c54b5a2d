import { expect, test } from 'vitest'
import { startScene } from '../../../test/kit/fleet/fleet-scene.ts'
import { statusKey } from '../../schemas/annotations.ts'
import { known } from '../../stages/model/snapshot.ts'
import { readFleet } from '../fleet-view/collections.ts'
import { createNodeReader } from '../status/node-report.ts'
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

test('the square of a node at work says since when its agent does not answer', async () => {
  const scene = startScene({ nodes: [{ name: 'host1' }] })
  scene.host('host1').conditions.change({ stepMs: 3_600_000 })
  await scene.until(() => scene.annotation('node1', statusKey('s')) === 'in_progress', 'work')
  scene.host('host1').supervisor.freeze()
  scene.host('host1').supervisor.kill()
  await scene.pass(45_000)
  const { transport, simulation } = scene
  const from = { namespace: 'skyhook', clock: simulation.clock, nodeOf: createNodeReader(), isMetadataEnough: true }
  const fleet = await readFleet(transport, from)
  const moment: FleetMoment = { fleet, completions: [], freshness: { state: 'live' }, contactAtMs: fleet.takenAtMs }
  const silent = {
    reason: 'AgentNotReady',
    message: 'the agent does not answer',
    sinceMs: expect.any(Number) as number,
  }
  expect(pageState(identity, moment, new Map(), 's').rollout?.nodes).toMatchObject({
    value: [{ node: 'node1', status: 'in_progress', ...silent }],
  })
})
