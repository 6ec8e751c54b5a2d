/** How the states of nodes are shown, in the order of bars and legends. Color alone never shows a state. Pure. */
import type { NodeStatus } from '../../schemas/skyhook.ts'

const marks: Readonly<Record<NodeStatus, string>> = {
  complete: '#',
  in_progress: '+',
  erroring: '!',
  blocked: 'x',
  unknown: '?',
  waiting: '.',
  paused: '.',
  disabled: '.',
}

export const shownStatuses = Object.keys(marks) as readonly NodeStatus[]

export const statusName = (status: NodeStatus): string => status.replace('_', ' ')

type NodeCounts = { readonly selected: number; readonly byStatus: Readonly<Partial<Record<NodeStatus, number>>> }

/** Of at least one selected node: 100 only if all are complete. */
export const completePercent = ({ selected, byStatus }: NodeCounts): number =>
  Math.floor((100 * (byStatus.complete ?? 0)) / selected)

const barWidth = 30

/** Each state with a node has a place, and complete is full only when all are. */
export function barText({ selected, byStatus }: NodeCounts): string {
  const present = shownStatuses.flatMap((status) => {
    const count = byStatus[status] ?? 0
    return count > 0
      ? [{ mark: marks[status], count, width: Math.max(1, Math.floor((count * barWidth) / selected)) }]
      : []
  })
  const widest = present.toSorted((a, b) => b.width - a.width)[0]
  const missing = barWidth - present.reduce((sum, { width }) => sum + width, 0)
  return present.map((part) => part.mark.repeat(part.width + (part === widest ? missing : 0))).join('')
}
