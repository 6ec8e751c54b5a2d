import type { KubernetesNode } from '../../schemas/kubernetes.ts'

/** Nodes that only run etcd belong to the control plane, too: they share its quorum. */
const controlPlaneLabels = ['control-plane', 'master', 'etcd'].map((role) => `node-role.kubernetes.io/${role}`)

export const isControlPlaneNode = ({ metadata }: KubernetesNode): boolean =>
  controlPlaneLabels.some((label) => Object.hasOwn(metadata.labels ?? {}, label))
