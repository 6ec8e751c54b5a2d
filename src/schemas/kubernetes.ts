/**
 * The few Kubernetes types that the agent reads, as plain JSON. Objects keep their other fields: these types are used
 * to read an object, never to rebuild it.
 */
export type ObjectMeta = {
  readonly name: string
  readonly generateName?: string
  readonly uid: string
  readonly resourceVersion: string
  readonly generation?: number
  readonly namespace?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly finalizers?: readonly string[]
  readonly ownerReferences?: readonly OwnerReference[]
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
}

export type OwnerReference = {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
}

export type LabelSelector = {
  readonly matchLabels?: Readonly<Record<string, string>>
  readonly matchExpressions?: readonly LabelSelectorRequirement[]
}

export type LabelSelectorRequirement = {
  readonly key: string
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
  readonly values?: readonly string[]
}

export type Taint = {
  readonly key: string
  readonly value?: string
  readonly effect: string
  readonly timeAdded?: string
}

export type Toleration = {
  readonly key?: string
  readonly operator?: '' | 'Exists' | 'Equal'
  readonly value?: string
  readonly effect?: string
  readonly tolerationSeconds?: number
}

export type NodeCondition = {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason?: string
  readonly message?: string
  readonly lastHeartbeatTime?: string
  readonly lastTransitionTime?: string
}

export type KubernetesNode = {
  readonly metadata: ObjectMeta
  readonly spec?: { readonly unschedulable?: boolean; readonly taints?: readonly Taint[] }
  readonly status?: {
    readonly conditions?: readonly NodeCondition[]
    readonly nodeInfo?: { readonly bootID?: string }
    readonly addresses?: readonly { readonly type: string; readonly address: string }[]
  }
}

/** A change of a Node; null removes a key, absent keys stay. A request never carries both conditions and spec. */
export type NodePatch = {
  readonly annotations: Readonly<Record<string, string | null>>
  readonly labels: Readonly<Record<string, string | null>>
  /** Set by type. */
  readonly conditions: readonly NodeCondition[]
  /** Types to remove. */
  readonly removedConditions: readonly string[]
  readonly unschedulable?: boolean
  /** The complete new list: the API replaces taints as a whole. */
  readonly taints?: readonly Taint[]
}
