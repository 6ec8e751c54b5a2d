/** How many nodes have each version of a package, by state and stage. */
import { entryStates, stageNames, type EntryState, type Skyhook, type StageName } from '../schemas/skyhook.ts'
import type { NodeFact } from './node-facts.ts'

export type PackageCount = {
  readonly name: string
  readonly version: string
  /** All states, and the nodes in each. */
  readonly states: ReadonlyMap<EntryState, number>
  readonly stages: ReadonlyMap<StageName, number>
  /** Of all nodes together. */
  readonly restarts: number
}

/**
 * Versions that nodes still have and the spec does not. Anybody who may edit a Node can add entries, and series of
 * made-up packages must not fill a Prometheus. Those on most nodes are counted.
 */
const maxOtherVersions = 50
/** As long as the name of any object; versions are shorter. */
const maxNameLength = 253

/** The versions of the spec, also those that no node has, then those that are only on nodes. */
export function packageCounts({ spec }: Skyhook, nodes: readonly NodeFact[]): readonly PackageCount[] {
  const counts = new Map<string, Count>()
  const countOf = (name: string, version: string): Count => {
    const key = `${name}|${version}`
    const count = counts.get(key) ?? emptyCount(name, version)
    counts.set(key, count)
    return count
  }
  const specified = Object.entries(spec.packages ?? {}).map(([name, { version }]) => countOf(name, version))
  for (const { entries } of nodes)
    for (const { name, version, stage, state, restarts = 0 } of Object.values(entries)) {
      if (name.length > maxNameLength || version.length > maxNameLength) continue
      const count = countOf(name, version)
      count.nodes++
      count.restarts += restarts
      increment(count.states, (state ?? 'unknown') as EntryState)
      increment(count.stages, stage as StageName)
    }
  const others = [...counts.values()]
    .filter((count) => !specified.includes(count))
    .toSorted((a, b) => b.nodes - a.nodes || compare(a.name, b.name) || compare(a.version, b.version))
  return [...specified, ...others.slice(0, maxOtherVersions)]
}

type Count = {
  readonly name: string
  readonly version: string
  nodes: number
  restarts: number
  readonly states: Map<EntryState, number>
  readonly stages: Map<StageName, number>
}

const emptyCount = (name: string, version: string): Count => ({
  name,
  version,
  nodes: 0,
  restarts: 0,
  states: new Map(entryStates.map((state) => [state, 0])),
  stages: new Map(stageNames.map((stage) => [stage, 0])),
})

function increment<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
