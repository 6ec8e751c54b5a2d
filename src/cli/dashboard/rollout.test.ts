import { expect, test } from 'vitest'
import { startScene } from '../../../test/kit/fleet/fleet-scene.ts'
import { statusKey } from '../../schemas/annotations.ts'
import { readFleet } from '../fleet-view/read-fleet.ts'
import { createNodeReader } from '../status/node-report.ts'
import { squaresOf } from './rollout.ts'

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
  const silent = {
    reason: 'AgentNotReady',
    message: 'the agent does not answer',
    sinceMs: expect.any(Number) as number,
  }
  expect(squaresOf({ fleet }, 's')).toMatchObject({ value: [{ node: 'node1', status: 'in_progress', ...silent }] })
})
