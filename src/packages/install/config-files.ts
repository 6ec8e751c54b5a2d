/**
 * `configmaps/` of a copy dir, laid out as the kubelet lays out a mounted ConfigMap: `KEY → ..data/KEY`, `..data →
 * ..TIME`. All keys change at once, by one rename, so a running script never sees half of a change.
 */
import type { HostRoot } from '../../host/fs/host-root.ts'

const dataLink = '..data'

/** Why keys cannot be files beside `..data`: the API server's rule for ConfigMaps, which the CRD repeats. */
export function configProblems(configMap: Readonly<Record<string, string>>): string[] {
  return Object.keys(configMap)
    .filter((key) => !/^(?!\.$)(?!\.\.)[-._a-zA-Z0-9]{1,253}$/.test(key))
    .map((key) => `configMap key ${JSON.stringify(key)} cannot be the name of a file`)
}

/**
 * Makes the keys files of `folder` (host path), 0644; keys that were removed vanish. Other files stay: those of the
 * image and those that a step wrote. A key changed by a step gets its content back. Returns true if anything changed.
 * Does not wait for the disk.
 */
export async function ensureConfigFiles(
  host: HostRoot,
  folder: string,
  configMap: Readonly<Record<string, string>>,
  nowMs: number,
): Promise<boolean> {
  const keys = Object.keys(configMap)
  // the image may have files of its own there
  if (keys.length === 0 && (await host.lstat(`${folder}/${dataLink}`)) === undefined) return false

  await host.mkdirp(folder)
  let hasChanged = false
  if (keys.length > 0) {
    if (!(await hasExactFiles(host, `${folder}/${dataLink}`, configMap))) {
      await swapData(host, folder, configMap, nowMs)
      hasChanged = true
    }
    for (const key of keys) if (await ensureLink(host, `${folder}/${key}`, `${dataLink}/${key}`)) hasChanged = true
  }
  return (await removeStale(host, folder, new Set(keys))) || hasChanged
}

async function swapData(
  host: HostRoot,
  folder: string,
  configMap: Readonly<Record<string, string>>,
  nowMs: number,
): Promise<void> {
  const stamp = new Date(nowMs).toISOString().slice(0, 19).replaceAll(/[-T:]/g, '_')
  const version = await host.makeUniqueFolder(`${folder}/..${stamp}.`, 0o755)
  for (const [key, content] of Object.entries(configMap)) await host.writeFile(`${version}/${key}`, content, 0o644)
  await ensureLink(host, `${folder}/${dataLink}`, version.slice(version.lastIndexOf('/') + 1))
}

/**
 * The copy dir belongs to the agent: it removes a folder that a step made in place of the link. Returns true if the
 * link was missing.
 */
async function ensureLink(host: HostRoot, path: string, target: string): Promise<boolean> {
  if ((await host.readLink(path)) === target) return false
  if ((await host.lstat(path))?.isDirectory()) await host.remove(path)
  await host.replaceLink(path, target)
  return true
}

/**
 * True if the folder has exactly these files. Compares contents: they are small, and a step or a power cut may have
 * changed them.
 */
async function hasExactFiles(
  host: HostRoot,
  data: string,
  configMap: Readonly<Record<string, string>>,
): Promise<boolean> {
  const names = await host.list(data)
  if (names === undefined || names.length !== Object.keys(configMap).length) return false
  for (const [key, content] of Object.entries(configMap)) {
    const path = `${data}/${key}`
    const stats = await host.lstat(path)
    if (!stats?.isFile() || (stats.mode & 0o777) !== 0o644 || stats.size !== Buffer.byteLength(content)) return false
    if ((await host.readText(path)) !== content) return false
  }
  return true
}

/** Removes links of removed keys and folders of earlier contents. Returns true if there were any. */
async function removeStale(host: HostRoot, folder: string, keys: ReadonlySet<string>): Promise<boolean> {
  let hasChanged = false
  const current = keys.size === 0 ? undefined : await host.readLink(`${folder}/${dataLink}`)
  for (const name of await host.readdir(folder)) {
    const path = `${folder}/${name}`
    const isOldData = name.startsWith('..') && name !== current && (name !== dataLink || current === undefined)
    const isOldKey = !keys.has(name) && (await host.readLink(path))?.startsWith(`${dataLink}/`) === true
    if (!isOldData && !isOldKey) continue
    await host.remove(path)
    hasChanged = true
  }
  return hasChanged
}
