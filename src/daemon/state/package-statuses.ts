import type { HostRoot } from '../../host/fs/host-root.ts'
import type { HostFolders } from '../../packages/layout.ts'
import { packagesWithStatus, readPackageStatus, statusSignature } from '../../packages/step/status-file.ts'
import type { StatusRead } from '../../schemas/package-status.ts'
import type { Action } from '../../stages/model/plan.ts'
import { packageOf } from '../../stages/package/run-requests.ts'
import { known } from '../../stages/model/snapshot.ts'
import { errorField } from '../telemetry/log.ts'
import type { Log } from '../telemetry/log.ts'
import type { State } from './state.ts'

/** A look costs a folder per Skyhook and a stat per package with a status; what is wished for on a host is never urgent. */
const lookEveryMs = 10_000

/** What the packages on this host say about themselves: read when a stage asks, and looked at now and then besides. */
export type PackageStatuses = {
  /** Reads the file now, as the answer to one question. */
  answer(action: Extract<Action, { do: 'readStatus' }>): Promise<void>
  /** Looks for changes; only what changed is read. */
  look(): Promise<void>
  close(): void
}

type Seen = { readonly signature: string; readonly read: StatusRead }

export function followPackageStatuses(root: HostRoot, folders: HostFolders, state: State, log: Log, wake: () => void): PackageStatuses {
  let seen: ReadonlyMap<string, Seen> = new Map()
  let looking = Promise.resolve()
  let told = ''

  async function lookNow(): Promise<void> {
    const found = new Map<string, Seen>()
    for (const [skyhook, { packages, orphaned }] of Object.entries(state.journal.skyhooks)) {
      if (orphaned) continue
      const names = new Set(Object.values(packages).flatMap(({ name, work }) => (work ? [name] : [])))
      for (const name of await packagesWithStatus(root, folders, skyhook)) {
        if (!names.has(name)) continue
        const signature = await statusSignature(root, folders, skyhook, name)
        const key = packageOf(skyhook, name)
        const before = seen.get(key)
        if (signature === undefined) continue
        found.set(
          key,
          before?.signature === signature ? before : { signature, read: await readPackageStatus(root, folders, skyhook, name) },
        )
      }
    }
    const isSame = state.statuses.known && found.size === seen.size && [...found].every(([key, one]) => seen.get(key) === one)
    seen = found
    if (isSame) return
    state.statuses = known(new Map([...found].map(([key, { read }]) => [key, read])))
    wake()
  }

  /** One after another: a later look never yields to what an earlier one found. */
  function look(): Promise<void> {
    looking = looking.then(lookNow).then(
      () => {
        told = ''
      },
      (error: unknown) => {
        const fields = errorField(error)
        if (told !== fields.error) log.warn(fields, 'the status files of packages could not be looked at')
        told = fields.error // once, not every ten seconds
      },
    )
    return looking
  }

  const timer = setInterval(() => void look(), lookEveryMs)
  timer.unref()

  return {
    async answer({ skyhook, package: name, question }) {
      state.answers.set(question, await readPackageStatus(root, folders, skyhook, name))
    },
    look,
    close: () => clearInterval(timer),
  }
}
