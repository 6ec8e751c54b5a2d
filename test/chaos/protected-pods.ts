/** The pods of the cluster under chaos that nobody may interrupt. */
export const namespace = 'shop'
/** Pods with this label are never interrupted. */
export const protectedLabels = { app: 'protected' } as const
