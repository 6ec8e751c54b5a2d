/** Workloads on the nodes. */
import type { KubeTransport } from '../../src/kube/transport.ts'
import type { NodeName } from '../kit/cluster/cluster.ts'
import { ignoreNotFound } from '../kit/cluster/kube.ts'
import type { View } from '../kit/cluster/moments.ts'

const pods = '/api/v1/namespaces/default/pods'

/** A pod that runs on this node, cordoned or not, until it is deleted. */
export async function startPod(
  api: KubeTransport,
  name: string,
  node: NodeName,
  labels: Readonly<Record<string, string>> = {},
): Promise<void> {
  const containers = [{ name: 'workload', image: 'sandbox.local/workload:1', imagePullPolicy: 'Never' }]
  const spec = { nodeName: node, terminationGracePeriodSeconds: 1, containers }
  await api.json('POST', pods, { body: { apiVersion: 'v1', kind: 'Pod', metadata: { name, labels }, spec } })
}

export async function deletePod(api: KubeTransport, name: string): Promise<void> {
  await ignoreNotFound(api, 'DELETE', `${pods}/${name}`)
}

const podOf = (view: View, name: string) => view.pods.get(`default/${name}`)
export const isRunning = (view: View, name: string): boolean => podOf(view, name)?.status?.phase === 'Running'
/** Exists and is not terminating. */
export const isUntouched = (view: View, name: string): boolean => {
  const pod = podOf(view, name)
  return pod !== undefined && pod.metadata.deletionTimestamp === undefined
}
export const isThere = (view: View, name: string): boolean => podOf(view, name) !== undefined
