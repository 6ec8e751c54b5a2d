/** RFC 3339 in UTC with whole seconds, the form of Kubernetes' `metav1.Time`. */
export const formatTime = (ms: number): string => new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z')
