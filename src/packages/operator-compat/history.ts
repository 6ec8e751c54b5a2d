/**
 * Versions that were complete on this host, in the operator's file. There is one file per package name of config.json,
 * so two packages of one image share it. The file is a published copy of the journal. The agent reads it only when it
 * adopts a node of the operator, to know the version before an upgrade.
 */
import { isObject } from '../../schemas/json.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { withLock } from '../keyed-mutex.ts'

/** Newest first; `version` may be `uninstalled`. */
export type HistoryEntry = { readonly version: string; readonly time: string }

export type History =
  | { readonly state: 'found'; readonly currentVersion: string; readonly entries: readonly HistoryEntry[] }
  | { readonly state: 'absent' }
  /** Not JSON, or JSON of another shape. */
  | { readonly state: 'corrupt' }

/** The operator's history grows by an entry per run forever; its readers look at `current-version` only. */
const maxHistoryEntries = 100

const historyFile = (stateDir: string, packageName: string): string => `${stateDir}/history/${packageName}.json`

export async function readHistory(host: HostRoot, stateDir: string, packageName: string): Promise<History> {
  const path = historyFile(stateDir, packageName)
  const text = await host.readText(path)
  return text === undefined ? { state: 'absent' } : parseHistory(text)
}

/**
 * Adds `version` as the newest, after a passed apply, upgrade or uninstall check. The write is atomic, and on disk when
 * it returns. A corrupt file is kept as `….json.backup`, and a new one started. A call with the same version and time
 * changes nothing.
 */
export async function recordVersion(
  host: HostRoot,
  stateDir: string,
  packageName: string,
  version: string,
  atMs: number,
): Promise<void> {
  const path = historyFile(stateDir, packageName)
  await withLock(host, path, async () => {
    const history = await readHistory(host, stateDir, packageName)
    if (history.state === 'corrupt') await host.rename(path, `${path}.backup`)
    const previousEntries = history.state === 'found' ? history.entries : []
    const time = new Date(atMs).toISOString().replace('Z', '+00:00')
    if (previousEntries.some((entry) => entry.version === version && entry.time === time)) return
    const entries = [{ version, time }, ...previousEntries].slice(0, maxHistoryEntries)
    await host.mkdirp(`${stateDir}/history`)
    await host.writeFileDurable(path, JSON.stringify({ 'current-version': version, history: entries }), 0o644)
  })
}

function parseHistory(text: string): History {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    return { state: 'corrupt' } // truncated during a write: the operator does not write atomically
  }
  if (!isObject(document)) return { state: 'corrupt' }
  const { 'current-version': currentVersion, history } = document
  if (typeof currentVersion !== 'string' || !Array.isArray(history) || !history.every(isEntry))
    return { state: 'corrupt' }
  return { state: 'found', currentVersion, entries: history }
}

const isEntry = (value: unknown): value is HistoryEntry =>
  isObject(value) && typeof value.version === 'string' && typeof value.time === 'string'
