/** Paths on a simulated disk, resolved as HostRoot resolves them. */
import { errno, type FolderNode, type Inode } from './inodes.ts'

/** Where a path leads. `node` is undefined where nothing is, `parent` too where the folder is missing. */
export type Place = {
  readonly path: string
  readonly name: string
  readonly parent: Inode | undefined
  readonly node: Inode | undefined
}

/** The kernel's own limit (MAXSYMLINKS). */
const maxSymlinks = 40

/** The parts of a path that are still to be walked, the next one last. */
const partsOf = (path: string): string[] =>
  path
    .split('/')
    .filter((name) => name !== '' && name !== '.')
    .reverse()

/** With `keep` a link at the end is not followed, and its folder is not looked at. */
export function locate(root: FolderNode, path: string, last: 'follow' | 'keep' = 'follow'): Place {
  if (!path.startsWith('/')) throw new Error(`${JSON.stringify(path)} is not an absolute path of the host`)
  if (path.includes('\0')) throw new Error(`${JSON.stringify(path)} is not a path`)
  const place = plainPlace(root, path)
  if (place !== undefined) return place
  const remaining = partsOf(path)
  const names: string[] = []
  const nodes: (Inode | undefined)[] = [root]
  let links = 0
  for (let name = remaining.pop(); name !== undefined; name = remaining.pop()) {
    if (name === '..') {
      if (names.pop() !== undefined) nodes.pop()
      continue
    }
    const parent = nodes.at(-1)
    names.push(name)
    const node = parent?.kind === 'folder' ? parent.entries.get(name) : undefined
    if (last === 'keep' && remaining.length === 0) return { path: `/${names.join('/')}`, name, parent, node }
    if (parent !== undefined && parent.kind !== 'folder') throw errno('ENOTDIR', 'lstat', `/${names.join('/')}`)
    nodes.push(node)
    if (node?.kind !== 'link') continue
    if (++links > maxSymlinks) throw errno('ELOOP', 'resolve', path)
    const from = node.target.startsWith('/') ? 0 : names.length - 1
    names.length = from
    nodes.length = from + 1
    remaining.push(...partsOf(node.target))
  }
  return { path: `/${names.join('/')}`, name: names.at(-1) ?? '', parent: nodes.at(-2), node: nodes.at(-1) }
}

/** Where a path of plain names leads that meets folders alone, as most do; undefined for any other. */
function plainPlace(root: FolderNode, path: string): Place | undefined {
  let node: Inode | undefined = root
  let parent: FolderNode | undefined
  let last = ''
  for (const name of plainNamesOf(path)) {
    if (node !== undefined && node.kind !== 'folder') return undefined
    parent = node
    node = parent?.entries.get(name)
    if (node?.kind === 'link') return undefined
    last = name
  }
  return last === '' ? undefined : { path, name: last, parent, node }
}

/** The parts of a path if all of them are plain names; else none. */
function plainNamesOf(path: string): readonly string[] {
  let names = knownNames.get(path)
  if (names === undefined) {
    const parts = path.split('/').slice(1)
    names = parts.some((name) => name === '' || name === '.' || name === '..') ? [] : parts
    if (knownNames.size >= maxKnownPaths) knownNames.clear()
    knownNames.set(path, names)
  }
  return names
}

/** Agents walk the same few paths again and again, beside those of temporary files. */
const knownNames = new Map<string, readonly string[]>()
const maxKnownPaths = 5_000
