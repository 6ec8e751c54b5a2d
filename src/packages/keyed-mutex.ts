const locksByOwner = new WeakMap<object, Map<string, Promise<unknown>>>()

/**
 * Runs what reads, changes and writes one file one after another within this process; other files do not wait. The host
 * has one agent (host/single-agent.ts), so nobody else writes meanwhile.
 */
export async function withLock<T>(owner: object, path: string, work: () => Promise<T>): Promise<T> {
  const locks = locksByOwner.get(owner) ?? new Map<string, Promise<unknown>>()
  locksByOwner.set(owner, locks)
  // a failed predecessor is its caller's concern
  const ownTurn = (locks.get(path) ?? Promise.resolve()).then(work, work)
  locks.set(path, ownTurn)
  try {
    return await ownTurn
  } finally {
    if (locks.get(path) === ownTurn) locks.delete(path)
  }
}
