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
import { configProblems, ensureConfigFiles } from './config-files.ts'
import { withLock } from '../keyed-mutex.ts'
import { stateDir, type HostFolders } from '../layout.ts'
import type { NodeMetadata } from './node-metadata.ts'

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
