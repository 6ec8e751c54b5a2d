/** Exhaustive search of a small state machine: every state that any order of actions can reach, shortest paths first. */

export type Step<S> = { readonly action: string; readonly to: S; readonly violation?: string | undefined }

export type Searched =
  | { readonly outcome: 'holds'; readonly states: number }
  | { readonly outcome: 'violated'; readonly states: number; readonly violation: string; readonly path: readonly string[] }

/**
 * Walks all states from `initial`. `canonical` maps states that differ only in names of interchangeable parts to one text; it must keep
 * everything that `next` looks at. Stops at the first violation, with one of the shortest ways to it. Throws beyond `maxStates`: a
 * search that gave up has proved nothing.
 */
export function search<S>(given: {
  readonly initial: S
  readonly next: (state: S) => Iterable<Step<S>>
  readonly canonical: (state: S) => string
  readonly maxStates?: number
}): Searched {
  const { initial, next, canonical, maxStates = 1_000_000 } = given
  const cameFrom = new Map<string, { readonly from: string; readonly action: string } | undefined>([[canonical(initial), undefined]])
  let frontier: S[] = [initial]
  while (frontier.length > 0) {
    const reached: S[] = []
    for (const state of frontier) {
      const from = canonical(state)
      for (const { action, to, violation } of next(state)) {
        if (violation !== undefined)
          return { outcome: 'violated', states: cameFrom.size, violation, path: [...pathTo(cameFrom, from), action] }
        const key = canonical(to)
        if (cameFrom.has(key)) continue
        cameFrom.set(key, { from, action })
        if (cameFrom.size > maxStates) throw new Error(`more than ${maxStates} states`)
        reached.push(to)
      }
    }
    frontier = reached
  }
  return { outcome: 'holds', states: cameFrom.size }
}

function pathTo(cameFrom: ReadonlyMap<string, { readonly from: string; readonly action: string } | undefined>, key: string): string[] {
  const actions: string[] = []
  for (let step = cameFrom.get(key); step !== undefined; step = cameFrom.get(step.from)) actions.push(step.action)
  return actions.toReversed()
}
