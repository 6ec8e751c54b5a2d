import { expect, test } from 'vitest'
import { settingsOf } from '../objects/sample-settings.ts'
import { createVirtualClock } from '../virtual-clock.ts'
import { startSimulatedAgent } from './agent.ts'
import { createSimulatedHost } from './simulated-host.ts'

test('the signals of a killed agent abort, so that Node frees what they hold', async () => {
  const clock = createVirtualClock()
  const host = createSimulatedHost({
    name: 'n1',
    clock,
    seed: 1,
    registry: () => undefined,
    runStep: () => ({ durationMs: 1 }),
  })
  const stopping = new AbortController()
  const agent = startSimulatedAgent(host, {
    settings: settingsOf('n1', '/'),
    connectApi: () => {
      throw new Error('nobody connects')
    },
    async run(_settings, platform) {
      platform.onTermination((signalName) => stopping.abort(signalName))
      return await new Promise(() => undefined)
    },
  })
  expect(stopping.signal.aborted).toBe(false)
  agent.kill()
  expect(stopping.signal.reason).toBe('SIGKILL')
  expect(await agent.ended).toBe('killed')
})
