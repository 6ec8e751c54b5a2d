import type { Evidence } from './evidence.ts'

/** Sorted: beginnings and ends of what hit this node or the API server, and every step on its host. */
export function disturbancesOf({ actions, steps }: Evidence, node: string): number[] {
  const times = (steps.get(node) ?? []).map(({ atMs }) => atMs)
  for (const { kind, detail, startedMs, endedMs } of actions)
    if (kind.startsWith('API server') || kind === 'census killed' || detail.includes(node))
      times.push(startedMs, endedMs)
  return times.sort((a, b) => a - b)
}
