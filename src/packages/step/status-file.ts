import type { HostRoot } from '../../host/fs/host-root.ts'
import { messageOf } from '../../schemas/json.ts'
import { type StatusReadResult, parsePackageStatus } from '../../schemas/package-status.ts'
import { type HostFolders, stateDir } from '../layout.ts'

/** Lists in it have at most 50 names; a much larger file is not a status file. */
const maxStatusBytes = 65_536

/** Where packages of a Skyhook report their status: `status/<package>.json` in SKYHOOK_ROOT_DIR. */
export const statusFolder = (folders: HostFolders, skyhook: string): string => `${stateDir(folders, skyhook)}/status`

/** Changes with every write of the file; undefined if there is no file. */
export async function statusSignature(
  root: HostRoot,
  folders: HostFolders,
  skyhook: string,
  name: string,
): Promise<string | undefined> {
  const stats = await root.stat(`${statusFolder(folders, skyhook)}/${name}.json`)
  return stats && `${stats.ino}/${stats.mtimeMs}/${stats.size}`
}

/** The status that a package reports. Problems of the file are part of the result; never rejects. */
export async function readPackageStatus(
  root: HostRoot,
  folders: HostFolders,
  skyhook: string,
  name: string,
): Promise<StatusReadResult> {
  const path = `${statusFolder(folders, skyhook)}/${name}.json`
  const unusable = (why: string): StatusReadResult => ({ state: 'unusable', why: `${path} ${why}` })
  if (!/^[a-z0-9-]+$/.test(name)) return unusable('is not read: the package name cannot be a file name')
  try {
    const stats = await root.stat(path)
    if (!stats) return unusable('is missing; the package has to write it in config')
    if (!stats.isFile()) return unusable('is not a regular file')
    if (stats.size > maxStatusBytes) return unusable(`has ${stats.size} bytes, more than ${maxStatusBytes}`)
    const content = await root.readFile(path)
    const parsed = parsePackageStatus(content.subarray(0, maxStatusBytes).toString(), name)
    if (parsed.outcome === 'invalid') return unusable(`cannot be used: ${parsed.problem}`)
    return { state: 'read', status: parsed.status, writtenAtMs: stats.mtimeMs }
  } catch (error) {
    return unusable(`cannot be read: ${messageOf(error)}`)
  }
}

/** Names of the packages that have a status file. */
export async function packagesWithStatus(
  root: HostRoot,
  folders: HostFolders,
  skyhook: string,
): Promise<readonly string[]> {
  const folder = statusFolder(folders, skyhook)
  if ((await root.stat(folder)) === undefined) return []
  // a file in place of the folder is an error: it does not mean that no package has a status
  const names = await root.readdir(folder)
  return names.flatMap((name) => /^(.+)\.json$/.exec(name)?.[1] ?? [])
}
