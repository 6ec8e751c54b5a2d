import type { HostRoot } from '../../host/fs/host-root.ts'
import type { HostFolders } from '../../packages/layout.ts'
import { packagesWithStatus, readPackageStatus, statusSignature } from '../../packages/step/status-file.ts'
import { type Clock, startInterval } from '../../schemas/clock.ts'
import type { Journal } from '../../schemas/journal.ts'
import type { StatusReadResult } from '../../schemas/package-status.ts'
import type { Action } from '../../stages/model/plan.ts'
import { packageStatusKey } from '../../stages/package/run-requests.ts'
import { type Known, known, unknown } from '../../stages/model/snapshot.ts'
import type { FailureBook } from '../failures/book.ts'
import { errorField, type Log } from '../telemetry/log.ts'
import { retain } from './retain.ts'

/** A poll reads one folder per Skyhook and stats one file per package. Requests of packages are never urgent. */
const refreshIntervalMs = 10_000

/** The status files of the packages on this host, which are read for a stage and polled between stages. */
export type PackageStatuses = {
  /** Reads the file now, as the answer to one request. */
  readForStage(action: Extract<Action, { do: 'readStatus' }>): Promise<void>
  /** Looks for changes, and reads only changed files. */
  refresh(): Promise<void>
  /** By package status key; unknown until the first poll. */
  readonly current: () => Known<ReadonlyMap<string, StatusReadResult>>
  /** By request id. */
  requested(): ReadonlyMap<string, StatusReadResult>
  retain(needed: ReadonlySet<string>): void
  close(): void
}

const failureName = 'package statuses'

type CachedStatus = { readonly signature: string; readonly read: StatusReadResult }

/** Polls every few seconds until it is closed. */
export function followPackageStatuses(options: {
  readonly root: HostRoot
  readonly folders: HostFolders
  readonly journal: () => Journal
  readonly clock: Clock
  readonly failures: Pick<FailureBook, 'record' | 'clear' | 'current'>
  readonly log: Log
  readonly wake: () => void
}): PackageStatuses {
  const { root, folders, clock, failures, log, wake } = options
  const requested = new Map<string, StatusReadResult>()
  let statuses: Known<ReadonlyMap<string, StatusReadResult>> = unknown('the status files of packages are not read yet')
  let cached: ReadonlyMap<string, CachedStatus> = new Map()
  let refreshing = Promise.resolve()

  async function refreshNow(): Promise<void> {
    const current = new Map<string, CachedStatus>()
    for (const [skyhook, { packages, orphaned }] of Object.entries(options.journal().skyhooks)) {
      if (orphaned) continue
      const names = new Set(Object.values(packages).flatMap(({ name, work }) => (work ? [name] : [])))
      for (const name of await packagesWithStatus(root, folders, skyhook)) {
        if (!names.has(name)) continue
        const signature = await statusSignature(root, folders, skyhook, name)
        const key = packageStatusKey(skyhook, name)
        const previous = cached.get(key)
        if (signature === undefined) continue
        current.set(
          key,
          previous?.signature === signature
            ? previous
            : { signature, read: await readPackageStatus(root, folders, skyhook, name) },
        )
      }
    }
    const isSame =
      statuses.known && current.size === cached.size && [...current].every(([key, one]) => cached.get(key) === one)
    cached = current
    if (isSame) return
    statuses = known(new Map([...current].map(([key, { read }]) => [key, read])))
    wake()
  }

  /** Polls run one after another, so that an earlier poll never overwrites a later one. */
  function refresh(): Promise<void> {
    refreshing = refreshing.then(refreshNow).then(
      () => failures.clear(failureName),
      (error: unknown) => {
        if (!failures.current().has(failureName))
          log.warn(errorField(error), 'status files of packages could not be read') // once, not every 10 s
        failures.record(failureName, { operation: 'read the status files of packages' }, error)
        wake()
      },
    )
    return refreshing
  }

  const close = startInterval(clock, refreshIntervalMs, () => void refresh(), { isBackground: true })

  return {
    async readForStage({ skyhook, package: name, requestId }) {
      requested.set(requestId, await readPackageStatus(root, folders, skyhook, name))
    },
    refresh,
    current: () => statuses,
    requested: () => requested,
    retain: (needed) => retain(requested, needed),
    close,
  }
}
