/** Whole folders of a simulated disk, as src/host/fs/copy-tree.ts has them. */
import { join } from 'node:path'
import type { TreeCopy } from '../../../src/host/fs/copy-tree.ts'
import { kindOf } from '../../../src/host/fs/fsync.ts'
import type { Disk } from './disk.ts'
import type { FileNode, FolderNode } from './inodes.ts'

/** Nobody but root may write what root will execute. */
const modeMask = 0o755

/** Makes one folder like another; what only `to` has stays. True when anything was changed. */
export function copyTree(disk: Disk, from: string, to: string, copy: TreeCopy): boolean {
  let hasChanged = false
  const entryOf = (path: string) => disk.locate(path, 'keep')

  const copyFolder = (folder: string): void => {
    for (const [name, source] of disk.list(disk.locate(join(from, folder)))) {
      const path = join(folder, name)
      if (copy.excludedPaths.has(path)) continue
      const target = join(to, path)
      const existing = entryOf(target).node
      if (source.kind === 'folder') {
        if (existing?.kind !== 'folder') {
          hasChanged = true
          if (existing) disk.remove(entryOf(target))
          disk.makeFolder(entryOf(target), source.mode & modeMask)
        }
        copyFolder(path)
      } else if (source.kind === 'file') copyFile(source, target, copy.executables.has(path))
      else if (existing?.kind !== 'link' || existing.target !== source.target) {
        hasChanged = true
        if (existing) disk.remove(entryOf(target))
        disk.symlink(entryOf(target), source.target)
      }
    }
  }

  const copyFile = (source: FileNode, target: string, isExecutable: boolean): void => {
    const mode = (source.mode & modeMask) | (isExecutable ? 0o111 : 0)
    const existing = entryOf(target).node
    if (existing?.kind === 'file') {
      const hasSameTime = existing.data.length === source.data.length && existing.mtimeMs === source.mtimeMs
      if (copy.trustTimes ? hasSameTime : existing.data.equals(source.data)) {
        if (existing.mode !== mode) hasChanged = true
        existing.mode = mode
        if (hasSameTime) return
      }
    }
    hasChanged = true
    if (existing) disk.remove(entryOf(target))
    disk.write(disk.create(entryOf(target), mode), source.data, target, source.mtimeMs)
  }

  copyFolder('')
  return hasChanged
}

/** Puts the folder with everything in it on disk, but entries of these names. */
export async function syncTree(
  disk: Disk,
  path: string,
  excludedNames: readonly string[],
  passed: (failpoint: string) => Promise<void>,
): Promise<void> {
  const folder = disk.locate(path)
  for (const [name, node] of disk.list(folder)) {
    if (excludedNames.includes(name)) continue
    const inner = `${path}/${name}`
    if (node.kind === 'folder') await syncTree(disk, inner, [], passed)
    else if (node.kind === 'file') {
      disk.syncFile(node, inner)
      await passed(`fsync:${kindOf(inner)}`)
    }
  }
  disk.syncFolder(folder.node as FolderNode, folder.path)
  await passed(`fsync:${kindOf(path)}/`)
}
