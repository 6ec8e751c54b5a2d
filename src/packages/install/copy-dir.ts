/**
 * The folder on the host that steps of a package run in: the content of the image, the Skyhook's configuration and
 * facts about the node, in the operator's layout.
 *
 * A marker records which content is there completely. It is written once all of it is on disk, so a complete package
 * keeps its files through a power cut. What a repair restores is on disk before the stage continues. Only the facts
 * about the node do not wait for the disk: every call brings them up to date.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { HostRoot } from '../../host/fs/host-root.ts'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import { withLock } from '../keyed-mutex.ts'
import { type HostFolders, stateDir } from '../layout.ts'

export type CopyDirInputs = {
  readonly host: HostRoot
  /** Host path of the unpacked package (image-store.ts), and its identity: the image's digest. */
  readonly store: string
  readonly digest: string
  /** Host path to fill, from `copyDir` in layout.ts. */
  readonly copyDir: string
  /** Files below `skyhook_dir/` that get all execute bits. */
  readonly stepPaths: Iterable<string>
  readonly configMap: Readonly<Record<string, string>>
  readonly nodeMetadata: NodeMetadata
  /** The time in the name of the folder of a changed configuration, as the kubelet names it. */
  readonly nowMs: number
  /**
   * Restore files of the image and of the Skyhook that steps changed. True (the default) at the start of a stage, false
   * between its steps: some packages prepare files in one step for the next.
   */
  readonly repair?: boolean
}

export type EnsuredCopyDir =
  | { readonly outcome: 'ready' }
  /** Keys of configMap that cannot be files, as sentences: the user must edit the Skyhook. */
  | { readonly outcome: 'invalid'; readonly problems: readonly string[] }

/** Which content is there completely. Version 1 did not wait for the disk. */
type Marker = { readonly v: 2; readonly digest: string; readonly configHash: string }

const markerName = '.skyhookd.json'

/**
 * Idempotent. If nothing needs a change it costs a few reads, with `repair` an lstat per file. Files that a step added
 * stay. Rejects with the disk's error (ENOSPC, …): the caller repeats it.
 */
export async function ensureCopyDir(inputs: CopyDirInputs): Promise<EnsuredCopyDir> {
  const problems = configProblems(inputs.configMap)
  if (problems.length > 0) return { outcome: 'invalid', problems }
  await withLock(inputs.host, inputs.copyDir, () => ensure(inputs))
  return { outcome: 'ready' }
}

async function ensure(inputs: CopyDirInputs): Promise<void> {
  const { host, digest, copyDir, configMap, repair = true } = inputs
  const configHash = createHash('sha256')
    .update(JSON.stringify(Object.entries(configMap).sort(([a], [b]) => (a < b ? -1 : 1))))
    .digest('hex')
  const marker: Marker = { v: 2, digest, configHash }
  const previousMarker = await readMarker(host, copyDir)
  const isSameContent = previousMarker?.v === 2 && previousMarker.digest === digest
  const isSame = isSameContent && previousMarker.configHash === configHash

  await host.mkdirp(copyDir)
  let hasChanged = !isSame
  if (repair || !isSame) {
    if (await copyPackage(inputs, isSameContent)) hasChanged = true
    if (await ensureConfigFiles(host, `${copyDir}/configmaps`, configMap, inputs.nowMs)) hasChanged = true
  }
  await ensureNodeMetadata(host, `${copyDir}/node-metadata`, inputs.nodeMetadata)
  if (hasChanged) await host.syncTree(copyDir, ['node-metadata'])
  if (isSame) return
  await host.writeFileDurable(`${copyDir}/${markerName}`, JSON.stringify(marker), 0o644)
}

/** Returns true if anything changed. */
async function copyPackage(
  { host, store, copyDir, stepPaths, configMap }: CopyDirInputs,
  trustTimes: boolean,
): Promise<boolean> {
  const dataFolders = ((await host.list(`${store}/configmaps`)) ?? []).filter((name) => name.startsWith('..'))
  return await host.copyTree(store, copyDir, {
    trustTimes,
    executables: new Set([...stepPaths].map((path) => join('skyhook_dir', path))),
    // The operator mounts node-metadata over the content of the image. Since 0.17, each key of configMap hides only its
    // own file.
    excludedPaths: new Set([
      'node-metadata',
      ...[...Object.keys(configMap), ...dataFolders].map((name) => join('configmaps', name)),
    ]),
  })
}

async function ensureNodeMetadata(host: HostRoot, folder: string, metadata: NodeMetadata): Promise<void> {
  await host.mkdirp(folder)
  for (const [name, content] of Object.entries(metadata)) {
    const path = `${folder}/${name}.json`
    if ((await host.readText(path)) !== content) await host.writeFile(path, content, 0o644)
  }
}

async function readMarker(host: HostRoot, copyDir: string): Promise<Partial<Marker> | undefined> {
  const text = await host.readText(`${copyDir}/${markerName}`)
  if (text === undefined) return undefined
  try {
    return JSON.parse(text) as Partial<Marker>
  } catch {
    return undefined // truncated by a power cut before version 2
  }
}

/**
 * The end of a copy dir's name: UID and generation of the Skyhook. Its sibling folders hold flags, history and
 * interrupts.
 */
const copyDirName = /-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-\d+$/

/**
 * Removes unused copy dirs of a Skyhook, including those of the operator, and returns the removed ones. Calls `isUsed`
 * with the host path right before each removal; no other caller may fill the folder meanwhile.
 */
export async function collectCopyDirs(
  host: HostRoot,
  folders: HostFolders,
  skyhook: string,
  isUsed: (path: string) => boolean,
): Promise<string[]> {
  const state = stateDir(folders, skyhook)
  const removed: string[] = []
  for (const name of (await host.list(state)) ?? []) {
    const path = `${state}/${name}`
    if (!copyDirName.test(name)) continue
    await withLock(host, path, async () => {
      if (isUsed(path)) return
      await host.remove(path)
      removed.push(path)
    })
  }
  return removed
}

/**
 * `configmaps/` of a copy dir, laid out as the kubelet lays out a mounted ConfigMap: `KEY → ..data/KEY`, `..data →
 * ..TIME`. All keys change at once, by one rename, so a running script never sees half of a change.
 */

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
async function ensureConfigFiles(
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

/** Content of `node-metadata/{labels,annotations,packages}.json`: the facts about the node that steps can read. */
type NodeMetadata = { readonly labels: string; readonly annotations: string; readonly packages: string }

type NodeFacts = {
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly annotations?: Readonly<Record<string, string>> | undefined
  readonly agentVersion: string
  readonly packages: Readonly<Record<string, PackageSpec>>
}

/** Keys are sorted, so equal facts give equal texts. */
export function nodeMetadata({ labels = {}, annotations = {}, agentVersion, packages }: NodeFacts): NodeMetadata {
  const packageFacts = Object.entries(packages).map(([name, { version, image, interrupt, configInterrupts }]) => [
    name,
    { name, version, image, ...(interrupt && { interrupt }), ...(configInterrupts && { configInterrupts }) },
  ])
  return {
    labels: JSON.stringify(sortKeys(labels)),
    annotations: JSON.stringify(sortKeys(annotations)),
    packages: JSON.stringify({ agentVersion, packages: sortKeys(Object.fromEntries(packageFacts)) }),
  }
}

const sortKeys = <T>(record: Readonly<Record<string, T>>): Record<string, T> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)))
