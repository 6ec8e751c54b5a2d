/** Changes of names that are not on disk yet, in their order, as the log of a file system has them. */
import type { FolderNode, Inode } from './inodes.ts'

export type NameChange = { readonly folder: FolderNode; readonly name: string; readonly node: Inode | undefined }

/** Changes that happen together or not at all. */
type Entry = { readonly atMs: number; readonly changes: readonly NameChange[] }

export type NameLog = {
  add(atMs: number, changes: readonly NameChange[]): void
  /** Puts a folder's names on disk, with all that other folders have to have first. */
  commitFolder(folder: FolderNode): void
  commitAll(): void
  clear(): void
  /** Power is cut: what is older is on disk, and of the rest the first few, 0 ≤ `share` < 1. */
  cut(olderThanMs: number, share: number): void
}

export function createNameLog(): NameLog {
  let entries: Entry[] = []
  const commit = (committed: readonly Entry[]): void => {
    for (const { folder, name, node } of committed.flatMap(({ changes }) => changes)) {
      if (node === undefined) folder.synced.delete(name)
      else folder.synced.set(name, node)
    }
  }
  return {
    add(atMs, changes) {
      const lasting = changes.filter(({ folder }) => !folder.isVolatile)
      if (lasting.length > 0) entries.push({ atMs, changes: lasting })
    },
    commitFolder(folder) {
      if (!entries.some(({ changes }) => changes.some((change) => change.folder === folder))) return
      const touched = new Set([folder])
      const [kept, committed]: [Entry[], Entry[]] = [[], []]
      for (const entry of entries.toReversed()) {
        const isNeeded = entry.changes.some((change) => touched.has(change.folder))
        ;(isNeeded ? committed : kept).push(entry)
        if (isNeeded) for (const change of entry.changes) touched.add(change.folder)
      }
      commit(committed.reverse())
      entries = kept.reverse()
    },
    commitAll() {
      commit(entries)
      entries = []
    },
    clear: () => void (entries = []),
    cut(olderThanMs, share) {
      const due = entries.filter(({ atMs }) => atMs <= olderThanMs).length
      commit(entries.slice(0, due + Math.floor(share * (entries.length - due + 1))))
      entries = []
    },
  }
}
