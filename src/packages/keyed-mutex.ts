const locksByOwner = new WeakMap<object, Map<string, Promise<unknown>>>()

/**
 * Serializes the reads, changes and writes of one file within this process; other files do not wait. The host has one
 * agent (host/single-agent.ts), so no other process writes meanwhile.
 */
export async function withLock<T>(owner: object, path: string, work: () => Promise<T>): Promise<T> {
  const locks = locksByOwner.get(owner) ?? new Map<string, Promise<unknown>>()
  locksByOwner.set(owner, locks)
  // the predecessor's caller handles its failure
  const ownTurn = (locks.get(path) ?? Promise.resolve()).then(work, work)
  locks.set(path, ownTurn)
  try {
    return await ownTurn
  } finally {
    if (locks.get(path) === ownTurn) locks.delete(path)
  }
}
