import { collectBundle } from '../../../src/cli/bundle/collect.ts'
import type { Bundle } from '../../../src/cli/bundle/archive.ts'
import { skyhooksPath } from '../../../src/schemas/api.ts'
import { sampleServer } from '../api-server/sample-server.ts'
import { createVirtualClock } from '../virtual-clock.ts'

/** What `bundle` collects of a cluster with a Skyhook and a node, at noon of 1 March 2026. */
export async function sampleBundle(): Promise<Bundle> {
  const { admin } = sampleServer()
  const spec = { nodeSelectors: {}, packages: { tuned: { version: '1.0.0', image: 'registry.test/tuned' } } }
  await admin.json('POST', skyhooksPath, { body: { metadata: { name: 'tuning' }, spec } })
  await admin.json('POST', '/api/v1/nodes', { body: { metadata: { name: 'n1' } } })
  const { signal } = new AbortController()
  const clock = createVirtualClock(Date.parse('2026-03-01T12:00:00Z'))
  return await collectBundle(admin, { namespace: 'skyhook', clock, signal, nodes: [], documents: new Map() })
}
