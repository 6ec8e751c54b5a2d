/**
 * `configmaps/` of a copy dir, laid out as the kubelet lays out a mounted ConfigMap: `KEY → ..data/KEY`, `..data →
 * ..TIME`. All keys change at once, by one rename, so a running script never sees half of a change.
 */
import { chmod, lstat, mkdtemp, readFile, readdir, readlink, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { ensureLink } from './links.ts'
import { ignoreNotFound } from '../../host/fs/missing.ts'

const dataLink = '..data'

/** Why keys cannot be files beside `..data`: the API server's rule for ConfigMaps, which the CRD repeats. */
export function configProblems(configMap: Readonly<Record<string, string>>): string[] {
  return Object.keys(configMap)
    .filter((key) => !/^(?!\.$)(?!\.\.)[-._a-zA-Z0-9]{1,253}$/.test(key))
    .map((key) => `configMap key ${JSON.stringify(key)} cannot be the name of a file`)
}

/**
 * Makes the keys the files of `folder` (host path), 0644; keys that were there before and are no more vanish. Files
 * that a step wrote beside them stay. A key changed by a step gets its content back.
 */
export async function ensureConfigFiles(
  host: HostRoot,
  folder: string,
  configMap: Readonly<Record<string, string>>,
): Promise<void> {
  const keys = Object.keys(configMap)
  if (keys.length === 0 && (await host.stat(`${folder}/${dataLink}`).catch(ignoreNotFound)) === undefined) return // nothing of ours, maybe the image's own

  await host.mkdirp(folder)
  const root = await host.resolve(folder)
  if (keys.length > 0) {
    if (!(await hasExactFiles(join(root, dataLink), configMap))) await swapData(root, configMap)
    for (const key of keys) await ensureLink(join(root, key), `${dataLink}/${key}`)
  }
  await removeStale(root, new Set(keys))
}

async function swapData(root: string, configMap: Readonly<Record<string, string>>): Promise<void> {
  const stamp = new Date().toISOString().slice(0, 19).replaceAll(/[-T:]/g, '_')
  const version = await mkdtemp(join(root, `..${stamp}.`))
  await chmod(version, 0o755)
  for (const [key, content] of Object.entries(configMap)) {
    await writeFile(join(version, key), content)
    await chmod(join(version, key), 0o644) // whatever the umask
  }
  await ensureLink(join(root, dataLink), version.slice(root.length + 1))
}

/**
 * True when the folder has exactly these files. Contents are read: they are small, and a step or a power cut may have
 * changed them.
 */
async function hasExactFiles(data: string, configMap: Readonly<Record<string, string>>): Promise<boolean> {
  const names = await readdir(data).catch(ignoreNotFound)
  if (names === undefined || names.length !== Object.keys(configMap).length) return false
  for (const [key, content] of Object.entries(configMap)) {
    const path = join(data, key)
    const stats = await lstat(path).catch(ignoreNotFound)
    if (!stats?.isFile() || (stats.mode & 0o777) !== 0o644 || stats.size !== Buffer.byteLength(content)) return false
    if ((await readFile(path)).toString() !== content) return false
  }
  return true
}

/** Links of keys that are gone, and the folders of earlier contents. */
async function removeStale(root: string, keys: ReadonlySet<string>): Promise<void> {
  const current = keys.size === 0 ? undefined : await readlink(join(root, dataLink))
  for (const entry of await readdir(root, { withFileTypes: true })) {
    const { name } = entry
    const path = join(root, name)
    const isOldData = name.startsWith('..') && name !== current && (name !== dataLink || current === undefined)
    const isOldKey = entry.isSymbolicLink() && !keys.has(name) && (await readlink(path)).startsWith(`${dataLink}/`)
    if (isOldData || isOldKey) await rm(path, { recursive: true, force: true })
  }
}
