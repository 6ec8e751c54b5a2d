/** What a simulated disk holds. Content and names exist twice: as programs see them, and as a power cut leaves them. */
import { constants, Stats } from 'node:fs'

export type FileNode = {
  readonly kind: 'file'
  readonly ino: number
  mode: number
  mtimeMs: number
  /** Never changed in place: a write brings a new one. */
  data: Buffer
  /** What is on disk; undefined for a file whose content never got there. */
  synced: Buffer | undefined
  /** Since when `data` is not on disk. */
  dirtySinceMs: number
}

export type FolderNode = {
  readonly kind: 'folder'
  readonly ino: number
  mode: number
  mtimeMs: number
  /** In memory only, with everything below it: gone at every boot. */
  readonly isVolatile: boolean
  entries: Map<string, Inode>
  /** The names that are on disk. */
  readonly synced: Map<string, Inode>
}

export type LinkNode = {
  readonly kind: 'link'
  readonly ino: number
  readonly mode: number
  readonly mtimeMs: number
  readonly target: string
}

export type Inode = FileNode | FolderNode | LinkNode

const fileTypes = { file: constants.S_IFREG, folder: constants.S_IFDIR, link: constants.S_IFLNK } as const

export function statsOf(node: Inode): Stats {
  const { ino, mtimeMs } = node
  const size = node.kind === 'file' ? node.data.length : node.kind === 'link' ? Buffer.byteLength(node.target) : 4096
  const times = { atimeMs: mtimeMs, mtimeMs, ctimeMs: mtimeMs, birthtimeMs: mtimeMs }
  const owner = { dev: 1, nlink: 1, uid: 0, gid: 0, rdev: 0, blksize: 4096, blocks: Math.ceil(size / 512) }
  const mode = fileTypes[node.kind] | node.mode
  return Object.assign(Object.create(Stats.prototype) as Stats, { ino, mode, size, ...owner, ...times })
}

const texts: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or directory',
  ENOTDIR: 'not a directory',
  EISDIR: 'illegal operation on a directory',
  EEXIST: 'file already exists',
  ENOTEMPTY: 'directory not empty',
  ELOOP: 'too many symbolic links',
  EINVAL: 'invalid argument',
  EBUSY: 'resource busy or locked',
  ENOSPC: 'no space left on device',
  EIO: 'i/o error',
  EROFS: 'read-only file system',
  EDQUOT: 'disk quota exceeded',
  EPERM: 'operation not permitted',
  EACCES: 'permission denied',
}

/** As node:fs makes them, and HostRoot names the file of those that do not say it. */
export function errno(code: string, syscall: string, path: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: ${texts[code] ?? code}, ${syscall} '${path}'`), { code, syscall, path })
}
