/** A Node as the kubelet and the node controller leave it, and the pod of its agent, which is Ready. */
import type { KubeTransport } from '../../src/kube/transport.ts'
import { formatTime } from '../../src/schemas/time.ts'

export type NodeRegistration = {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly bootID: string
  /** That of the agents. */
  readonly namespace: string
  readonly wallMs: number
}

const mergePatch = 'application/merge-patch+json'

export const podOf = (node: string): string => `agent-of-${node}`

/** Small: no list of images. */
export async function registerNode(admin: KubeTransport, registration: NodeRegistration): Promise<void> {
  const { name, labels, bootID, namespace, wallMs } = registration
  const at = formatTime(wallMs)
  const ready = { type: 'Ready', status: 'True', lastTransitionTime: at }
  const condition = { ...ready, reason: 'Simulated', lastHeartbeatTime: at }
  await admin.json('POST', '/api/v1/nodes', { body: { metadata: { name, labels } } })
  await admin.json('PATCH', `/api/v1/nodes/${name}/status`, {
    body: { status: { nodeInfo: { bootID }, conditions: [condition] } },
    contentType: 'application/strategic-merge-patch+json',
  })
  // admission taints every new Node as not ready; the node controller takes that off
  const untainted = { body: { spec: { taints: null } }, contentType: mergePatch } as const
  await admin.json('PATCH', `/api/v1/nodes/${name}`, untainted)
  const pods = `/api/v1/namespaces/${namespace}/pods`
  // a pod of a DaemonSet is not drained
  const ownerReferences = [
    { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'skyhookd', uid: 'bench', controller: true },
  ]
  const metadata = { name: podOf(name), labels: { 'app.kubernetes.io/name': 'skyhookd' }, ownerReferences }
  const spec = { nodeName: name, serviceAccountName: 'skyhookd', containers: [{ name: 'agent', image: 'none' }] }
  await admin.json('POST', pods, { body: { metadata, spec } })
  await admin.json('PATCH', `${pods}/${podOf(name)}/status`, {
    body: { status: { phase: 'Running', conditions: [ready] } },
    contentType: mergePatch,
  })
}
