/**
 * Records which package wrote which log file. Names and folder are the operator's: packages of one image share them.
 * The record is used only to prune logs. A log whose entry a power cut loses has no owner.
 */
import { agentFolder } from '../../host/fs/journal-file.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { isObject, parseJson } from '../../schemas/json.ts'
import { withLock } from '../keyed-mutex.ts'

/** A package as its Skyhook names it. */
export type LogOwner = { readonly skyhook: string; readonly package: string }

const file = `${agentFolder}/step-logs.json`
/** About 150 KB. The oldest logs lose their owner. */
const maxEntries = 1_000

/** Path of a log on the host, and `SKYHOOK/PACKAGE`; the oldest first. */
export type LogOwners = ReadonlyMap<string, string>

export const nameOf = ({ skyhook, package: name }: LogOwner): string => `${skyhook}/${name}`

export async function readLogOwners(host: HostRoot): Promise<LogOwners> {
  const document = parseJson((await host.readText(file)) ?? '{}')
  if (!isObject(document)) return new Map()
  return new Map(Object.entries(document).filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}

/** Does not wait for the disk. A failed write does not stop a step: the log has no owner then. */
export async function changeLogOwners(host: HostRoot, change: (owners: Map<string, string>) => void): Promise<void> {
  await withLock(host, file, async () => {
    const before = await readLogOwners(host)
    const owners = new Map(before)
    change(owners)
    const text = JSON.stringify(Object.fromEntries([...owners].slice(-maxEntries)))
    if (text === JSON.stringify(Object.fromEntries(before))) return
    await host.writeFile(file, text, 0o600).catch(() => undefined)
  })
}
