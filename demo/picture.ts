/** A picture of rollouts: a row for each node, time from left to right, one rollout beside the other. */
import type { NodeState, Rollout, Sight } from './sights.ts'

/**
 * Of several states in the time of one column, the first of these is shown; of the last two, the later one. The last
 * column shows how it ended.
 */
const marks: Readonly<Record<NodeState, string>> = {
  rebooting: 'R',
  drained: 'd',
  cordoned: 'c',
  working: 'w',
  waiting: '.',
  complete: '=',
}
const steady: readonly NodeState[] = ['waiting', 'complete']
const minColumns = 10

export type Film = { readonly rollout: Rollout; readonly sights: readonly Sight[] }

/** Lines of at most `width` characters, ASCII alone: the rollouts with their seconds, the nodes, the marks. */
export function picture(films: readonly Film[], nodes: readonly string[], width = 80): string[] {
  const label = Math.max(...nodes.map(({ length }) => length)) + 2
  const columns = columnsOf(films, width - label - (films.length - 1))
  const beside = (cells: readonly string[]): string => cells.join('|').trimEnd()
  const titles = films.map(({ rollout }, index) => {
    const seconds = `${Math.round(durationOf(rollout) / 1000)} s`
    const room = (columns[index] ?? 0) - seconds.length - 1
    return `${rollout.skyhook.slice(0, Math.max(room, 0))} ${seconds}`.padEnd(columns[index] ?? 0)
  })
  return [
    `${' '.repeat(label)}${beside(titles)}`,
    ...nodes.map(
      (node, row) =>
        node.padEnd(label) + beside(films.map((film, index) => rowOf(film, row, columns[index] ?? 0).join(''))),
    ),
    `${' '.repeat(label)}${legend}`.slice(0, width),
  ]
}

const legend = (['waiting', 'working', 'cordoned', 'drained', 'rebooting', 'complete'] as const)
  .map((state) => `${marks[state]} ${state}`)
  .join('  ')

const durationOf = ({ startedMs, endedMs }: Rollout): number => Math.max(endedMs - startedMs, 1)

/** By duration, but not less than a title needs. */
function columnsOf(films: readonly Film[], width: number): number[] {
  const durations = films.map(({ rollout }) => durationOf(rollout))
  const total = durations.reduce((sum, one) => sum + one, 0)
  const free = width - films.length * minColumns
  return durations.map((one) => minColumns + Math.floor((free * one) / total))
}

function rowOf({ rollout, sights }: Film, row: number, columns: number): string[] {
  const perColumn = durationOf(rollout) / columns
  return Array.from({ length: columns }, (_, column) => {
    const [fromMs, untilMs] = [column, column + 1].map((at) => rollout.startedMs + at * perColumn) as [number, number]
    const seen = sights
      .filter(({ atMs }, index) => atMs < untilMs && (sights[index + 1]?.atMs ?? Infinity) > fromMs)
      .flatMap(({ states }) => states[row] ?? [])
    if (column === columns - 1) return marks[seen.at(-1) ?? 'waiting']
    const rare = (Object.keys(marks) as NodeState[]).find((state) => !steady.includes(state) && seen.includes(state))
    const shown = rare ?? seen.at(-1)
    return shown === undefined ? ' ' : marks[shown]
  })
}
