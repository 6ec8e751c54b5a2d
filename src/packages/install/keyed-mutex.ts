const turns = new WeakMap<object, Map<string, Promise<unknown>>>()

/**
 * Runs what reads, changes and writes one file one after another within this process; other files do not wait. The host
 * has one agent (host/single-agent.ts), so nobody else is in between.
 */
export async function inTurn<T>(owner: object, path: string, work: () => Promise<T>): Promise<T> {
  const waiting = turns.get(owner) ?? new Map<string, Promise<unknown>>()
  turns.set(owner, waiting)
  const mine = (waiting.get(path) ?? Promise.resolve()).then(work, work) // a failed predecessor is its caller's concern
  waiting.set(path, mine)
  try {
    return await mine
  } finally {
    if (waiting.get(path) === mine) waiting.delete(path)
  }
}
