/** Nodes that take no new pods while nothing is at work on them: unused capacity. */
import type { Taint } from '../../schemas/kubernetes.ts'
import type { NodeStatus, Skyhook } from '../../schemas/skyhook.ts'
import { hasRequiredTaint } from '../../stages/drain/node-spec.ts'
import type { NodeRow } from './node-report.ts'

export type Closure = 'taint' | 'cordon' | 'keep-cordoned'

/** By name; `by`: what closes them. */
export type ClosedNodes = { readonly by: Closure; readonly nodes: readonly string[] }

const idleStatuses: ReadonlySet<NodeStatus> = new Set(['waiting', 'paused', 'disabled', 'blocked'])

/** Undefined for a node that this Skyhook does not close, or that is at work. `status`: that of the Skyhook. */
export function closureOf(
  { reports, cordonedBy, isHeld, taints = [] }: NodeRow,
  { metadata, spec }: Skyhook,
  { status, requiredTaint }: { readonly status: NodeStatus; readonly requiredTaint: Taint },
): Closure | undefined {
  if ([...reports.values()].some((one) => one.status === 'in_progress' || one.status === 'erroring')) return undefined
  const isIdle = idleStatuses.has(status)
  if (isIdle && cordonedBy.includes(metadata.name)) return 'cordon'
  if (isIdle && spec.runtimeRequired === true && hasRequiredTaint({ spec: { taints } }, requiredTaint)) return 'taint'
  return isHeld ? 'keep-cordoned' : undefined
}

/** In order of importance. */
export function closedNodes(
  nodes: readonly { readonly node: string; readonly closedBy: Closure | undefined }[],
): readonly ClosedNodes[] {
  return (['taint', 'cordon', 'keep-cordoned'] as const).flatMap((by) => {
    const names = nodes.filter(({ closedBy }) => closedBy === by).map(({ node }) => node)
    return names.length === 0 ? [] : [{ by, nodes: names.toSorted((a, b) => (a < b ? -1 : 1)) }]
  })
}
