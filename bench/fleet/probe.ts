import type { KubeTransport } from '../../src/kube/transport.ts'
import { medianOf } from '../memory.ts'

const writes = 200

/**
 * How fast this API server is just now: the median time, in ms, of small writes of one Node, one after another. Times
 * of different runs and machines are compared by it.
 */
export async function probeServer(admin: KubeTransport): Promise<number> {
  const path = '/api/v1/nodes/probe'
  await admin.json('POST', '/api/v1/nodes', { body: { metadata: { name: 'probe' } } })
  const times: number[] = []
  for (let at = 0; at < writes; at++) {
    const startedMs = performance.now()
    await admin.json('PATCH', path, {
      body: { metadata: { annotations: { 'example.com/probe': String(at) } } },
      contentType: 'application/merge-patch+json',
    })
    times.push(performance.now() - startedMs)
  }
  await admin.json('DELETE', path)
  return medianOf(times)
}
