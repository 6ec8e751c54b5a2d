import { failpoint } from '../../host/fs/failpoint.ts'
import type { KubeTransport } from '../../kube/transport.ts'

/** Passes a failpoint, named by verb and resource, after each acknowledged write except Events. */
export function withFailpoints(transport: KubeTransport): KubeTransport {
  return {
    ...transport,
    async json(method, path, options) {
      const answer = await transport.json(method, path, options)
      const resource = resourceOf(path)
      if (method !== 'GET' && resource !== 'events') failpoint(`api:${method}-${resource}`)
      return answer as never
    },
  }
}

/** `nodes/status` for `/api/v1/nodes/n/status`, `leases` for `/apis/…/namespaces/x/leases/y`. */
function resourceOf(path: string): string {
  const parts = path.split('/').filter((part) => part !== '')
  const start = parts[0] === 'api' ? 2 : 3
  const rest = parts[start] === 'namespaces' && parts.length > start + 2 ? parts.slice(start + 2) : parts.slice(start)
  const [resource = '', , subresource] = rest
  return subresource === undefined ? resource : `${resource}/${subresource}`
}
