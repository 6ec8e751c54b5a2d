import type { ObjectMeta, Toleration } from '../../schemas/kubernetes.ts'

/** A pod as far as draining looks at it. */
export type Pod = {
  readonly metadata: ObjectMeta & { readonly namespace: string }
  readonly spec?: { readonly nodeName?: string; readonly tolerations?: readonly Toleration[] }
  readonly status?: {
    readonly phase?: string
    /** The Ready condition alone. */
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
  }
}

/** Which pods matter: none, the current ones, or those listed after our cordon became visible. */
export type PodWatch = 'no' | 'any' | 'cordoned'

export type DrainReason = { readonly reason: 'ProtectedPods' | 'DrainBlocked'; readonly message: string }
