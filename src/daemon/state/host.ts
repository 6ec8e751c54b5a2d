import type { BusConnection } from '../../host/dbus/reconnecting.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { readBootId } from '../../host/identity.ts'
import type { Snapshot } from '../../stages/model/snapshot.ts'

/** The host: its boot id, its folders, and whether it can be reached. */
export type HostSource = {
  readonly bootId: () => string
  /** Reads the boot id again: an agent may survive a reboot of its host. */
  refreshBootId(): Promise<void>
  /** Names of the folders below `copyDirRoot` when `loadFolders` was called. */
  folders(): ReadonlySet<string>
  loadFolders(copyDirRoot: string): Promise<void>
  /** Of the system bus. */
  reachability(): Snapshot['host']
}

/** Connects to the bus; reachability has the result. */
export async function openHost(options: {
  readonly root: HostRoot
  readonly connection: BusConnection
  readonly wake: () => void
  readonly signal: AbortSignal
}): Promise<HostSource> {
  const { root, connection, wake, signal } = options
  let bootId = await readBootId(root)
  let folders: ReadonlySet<string> = new Set()
  let reachability: Snapshot['host'] = { state: 'usable' } // until the first attempt to connect is over
  connection.onState((bus) => {
    const message = bus.state === 'connected' ? undefined : `the host's system bus does not answer: ${bus.why}`
    reachability =
      message === undefined ? { state: 'usable' } : { state: 'unusable', reason: 'HostUnreachable', message }
    wake()
  })
  connection.withBus(async () => undefined, { signal }).catch(() => undefined)
  return {
    bootId: () => bootId,
    async refreshBootId() {
      bootId = await readBootId(root)
    },
    folders: () => folders,
    async loadFolders(copyDirRoot) {
      folders = new Set((await root.stat(copyDirRoot)) ? await root.readdir(copyDirRoot) : [])
    },
    reachability: () => reachability,
  }
}
