/** RFC 3339 in UTC with whole seconds, the form of Kubernetes' `metav1.Time`. */
export const formatTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, -'.000Z'.length)}Z`
