/**
 * The way to a path of the host, folder by folder.
 *
 * Some folders in a path belong to other users of the host. So each folder is opened without following links, and the
 * next name is looked up in the opened folder (`/proc/self/fd/N`): a folder that is replaced meanwhile has no effect.
 * Node has no openat2(RESOLVE_IN_ROOT), so links are followed by hand: as the host would, never out of its root, and
 * only those that root alone can have made (trust.ts).
 */
import { constants, type Stats } from 'node:fs'
import { type FileHandle, lstat, open, readlink } from 'node:fs/promises'
import { undefinedIfAbsent, withFile, withPath } from './errors.ts'
import { assertTrustedLink } from './trust.ts'

/** The kernel's own limit (MAXSYMLINKS). */
const maxSymlinks = 40
/** O_PATH of Linux: a location in the tree, without permission to read it. Node has no name for it. */
const pathOnly = 0o10_000_000
const folderFlags = pathOnly | constants.O_DIRECTORY | constants.O_NOFOLLOW

/** For a link in the last component: its target, or the link itself. */
export type Last = 'follow' | 'keep'

/** An entry of a folder, whether it exists or not. */
export type Place = {
  /** Where the entry is for this process, until `close`. Only its last component may be a link. */
  readonly at: string
  /** Its path on the host, links followed. */
  readonly path: string
  /** Why it cannot exist: a folder above is missing or not a folder. */
  readonly missing: NodeJS.ErrnoException | undefined
  /** An error with the entry's path on the host instead of its path for this process. */
  readonly named: (error: unknown) => unknown
  readonly close: () => Promise<void>
}

export type Walk = {
  /** Rejects with ELOOP, UntrustedLinkError, errors of the disk, and ENOTDIR below something that is not a folder. */
  readonly to: (path: string, last: Last) => Promise<Place>
  /** Opens a folder, not through a link, and passes on its path for this process while it is open. */
  readonly inFolder: <T>(at: string, use: (at: string) => Promise<T>) => Promise<T>
}

/**
 * Does not follow links that another user of the host can have made. `root` is where the host's `/` is, without a
 * slash.
 */
export function createTrustedWalk(root: string): Walk {
  return { to: async (path, last) => await walk(root, path, last, true), inFolder: inOpenFolder }
}

/** Follows all links: for the files of the machine that a person works on, on any system. */
export function createPlainWalk(root: string): Walk {
  return { to: async (path, last) => await walk(root, path, last, false), inFolder: async (at, use) => await use(at) }
}

async function inOpenFolder<T>(at: string, use: (at: string) => Promise<T>): Promise<T> {
  const folder = await open(at, folderFlags)
  try {
    return await use(pathOf(folder))
  } catch (error) {
    throw withPath(error, pathOf(folder), at)
  } finally {
    await folder.close()
  }
}

/** The open folder of a walk. A folder without `error` exists; `error` is set for a missing folder. */
type Way = { names: string[]; at: string; handle: FileHandle | undefined; error: NodeJS.ErrnoException | undefined }

async function walk(root: string, path: string, last: Last, isTrusting: boolean): Promise<Place> {
  if (!path.startsWith('/')) throw new Error(`${JSON.stringify(path)} is not an absolute path of the host`)
  if (path.includes('\0')) throw new Error(`${JSON.stringify(path)} is not a path`)
  const way: Way = { names: [], at: root, handle: undefined, error: undefined }
  const remaining = partsOf(path)
  let links = 0

  async function follow(name: string, link: Stats): Promise<void> {
    const linkPath = `/${[...way.names, name].join('/')}`
    if (isTrusting) assertTrustedLink(linkPath, link, way.handle ? await way.handle.stat() : await lstat(`${root}/`))
    const target = await readlink(`${way.at}/${name}`)
    if (++links > maxSymlinks)
      throw Object.assign(new Error(`ELOOP: too many symbolic links, resolve '${path}'`), { code: 'ELOOP' })
    remaining.push(...partsOf(target))
    if (target.startsWith('/')) await startAgain([])
  }

  /** From the root, along these names; a folder's own `..` may have changed. */
  async function startAgain(names: readonly string[]): Promise<void> {
    await way.handle?.close()
    Object.assign(way, { names: [], at: root, handle: undefined, error: undefined } satisfies Way)
    remaining.push(...names.toReversed())
  }

  async function enter(name: string, folder: FileHandle | undefined): Promise<void> {
    const { handle } = way
    way.names.push(name)
    way.at = folder === undefined ? `${way.at}/${name}` : pathOf(folder)
    way.handle = folder
    await handle?.close()
  }

  try {
    if (isTrusting) await leap(way, remaining)
    for (let name = remaining.pop(); name !== undefined; name = remaining.pop()) {
      if (name === '..') {
        await startAgain(way.names.slice(0, -1))
        continue
      }
      const isLast = remaining.length === 0
      if (isLast && last === 'keep') return placeOf(way, name, path)
      if (way.error?.code === 'ENOTDIR') throw way.error
      if (way.error !== undefined) {
        if (isLast) return placeOf(way, name, path)
        way.names.push(name)
        continue
      }
      const entry = `${way.at}/${name}`
      const stats = isTrusting && !isLast ? undefined : await lstat(entry).catch(undefinedIfAbsent)
      if (stats?.isSymbolicLink()) {
        await follow(name, stats)
        continue
      }
      if (isLast) return placeOf(way, name, path)
      const entered = await tryEnter(way, name, isTrusting)
      if (entered.outcome === 'link') await follow(name, entered.stats)
      else if (entered.outcome === 'folder') await enter(name, entered.handle)
      else {
        way.names.push(name)
        way.error = entered.error
      }
    }
    return placeOf(way, undefined, path)
  } catch (error) {
    const { handle } = way
    way.handle = undefined
    await handle?.close()
    throw withPath(error, handle ? pathOf(handle) : root, hostPath(way.names))
  }
}

/**
 * Enters all folders but the last name at once, if none of them is a link: a quarter of the system calls. If the kernel
 * reports the same path for the opened folder, the path had no links.
 */
async function leap(way: Way, remaining: string[]): Promise<void> {
  const names = remaining.slice(1).toReversed()
  if (names.length < 2 || names.includes('..')) return
  const path = `${way.at}${hostPath(names)}`
  const handle = await open(path, folderFlags).catch(() => undefined)
  if (handle === undefined) return
  if ((await readlink(pathOf(handle)).catch(() => undefined)) !== path) return await handle.close()
  remaining.length = 1
  Object.assign(way, { names, at: pathOf(handle), handle } satisfies Partial<Way>)
}

type Entered =
  | { readonly outcome: 'folder'; readonly handle: FileHandle | undefined }
  | { readonly outcome: 'link'; readonly stats: Stats }
  | { readonly outcome: 'nothing'; readonly error: NodeJS.ErrnoException }

/** Opens a name as a folder. A plain walk opens nothing: what is missing shows when the path is used. */
async function tryEnter({ at }: Way, name: string, isTrusting: boolean): Promise<Entered> {
  const entry = `${at}/${name}`
  try {
    const handle = isTrusting ? await open(entry, folderFlags) : undefined
    return { outcome: 'folder', handle }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return { outcome: 'nothing', error: error as NodeJS.ErrnoException }
    if (code !== 'ENOTDIR' && code !== 'ELOOP') throw error
    const stats = await lstat(entry)
    if (stats.isSymbolicLink()) return { outcome: 'link', stats }
    return { outcome: 'nothing', error: error as NodeJS.ErrnoException }
  }
}

function placeOf({ names, at, handle, error }: Way, name: string | undefined, asked: string): Place {
  const path = hostPath(name === undefined ? names : [...names, name])
  return {
    at: `${at}/${name ?? '.'}`,
    path,
    missing: error && Object.assign(new Error(`${textOf(error)}, open '${asked}'`), { code: error.code ?? '', path }),
    named: (failure) => withFile(withPath(failure, at, hostPath(names)), path),
    close: async () => await handle?.close(),
  }
}

const partsOf = (path: string): string[] =>
  path
    .split('/')
    .filter((name) => name !== '' && name !== '.')
    .reverse()

const hostPath = (names: readonly string[]): string => `/${names.join('/')}`
const pathOf = ({ fd }: FileHandle): string => `/proc/self/fd/${fd}`

/** `ENOENT: no such file or directory`, of the message of an error of node:fs. */
const textOf = ({ message }: Error): string => message.replace(/, .*/s, '')
