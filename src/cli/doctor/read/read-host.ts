/** Reads the facts of the host that doctor runs on. Nothing is written. */
import { hostSockets } from '../../../host/dbus/connection.ts'
import { createBusConnection } from '../../../host/dbus/reconnecting.ts'
import { createLocalRoot, type HostRoot } from '../../../host/fs/host-root.ts'
import { type PreflightFolders, readBusFacts, readHostFacts } from '../../../host/preflight/gather.ts'
import { disputedPaths, readRootDirRecords } from '../../../packages/install/root-dir-record.ts'
import type { Clock, Random } from '../../../schemas/clock.ts'
import { isObject, messageOf, parseJson } from '../../../schemas/json.ts'
import { known, type Known, unknown } from '../../../stages/model/snapshot.ts'
import type { Disk, FileDispute, LocalHost } from '../host-report.ts'

const busTimeoutMs = 2_000
const journalPath = '/var/lib/skyhook/.agent/journal.json'

export type HostRequest = { readonly clock: Clock; readonly random: Random; readonly folders: PreflightFolders }

export async function readLocalHost({ clock, random, folders }: HostRequest): Promise<LocalHost> {
  const root = createLocalRoot(random)
  const [{ bus, busFacts }, facts, machine, journal, disputes] = await Promise.all([
    readBus({ clock, random }),
    readHostFacts(withoutWrites(root), folders),
    readMachine(folders),
    readJournal(root),
    attempt('records of root_dir', readDisputes(root)),
  ])
  return { ...machine, bus, facts: { ...facts, ...busFacts }, journal, disputes }
}

/** Without the agent's trial write: read-only mounts show without it. */
const withoutWrites = (root: HostRoot): HostRoot => ({
  ...root,
  mkdirp: async () => undefined,
  createFile: async () => true,
  remove: async () => undefined,
})

async function readBus({ clock, random }: Pick<HostRequest, 'clock' | 'random'>): Promise<{
  readonly bus: LocalHost['bus']
  readonly busFacts: Awaited<ReturnType<typeof readBusFacts>>
}> {
  const connection = createBusConnection({ clock, random, sockets: hostSockets() })
  try {
    const isPeer = await connection.withBus(async (bus) => bus.isPeer, { timeoutMs: busTimeoutMs })
    return { bus: known(isPeer ? 'systemd' : 'bus'), busFacts: await readBusFacts(connection) }
  } catch (error) {
    return { bus: unknown(messageOf(error)), busFacts: {} }
  } finally {
    connection.close()
  }
}

/** As this process sees it: in a container, that of the container. */
async function readMachine({
  copyDirRoot,
  agentLogRoot,
}: PreflightFolders): Promise<Pick<LocalHost, 'platform' | 'architecture' | 'hostname' | 'memory' | 'disks'>> {
  const { default: machine } = await import('systeminformation')
  const [system, memory, disks] = await Promise.all([
    machine.osInfo(),
    attempt('memory', machine.mem()),
    attempt('file systems', machine.fsSize()),
  ])
  return {
    platform: system.platform,
    architecture: system.arch,
    hostname: system.hostname,
    memory: memory.known ? known({ totalBytes: memory.value.total, availableBytes: memory.value.available }) : memory,
    disks: disks.known
      ? known([copyDirRoot, agentLogRoot].flatMap((folder) => diskOf(folder, disks.value) ?? []))
      : disks,
  }
}

type FileSystem = { readonly mount: string; readonly size: number; readonly available: number }

function diskOf(folder: string, all: readonly FileSystem[]): Disk | undefined {
  const above = all.filter(({ mount }) => mount === '/' || folder === mount || folder.startsWith(`${mount}/`))
  const [found] = above.toSorted((a, b) => b.mount.length - a.mount.length)
  return found && { folder, mount: found.mount, sizeBytes: found.size, availableBytes: found.available }
}

async function attempt<T>(what: string, reading: Promise<T>): Promise<Known<T>> {
  try {
    return known(await reading)
  } catch (error) {
    return unknown(`${what}: ${messageOf(error)}`)
  }
}

async function readJournal(root: HostRoot): Promise<LocalHost['journal']> {
  try {
    const text = await root.readText(journalPath)
    if (text === undefined) return known('absent')
    return known(isObject(parseJson(text)) ? 'readable' : 'damaged')
  } catch (error) {
    return unknown(`${journalPath}: ${messageOf(error)}`)
  }
}

async function readDisputes(root: HostRoot): Promise<readonly FileDispute[]> {
  const records = await readRootDirRecords(root)
  return records.flatMap((one, index) =>
    records.slice(index + 1).flatMap((other): FileDispute[] => {
      const paths = disputedPaths(one.record, other.record)
      return paths.length === 0 ? [] : [{ owners: [one.owner, other.owner], paths }]
    }),
  )
}
