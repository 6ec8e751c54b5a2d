/** Nodes that take no new pods while nothing is at work on them: capacity that nobody uses. */
import type { Taint } from '../../schemas/kubernetes.ts'
import type { NodeStatus, Skyhook } from '../../schemas/skyhook.ts'
import { hasRequiredTaint } from '../../stages/drain/node-spec.ts'
import type { NodeRow } from './node-report.ts'

export type Closure = 'taint' | 'cordon' | 'keep-cordoned'

/** By name; `by`: what closes them. */
export type ClosedNodes = { readonly by: Closure; readonly nodes: readonly string[] }

const idleStatuses: ReadonlySet<NodeStatus> = new Set(['waiting', 'paused', 'disabled', 'blocked'])

/** Undefined for a node that is open as far as this Skyhook knows, or at work. `status`: that of the Skyhook. */
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

const texts: Readonly<Record<Closure, string>> = {
  taint: 'by the runtime-required taint',
  cordon: 'by a cordon of the Skyhook',
  'keep-cordoned': 'by node hold',
}

/** Those that a person should know first. */
export function closedNodes(
  nodes: readonly { readonly node: string; readonly closedBy: Closure | undefined }[],
): readonly ClosedNodes[] {
  return (['taint', 'cordon', 'keep-cordoned'] as const).flatMap((by) => {
    const names = nodes.filter(({ closedBy }) => closedBy === by).map(({ node }) => node)
    return names.length === 0 ? [] : [{ by, nodes: names.toSorted((a, b) => (a < b ? -1 : 1)) }]
  })
}

const maxNames = 4

/** In one line; `''` where there are none. */
export function closedText(closed: readonly ClosedNodes[]): string {
  const parts = closed.map(({ by, nodes }) => {
    const more = nodes.length > maxNames ? ` and ${nodes.length - maxNames} more` : ''
    const names = nodes.slice(0, maxNames).join(', ')
    return `${nodes.length} ${nodes.length === 1 ? 'node' : 'nodes'} ${texts[by]} [${names}${more}]`
  })
  return parts.length === 0 ? '' : `closed for new pods, nothing at work: ${parts.join(', ')}`
}
