import { expect, test } from 'vitest'
import { createNode, merge, sampleServer } from '../../../../test/kit/api-server/sample-server.ts'
import { createSeededRandom } from '../../../../test/kit/virtual-clock.ts'
import { readFleet } from '../../fleet/fleet-view/collections.ts'
import { agentStates } from './node-facts.ts'
import { createNodeReader } from './node-report.ts'
import { watchFleet } from './watch-fleet.ts'

const podsPath = '/api/v1/namespaces/skyhook/pods'
const minuteMs = 60_000

/** A watched screen of an old node whose agent is Ready, and what each draw says about the agent. */
async function watching() {
  const { clock, admin, connect } = sampleServer()
  await createNode(admin, 'n1')
  await admin.json('POST', '/api/v1/namespaces', { body: { metadata: { name: 'skyhook' } } })
  const createAgent = async (name: string): Promise<void> => {
    const labels = { 'app.kubernetes.io/name': 'skyhookd' }
    const spec = { nodeName: 'n1', containers: [{ name: 'agent', image: 'agent' }] }
    await admin.json('POST', podsPath, { body: { metadata: { name, namespace: 'skyhook', labels }, spec } })
    const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: new Date(clock.wallMs()).toISOString() }]
    const body = { status: { phase: 'Running', conditions } }
    await admin.json('PATCH', `${podsPath}/${name}/status`, { body, contentType: merge })
  }
  await createAgent('old')
  await clock.advance(60 * minuteMs)
  const transport = connect({ name: 'person' })
  const first = await readFleet(transport, { namespace: 'skyhook', clock, nodeOf: createNodeReader() })
  const states: string[] = []
  const ending = new AbortController()
  const ended = watchFleet({
    transport,
    clock,
    random: createSeededRandom(1),
    signal: ending.signal,
    first,
    draw: (fleet) => {
      const [node] = fleet.nodes.known ? fleet.nodes.value : []
      if (node !== undefined) states.push(agentStates(fleet)(node))
    },
  })
  await clock.advance(20_000)
  return {
    clock,
    createAgent,
    /** The different states since the last call. */
    seen: (): readonly string[] => [...new Set(states.splice(0))],
    removeAgent: async (name: string) =>
      await admin.json('DELETE', `${podsPath}/${name}`, { body: { gracePeriodSeconds: 0 } }),
    end: async (): Promise<void> => {
      ending.abort()
      await ended.catch(() => undefined)
    },
  }
}

test('an agent whose pod is gone is not silent on a watched screen before ten minutes have passed', async () => {
  const { clock, seen, removeAgent, end } = await watching()
  expect(seen()).toEqual(['ready'])
  await removeAgent('old')
  await clock.advance(9 * minuteMs)
  expect(seen()).toEqual(['unready'])
  await clock.advance(2 * minuteMs)
  expect(seen()).toEqual(['unready', 'silent'])
  await end()
})

test('an agent that is replaced is never silent on a watched screen', async () => {
  const { clock, seen, removeAgent, createAgent, end } = await watching()
  seen()
  await removeAgent('old')
  await clock.advance(5_000)
  await createAgent('new')
  await clock.advance(5_000)
  expect(seen()).toEqual(['unready', 'ready'])
  await end()
})
