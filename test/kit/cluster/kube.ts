/** The API server of a sandbox as its administrator sees it. */
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { systemClock } from '../../../src/daemon/platform/system-clock.ts'
import { staticCredentials } from '../tool/static-credentials.ts'
import { isNotFound } from '../../../src/kube/errors.ts'
import { createKubeTransport, type Method, type KubeTransport } from '../../../src/kube/transport.ts'

type KubeConfig = {
  readonly clusters: readonly [
    { readonly cluster: { readonly server: string; readonly 'certificate-authority-data': string } },
  ]
  readonly users: readonly [
    { readonly user: { readonly 'client-certificate-data': string; readonly 'client-key-data': string } },
  ]
}

export const paths = {
  nodes: '/api/v1/nodes',
  leases: '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases',
  skyhooks: '/apis/skyhook.nvidia.com/v1alpha1/skyhooks',
  pods: '/api/v1/pods',
  events: '/api/v1/namespaces/default/events',
} as const

export function adminTransport(kubeconfig: string): KubeTransport {
  const { server, ca, user } = read(kubeconfig)
  const credentials = staticCredentials({
    server,
    ca,
    cert: decoded(user['client-certificate-data']),
    key: decoded(user['client-key-data']),
  })
  return createKubeTransport({ credentials, version: 'e2e', clock: systemClock, rate: false })
}

/** Sends a merge patch and returns the new object. */
export async function patch<T>(api: KubeTransport, path: string, body: unknown): Promise<T> {
  return await api.json<T>('PATCH', path, { body, contentType: 'application/merge-patch+json' })
}

/** The answer, or undefined if the object does not exist. */
export async function ignoreNotFound<T>(api: KubeTransport, method: Method, path: string): Promise<T | undefined> {
  try {
    return await api.json<T>(method, path)
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

function read(kubeconfig: string) {
  const { clusters, users } = parse(readFileSync(kubeconfig, 'utf8')) as KubeConfig
  const { cluster } = clusters[0]
  return { server: cluster.server, ca: decoded(cluster['certificate-authority-data']), user: users[0].user }
}

const decoded = (text: string): string => Buffer.from(text, 'base64').toString('utf8')
