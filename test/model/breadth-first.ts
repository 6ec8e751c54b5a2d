/**
 * Exhaustive search of a small state machine: every state that any order of actions can reach, shortest paths first.
 */

export type Transition<S> = { readonly action: string; readonly to: S; readonly violation?: string | undefined }

export type SearchResult =
  | { readonly outcome: 'holds'; readonly states: number }
  | {
      readonly outcome: 'violated'
      readonly states: number
      readonly violation: string
      readonly path: readonly string[]
    }

/**
 * Walks all states from `initial`. `canonical` maps states that differ only in names of interchangeable parts to one
 * text; it must keep everything that `next` looks at. Stops at the first violation, with one of the shortest ways to
 * it. Throws beyond `maxStates`: a search that gave up has proved nothing.
 */
export function search<S>(options: {
  readonly initial: S
  readonly next: (state: S) => Iterable<Transition<S>>
  readonly canonical: (state: S) => string
  readonly maxStates?: number
}): SearchResult {
  const { initial, next, canonical, maxStates = 1_000_000 } = options
  const predecessors = new Map<string, { readonly from: string; readonly action: string } | undefined>([
    [canonical(initial), undefined],
  ])
  let frontier: S[] = [initial]
  while (frontier.length > 0) {
    const nextFrontier: S[] = []
    for (const state of frontier) {
      const from = canonical(state)
      for (const { action, to, violation } of next(state)) {
        if (violation !== undefined)
          return {
            outcome: 'violated',
            states: predecessors.size,
            violation,
            path: [...pathTo(predecessors, from), action],
          }
        const key = canonical(to)
        if (predecessors.has(key)) continue
        predecessors.set(key, { from, action })
        if (predecessors.size > maxStates) throw new Error(`more than ${maxStates} states`)
        nextFrontier.push(to)
      }
    }
    frontier = nextFrontier
  }
  return { outcome: 'holds', states: predecessors.size }
}

function pathTo(
  predecessors: ReadonlyMap<string, { readonly from: string; readonly action: string } | undefined>,
  key: string,
): string[] {
  const actions: string[] = []
  for (let step = predecessors.get(key); step !== undefined; step = predecessors.get(step.from))
    actions.push(step.action)
  return actions.toReversed()
}
