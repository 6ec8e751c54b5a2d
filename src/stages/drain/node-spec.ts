import { cordonedBeforeKey, cordonKey, hostKey, keepOffBeforeKey } from '../../schemas/annotations.ts'
import { apiGroup } from '../../schemas/api.ts'
import type { HeldCordon } from '../../schemas/journal.ts'
import type { KubernetesNode, ObjectMeta, Taint } from '../../schemas/kubernetes.ts'
import { nodeWrightGroup } from '../../schemas/nodewright.ts'
import { perObject } from '../../schemas/per-object.ts'
import { selects } from '../../schemas/selectors.ts'
import type { SkyhookSpec } from '../../schemas/skyhook.ts'

/** Cluster autoscalers that would remove a node during our work. */
const autoscalerKeys = ['cluster-autoscaler.kubernetes.io/scale-down-disabled', 'karpenter.sh/do-not-disrupt'] as const

type Annotations = Record<string, string | null>

/** The cordon state after a change, and the change as annotations of the Node. */
export function withCordonChange(
  state: CordonState,
  change: CordonChange | undefined,
): { readonly state: CordonState; readonly annotations: Annotations } {
  if (!change) return { state, annotations: {} }
  const marks = new Set(state.marks)
  const annotations: Annotations = {}
  if (change.addMark !== undefined) {
    marks.add(change.addMark)
    annotations[cordonKey(change.addMark)] = 'true'
  }
  if (change.removeMark !== undefined) {
    marks.delete(change.removeMark)
    annotations[cordonKey(change.removeMark)] = null
  }
  if (change.before !== undefined)
    annotations[cordonedBeforeKey] = change.before === null ? null : String(change.before)
  const before = change.before === undefined ? state.before : (change.before ?? undefined)
  return { state: { ...state, marks, before, unschedulable: change.unschedulable ?? state.unschedulable }, annotations }
}

/** Keeps autoscalers off while any mark exists, and then restores their annotations. */
export function autoscalerAnnotations(node: KubernetesNode, hadMarks: boolean, hasMarks: boolean): Annotations {
  const currentAnnotations = node.metadata.annotations ?? {}
  const saved = savedAnnotations(node)
  if (hasMarks && saved === undefined) {
    const before = Object.fromEntries(autoscalerKeys.map((key) => [key, currentAnnotations[key] ?? null]))
    return {
      ...Object.fromEntries(autoscalerKeys.map((key) => [key, 'true'])),
      [keepOffBeforeKey]: JSON.stringify(before),
    }
  }
  if (!hasMarks && hadMarks && saved !== undefined) {
    return { ...Object.fromEntries(autoscalerKeys.map((key) => [key, saved[key] ?? null])), [keepOffBeforeKey]: null }
  }
  return {}
}

const savedAnnotations = perObject((node: KubernetesNode): Readonly<Annotations> | undefined => {
  const text = node.metadata.annotations?.[keepOffBeforeKey]
  try {
    const value: unknown = text === undefined ? undefined : JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Annotations) : undefined
  } catch {
    return {} // malformed: the state before is lost, so the annotations go
  }
})

/** The taints that the Skyhook operator and NodeWright put on nodes by default; their values may name another one. */
const knownRequiredTaints: readonly Taint[] = [apiGroup, nodeWrightGroup].map((key) => ({
  key,
  value: 'runtime-required',
  effect: 'NoSchedule',
}))

/**
 * The taints that count as runtime-required: `configured`, which agents put on nodes, and the taints of the operators.
 */
export const requiredTaints = (configured: Taint): readonly Taint[] => [
  configured,
  ...knownRequiredTaints.filter((known) => !isSameTaint(known, configured)),
]

export type RequiredSkyhook = { readonly complete: boolean; readonly autoTaint: boolean }

/** Only the taints still keep the node out of service. */
export const isRequirementOver = (required: readonly RequiredSkyhook[], wasRequired: boolean): boolean =>
  (required.length > 0 || wasRequired) && required.every(({ complete }) => complete)

/**
 * The runtime-required taints: all are lifted when every required Skyhook that selects the node is complete on it, or
 * the last one is gone (`wasRequired`); `configured` is put on a node without any of them that we have never seen,
 * where a Skyhook requests it. They stay where that is not certain (`mayLift`), and where no Skyhook has required them
 * yet: the first one may still come. Undefined = leave the taints as they are.
 */
export function requiredTaint(
  node: KubernetesNode,
  configured: Taint,
  required: readonly RequiredSkyhook[],
  { wasRequired, mayLift }: { readonly wasRequired: boolean; readonly mayLift: boolean },
): { readonly taints: readonly Taint[]; readonly annotations: Annotations } | undefined {
  const taints = node.spec?.taints ?? []
  const present = hasRequiredTaint(node, configured)
  if (present && isRequirementOver(required, wasRequired) && mayLift)
    return { taints: taints.filter((one) => !isRequiredTaint(one, configured)), annotations: {} }
  const isUnmanaged = !Object.keys(node.metadata.annotations ?? {}).some(
    (key) => key.startsWith(`${apiGroup}/`) && key !== hostKey, // which exists before any Skyhook is known
  )
  if (!present && isUnmanaged && required.some(({ complete, autoTaint }) => autoTaint && !complete)) {
    return { taints: [...taints, configured], annotations: { [`${autoTaintPrefix}${configured.key}`]: 'true' } }
  }
  return undefined
}

/** Marks a Node that got the taint by `autoTaintNewNodes`. */
const autoTaintPrefix = `${apiGroup}/autoTaint_`

/** Of a Skyhook that selects the node: it closes nodes that no Skyhook has worked on. */
export const putsTaints = ({ spec }: { readonly spec: SkyhookSpec }): boolean =>
  spec.runtimeRequired === true && spec.autoTaintNewNodes === true

/**
 * The annotations of `autoTaintNewNodes` to remove from the Node when no Skyhook of the cluster has it any longer, so
 * that the next one treats all nodes alike. `taints`: those that the Node will have.
 */
export function autoTaintRemoval(
  { metadata }: KubernetesNode,
  taints: readonly Taint[],
  configured: Taint,
  skyhooks: readonly { readonly spec: SkyhookSpec }[],
): Annotations {
  const keys = Object.keys(metadata.annotations ?? {}).filter((key) => key.startsWith(autoTaintPrefix))
  const isLifted = !taints.some((one) => isRequiredTaint(one, configured))
  return keys.length > 0 && isLifted && !skyhooks.some(putsTaints)
    ? Object.fromEntries(keys.map((key) => [key, null]))
    : {}
}

/** Whether the Node has the runtime-required taint, by any of its names. */
export const hasRequiredTaint = (node: Pick<KubernetesNode, 'spec'>, configured: Taint): boolean =>
  (node.spec?.taints ?? []).some((one) => isRequiredTaint(one, configured))

/**
 * The taints that no Skyhook lifts: the Node has them, and no Skyhook with `runtimeRequired` selects the node.
 * `others`: such Skyhooks that select other nodes, by name. Undefined if there are no such taints.
 */
export function unliftedTaint(
  { metadata, spec }: KubernetesNode,
  configured: Taint,
  skyhooks: readonly { readonly metadata: ObjectMeta; readonly spec: SkyhookSpec }[],
): { readonly taints: readonly Taint[]; readonly text: string; readonly others: readonly string[] } | undefined {
  const taints = (spec?.taints ?? []).filter((one) => isRequiredTaint(one, configured))
  if (taints.length === 0) return undefined
  const required = skyhooks.filter((one) => one.spec.runtimeRequired === true)
  if (required.some((one) => selects(one.spec.nodeSelectors, metadata.labels ?? {}))) return undefined
  const text = taints.map(taintText).join(' and ')
  return { taints, text, others: required.map((one) => one.metadata.name).toSorted() }
}

/** As kubectl writes it. */
export const taintText = ({ key, value, effect }: Taint): string => `${key}${value ? `=${value}` : ''}:${effect}`

const isRequiredTaint = (taint: Taint, configured: Taint): boolean =>
  requiredTaints(configured).some((one) => isSameTaint(one, taint))

const isSameTaint = (one: Taint, other: Taint): boolean => one.key === other.key && one.effect === other.effect

/** Kubernetes sets and lifts it by the state of the node; people cannot change that. */
export const isKubernetesTaint = ({ key }: Taint): boolean =>
  (key.startsWith('node.kubernetes.io/') && key !== 'node.kubernetes.io/out-of-service') ||
  key === 'node.cloudprovider.kubernetes.io/uninitialized'

/** The node controller sets and lifts it by whether the Node is Ready. */
export const isNotReadyTaint = ({ key }: Taint): boolean =>
  key === 'node.kubernetes.io/not-ready' || key === 'node.kubernetes.io/unreachable'

/**
 * Who a cordon belongs to. Administrators cordon nodes too, before and during our work; a node must end in the state
 * that they set last. Invariant, searched in test/model/cordon.test.ts: when no mark of ours is left, the node is
 * unschedulable exactly when an administrator wants it so (or asked us to keep it).
 *
 * The Node records one mark per Skyhook, and `before`: whether the node was cordoned without us. The journal has a copy
 * of both, for a Node that loses them while the work lasts.
 */
export type CordonState = {
  readonly unschedulable: boolean
  /** Skyhooks whose mark the Node carries. */
  readonly marks: ReadonlySet<string>
  /** `cordoned-before` of the Node; undefined when absent. */
  readonly before: boolean | undefined
  /**
   * `keep-cordoned`: a person wants the node to stay cordoned, regardless of what was before. A plain cordon of a node
   * that we cordoned writes nothing.
   */
  readonly keep: boolean
}

/**
 * The Node's new fields; absent ones stay. All of them go into one PATCH with the resourceVersion of the state that was
 * read.
 */
export type CordonChange = {
  readonly unschedulable?: boolean
  readonly addMark?: string
  readonly removeMark?: string
  /** null removes it. */
  readonly before?: boolean | null
}

/**
 * The journal's `before` for a Node that lost it. Undefined where the Node itself shows whether it would be cordoned
 * without us: another Node of this name, one that lost its cordon too, one that someone cordoned since.
 */
export function recalledBefore(
  { unschedulable }: CordonState,
  held: HeldCordon | undefined,
  { isSameNode, lastSeen }: { readonly isSameNode: boolean; readonly lastSeen: boolean | undefined },
): boolean | undefined {
  return isSameNode && unschedulable && lastSeen !== false ? held?.before : undefined
}

/**
 * The change that cordons the node under the mark of this Skyhook; undefined when it is already cordoned so. Also
 * restores the cordon after someone uncordoned during our work: a node found schedulable stays schedulable afterwards.
 */
export function cordonFor(skyhook: string, { unschedulable, marks, before }: CordonState): CordonChange | undefined {
  const isMarked = marks.has(skyhook)
  if (unschedulable && isMarked) return undefined
  // A mark without `before` is the operator's, which cordons only schedulable nodes.
  const wasCordoned = before ?? (marks.size > 0 ? false : undefined)
  const next = unschedulable ? (wasCordoned ?? true) : false
  return {
    ...(!unschedulable && { unschedulable: true }),
    ...(!isMarked && { addMark: skyhook }),
    ...(before !== next && { before: next }),
  }
}

/**
 * The change that gives the cordon back. The node becomes schedulable only with the last mark, and only if no one else
 * wants it cordoned.
 */
export function uncordonFor(
  skyhook: string,
  { unschedulable, marks, before, keep }: CordonState,
): CordonChange | undefined {
  if (!marks.has(skyhook)) return undefined
  const isLast = marks.size === 1
  if (!isLast) return { removeMark: skyhook }
  const isKept = keep || before === true
  return { removeMark: skyhook, before: null, ...(unschedulable && !isKept && { unschedulable: false }) }
}

/**
 * A change of `unschedulable` by someone else, seen while marks exist: if someone cordons a node that we work on, we
 * assume they want it cordoned afterwards; if they uncordon it, they do not. `lastSeen` is what we saw or wrote last.
 */
export function cordonAfterExternalChange(
  lastSeen: boolean,
  { unschedulable, marks, before }: CordonState,
): CordonChange | undefined {
  if (marks.size === 0 || lastSeen === unschedulable || before === unschedulable) return undefined
  return { before: unschedulable }
}
