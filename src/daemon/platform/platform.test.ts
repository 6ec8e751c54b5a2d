import { expect, test } from 'vitest'
import { onFailpoint } from '../../../test/kit/on-failpoint.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { withFailpoints } from './platform.ts'

test('an acknowledged write passes a failpoint named by verb and resource', async () => {
  const names: string[] = []
  const stopListening = onFailpoint((name) => void names.push(name))
  const fakeTransport: KubeTransport = {
    json: async () => ({}) as never,
    stream: () => Promise.reject(new Error('none')),
    close: () => undefined,
  }
  const transport = withFailpoints(fakeTransport)
  await transport.json('PATCH', '/api/v1/nodes/n/status')
  await transport.json('POST', '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases')
  await transport.json('DELETE', '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases/x')
  await transport.json('POST', '/api/v1/namespaces/shop/pods/cart/eviction')
  await transport.json('POST', '/api/v1/namespaces/default/events')
  await transport.json('GET', '/api/v1/nodes')
  stopListening()
  expect(names).toEqual(['api:PATCH-nodes/status', 'api:POST-leases', 'api:DELETE-leases', 'api:POST-pods/eviction'])
})
