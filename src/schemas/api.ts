/** Our group in the Kubernetes API; also the prefix of every annotation, label, taint and condition that is ours. */
export const apiGroup = 'skyhook.nvidia.com'

/** Identifies a Skyhook among other objects. */
export const skyhookTypeMeta = { apiVersion: `${apiGroup}/v1alpha1`, kind: 'Skyhook' } as const

/** Identifies a Lease among other objects. */
export const leaseTypeMeta = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' } as const

/** The collection of all DeploymentPolicies. */
export const policiesPath = `/apis/${skyhookTypeMeta.apiVersion}/deploymentpolicies`

/** The collection of all Skyhooks. */
export const skyhooksPath = `/apis/${skyhookTypeMeta.apiVersion}/skyhooks`

/** The label that the chart gives to the agents' DaemonSet, its pods and its settings; it is not a setting. */
export const agentSelector = 'app.kubernetes.io/name=skyhookd'
