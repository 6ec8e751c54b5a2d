/** Our group in the Kubernetes API; also the prefix of every annotation, label, taint and condition that is ours. */
export const apiGroup = 'skyhook.nvidia.com'

/** What tells a Skyhook from other objects. */
export const skyhookTypeMeta = { apiVersion: `${apiGroup}/v1alpha1`, kind: 'Skyhook' } as const

/** The collection of all Skyhooks. */
export const skyhooksPath = `/apis/${skyhookTypeMeta.apiVersion}/skyhooks`
