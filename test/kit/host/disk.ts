/**
 * A disk in memory that loses in a power cut what nobody synced.
 *
 * Content is durable after its file was synced, names are durable after their folder was synced, and both after half a
 * minute. Of the other changes of names a power cut keeps the first few, in their order, as a file system's log does;
 * of other content it keeps the old, the new, or the beginning of the new. A rename happens whole or not at all.
 */
import type { Random } from '../../../src/schemas/clock.ts'
import { errno, type FileNode, type FolderNode, type Inode, type LinkNode } from './inodes.ts'
import { createNameLog, type NameChange } from './name-log.ts'
import { locate, type Place } from './places.ts'

/** What may fail: by the kind of system call. */
export type DiskOperation = 'read' | 'write' | 'create' | 'rename' | 'remove' | 'sync'

/** The errno's name with which an operation fails. */
export type DiskFault = (operation: DiskOperation, path: string) => string | undefined

/** The kernel's limit for one name. */
const maxNameBytes = 255

/** By then the kernel has written everything by itself. */
const writeBackMs = 30_000

export type Disk = ReturnType<typeof createDisk>

/** `wallMs`: for modification times; `monotonicMs`: for what is written back by itself. */
export function createDisk(options: {
  readonly wallMs: () => number
  readonly monotonicMs: () => number
  readonly random: Random
  readonly volatileFolders: readonly string[]
}) {
  const { wallMs, monotonicMs, random, volatileFolders } = options
  let lastInode = 0
  let root = newFolder(0o755, false)
  const log = createNameLog()
  const dirtyFiles = new Set<FileNode>()
  let fault: DiskFault | undefined
  let isFull = false

  function newFolder(mode: number, isVolatile: boolean): FolderNode {
    const [entries, synced] = [new Map<string, Inode>(), new Map<string, Inode>()]
    return { kind: 'folder', ino: ++lastInode, mode, mtimeMs: wallMs(), isVolatile, entries, synced }
  }

  function check(operation: DiskOperation, syscall: string, path: string): void {
    const isVolatile = (): boolean => volatileFolders.some((folder) => path.startsWith(`${folder}/`))
    const code = fault?.(operation, path) ?? (isFull && operation === 'write' && !isVolatile() ? 'ENOSPC' : undefined)
    if (code !== undefined) throw errno(code, syscall, path)
  }

  /** The folder that has, or would have, the name. */
  function folderOf(place: Place, syscall: string): FolderNode {
    if (Buffer.byteLength(place.name) > maxNameBytes) throw errno('ENAMETOOLONG', syscall, place.path)
    if (place.parent === undefined) throw errno(place.name === '' ? 'EEXIST' : 'ENOENT', syscall, place.path)
    if (place.parent.kind !== 'folder') throw errno('ENOTDIR', syscall, place.path)
    return place.parent
  }

  function nodeAt(place: Place, syscall: string): Inode {
    if (place.node !== undefined) return place.node
    folderOf(place, syscall)
    throw errno('ENOENT', syscall, place.path)
  }

  function changeNames(...changes: readonly NameChange[]): void {
    for (const { folder, name, node } of changes) {
      if (node === undefined) folder.entries.delete(name)
      else folder.entries.set(name, node)
      folder.mtimeMs = wallMs()
    }
    log.add(monotonicMs(), changes)
  }

  const disk = {
    locate: (path: string, last?: 'follow' | 'keep'): Place => locate(root, path, last),
    /** Whatever was there before is gone. */
    format(): void {
      root = newFolder(0o755, false)
      log.clear()
      dirtyFiles.clear()
      mountVolatileFolders()
    },
    setFault: (next: DiskFault | undefined) => void (fault = next),
    setFull: (next: boolean) => void (isFull = next),

    /** Content of the regular file. */
    read(place: Place): Buffer {
      const node = nodeAt(place, 'open')
      check('read', 'read', place.path)
      if (node.kind === 'folder') throw errno('EISDIR', 'read', place.path)
      if (node.kind === 'link') throw errno('ELOOP', 'open', place.path)
      return node.data
    },

    /** The new, empty file. */
    create(place: Place, mode: number): FileNode {
      const folder = folderOf(place, 'open')
      check('create', 'open', place.path)
      if (folder.entries.has(place.name)) throw errno('EEXIST', 'open', place.path)
      const [data, mtimeMs] = [Buffer.alloc(0), wallMs()]
      const file: FileNode = { kind: 'file', ino: ++lastInode, mode, mtimeMs, data, synced: undefined, dirtySinceMs: 0 }
      changeNames({ folder, name: place.name, node: file })
      return file
    },

    write(file: FileNode, data: Buffer, path: string, mtimeMs = wallMs()): void {
      check('write', 'write', path)
      if (!dirtyFiles.has(file)) file.dirtySinceMs = monotonicMs()
      file.data = data
      file.mtimeMs = mtimeMs
      dirtyFiles.add(file)
    },

    syncFile(file: FileNode, path: string): void {
      check('sync', 'fsync', path)
      file.synced = file.data
      dirtyFiles.delete(file)
    },

    /** Puts the folder's names on disk, with all that other folders have to have first. */
    syncFolder(folder: FolderNode, path: string): void {
      check('sync', 'fsync', path)
      log.commitFolder(folder)
    },

    makeFolder(place: Place, mode: number): FolderNode {
      const parent = folderOf(place, 'mkdir')
      check('create', 'mkdir', place.path)
      if (parent.entries.has(place.name)) throw errno('EEXIST', 'mkdir', place.path)
      const folder = newFolder(mode, parent.isVolatile)
      changeNames({ folder: parent, name: place.name, node: folder })
      return folder
    },

    symlink(place: Place, target: string): void {
      const folder = folderOf(place, 'symlink')
      check('create', 'symlink', place.path)
      if (folder.entries.has(place.name)) throw errno('EEXIST', 'symlink', place.path)
      const node: LinkNode = { kind: 'link', ino: ++lastInode, mode: 0o777, mtimeMs: wallMs(), target }
      changeNames({ folder, name: place.name, node })
    },

    link(from: Place, to: Place): void {
      const node = nodeAt(from, 'link')
      if (node.kind === 'folder') throw errno('EPERM', 'link', from.path)
      const folder = folderOf(to, 'link')
      check('create', 'link', to.path)
      if (folder.entries.has(to.name)) throw errno('EEXIST', 'link', from.path)
      changeNames({ folder, name: to.name, node })
    },

    rename(from: Place, to: Place): void {
      const node = nodeAt(from, 'rename')
      const [source, target] = [folderOf(from, 'rename'), folderOf(to, 'rename')]
      check('rename', 'rename', from.path)
      const replaced = target.entries.get(to.name)
      if (replaced === node) return
      if (node.kind === 'folder' && to.path.startsWith(`${from.path}/`)) throw errno('EINVAL', 'rename', from.path)
      if (node.kind === 'folder' && replaced && replaced.kind !== 'folder') throw errno('ENOTDIR', 'rename', from.path)
      if (node.kind !== 'folder' && replaced?.kind === 'folder') throw errno('EISDIR', 'rename', from.path)
      if (replaced?.kind === 'folder' && replaced.entries.size > 0) throw errno('ENOTEMPTY', 'rename', from.path)
      changeNames({ folder: source, name: from.name, node: undefined }, { folder: target, name: to.name, node })
    },

    /** Takes one name away; whatever is below it goes with it. */
    remove(place: Place): void {
      nodeAt(place, 'unlink')
      check('remove', 'unlink', place.path)
      changeNames({ folder: folderOf(place, 'unlink'), name: place.name, node: undefined })
    },

    list(place: Place): [string, Inode][] {
      const node = nodeAt(place, 'scandir')
      check('read', 'scandir', place.path)
      if (node.kind !== 'folder') throw errno('ENOTDIR', 'scandir', place.path)
      return [...node.entries]
    },

    /** The kernel writes everything, as before a shutdown. */
    syncAll(): void {
      log.commitAll()
      for (const file of dirtyFiles) file.synced = file.data
      dirtyFiles.clear()
    },

    /** Of what waits in memory a part is lost, or with `all` everything, however long it waits. */
    cutPower(loss: 'some' | 'all' = 'some'): void {
      const oldestMs = loss === 'all' ? -Infinity : monotonicMs() - writeBackMs
      log.cut(oldestMs, loss === 'all' ? 0 : random.number())
      for (const file of dirtyFiles) {
        if (loss === 'all') file.data = file.synced ?? Buffer.alloc(0)
        else if (file.dirtySinceMs > oldestMs) file.data = remainderOf(file, random)
      }
      dirtyFiles.clear()
      forget(root)
    },

    /** What is in memory only starts empty at a boot. */
    mount: mountVolatileFolders,
  }

  function forget(folder: FolderNode): void {
    folder.entries = new Map(folder.synced)
    for (const node of folder.entries.values()) {
      if (node.kind === 'folder') forget(node)
      else if (node.kind === 'file') node.synced = node.data
    }
  }

  function mountVolatileFolders(): void {
    for (const path of volatileFolders) {
      const name = path.slice(1)
      const folder = newFolder(0o755, true)
      root.entries.set(name, folder)
      root.synced.set(name, folder)
    }
  }

  mountVolatileFolders()
  return disk
}

/** What a power cut leaves of content that was not synced. */
function remainderOf({ data, synced }: FileNode, random: Random): Buffer {
  const chance = random.number()
  if (chance < 1 / 3) return synced ?? Buffer.alloc(0)
  return chance < 2 / 3 ? data.subarray(0, Math.floor(random.number() * data.length)) : data
}
