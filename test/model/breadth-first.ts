/**
 * Exhaustive search of a small state machine: every state that any order of actions can reach, shortest paths first;
 * and whether an end is in reach from each of them.
 */

export type Transition<S> = {
  readonly action: string
  readonly to: S
  readonly violation?: string | undefined
  /** Only so many happen in one run, and nothing may depend on them. */
  readonly isFault?: boolean
}

export type Machine<S> = {
  readonly initial: S
  readonly next: (state: S) => Iterable<Transition<S>>
  /** Equal for states that differ only in names of interchangeable parts; keeps everything that `next` looks at. */
  readonly keyOf: (state: S) => string
  /** Where a run may stay for good. Without it nothing has to end. */
  readonly isEnd?: (state: S) => boolean
}

export type SearchResult =
  | { readonly outcome: 'holds'; readonly states: number }
  | {
      readonly outcome: 'violated'
      readonly states: number
      readonly violation: string
      readonly path: readonly string[]
    }

/** Ten times the largest search: a machine with more has no bounds. */
const maxStates = 2_000_000

/**
 * Walks all states. Stops at the first violation, with one of the shortest ways to it. Throws beyond `maxStates`: a
 * search that gave up has proved nothing.
 */
export function search<S>({ initial, next, keyOf, isEnd }: Machine<S>): SearchResult {
  const states = [initial]
  const numbers = new Map([[keyOf(initial), 0]])
  const origins: Origin[] = [{ from: -1, action: '' }]
  /** By state: from which ones it is reached without a fault. */
  const before: number[][] = [[]]
  for (const [from, state] of states.entries())
    for (const { action, to, violation, isFault } of next(state)) {
      if (violation !== undefined)
        return { outcome: 'violated', states: states.length, violation, path: [...pathTo(origins, from), action] }
      const key = keyOf(to)
      let number = numbers.get(key)
      if (number === undefined) {
        number = states.length
        if (number === maxStates) throw new Error(`more than ${maxStates} states`)
        numbers.set(key, number)
        states.push(to)
        origins.push({ from, action })
        before.push([])
      }
      if (isFault !== true) before[number]?.push(from)
    }
  const stuck = isEnd ? firstStuck(states.map(isEnd), before) : -1
  if (stuck >= 0)
    return { outcome: 'violated', states: states.length, violation: 'never complete', path: pathTo(origins, stuck) }
  return { outcome: 'holds', states: states.length }
}

/** How a state was first reached. */
type Origin = { readonly from: number; readonly action: string }

function pathTo(origins: readonly Origin[], state: number): string[] {
  const actions: string[] = []
  for (let origin = origins[state]; origin && origin.from >= 0; origin = origins[origin.from])
    actions.push(origin.action)
  return actions.toReversed()
}

/** The first state from which no way leads to an end; -1 if there is none. */
function firstStuck(areEnds: readonly boolean[], before: readonly (readonly number[])[]): number {
  const leading = new Set(areEnds.flatMap((isEnd, state) => (isEnd ? [state] : [])))
  for (const state of leading) for (const from of before[state] ?? []) leading.add(from)
  return areEnds.findIndex((_, state) => !leading.has(state))
}

type WithNodes = { readonly nodes: readonly unknown[] }

/** The key of a state whose nodes are interchangeable, and which has nothing but plain data. */
export const symmetricKey = ({ nodes, ...rest }: WithNodes): string =>
  JSON.stringify([nodes.map((node) => JSON.stringify(node)).toSorted(), rest])
