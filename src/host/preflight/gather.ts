/**
 * Inspects the host: reads a few small files, and for the preflight creates and removes one empty file in each folder.
 */
import type { Variant } from 'dbus-next/lib/variant.js'
import type { BusConnection } from '../dbus/reconnecting.ts'
import type { HostRoot } from '../fs/host-root.ts'
import { unitPath } from '../systemd/unit-properties.ts'
import { cgroupOf, containerOf, type FolderFacts, type HostFacts, type Mount, mountOf, parseMounts } from './facts.ts'

export type PreflightFolders = { readonly copyDirRoot: string; readonly agentLogRoot: string }

/** Where the environment of steps lies until the next boot. */
const runFolder = '/run/skyhook'
const shell = '/bin/sh'
/** Steps are started through it where SELinux is enforced. */
const env = '/usr/bin/env'
const systemd = 'org.freedesktop.systemd1'
const busTimeoutMs = 2_000

/** Facts from the host's files; `readBusFacts` reads those of the bus. */
export async function readHostFacts(root: HostRoot, folders: PreflightFolders): Promise<HostFacts> {
  const { copyDirRoot, agentLogRoot } = folders
  const text = async (path: string): Promise<string | undefined> => await root.readText(path).catch(() => undefined)
  const [container, mountInfo, kernel, osRelease, enforce, agentContext, hostUids, agentUids] = await Promise.all([
    readContainer(root),
    // those of the init process, from the host's own /proc: an agent in a container has other mounts
    text('/proc/1/mountinfo'),
    text('/proc/sys/kernel/osrelease'),
    text('/etc/os-release'),
    text('/sys/fs/selinux/enforce'),
    text('/proc/self/attr/current'),
    text('/proc/1/uid_map'),
    text('/proc/self/uid_map'),
  ])
  const mounts = parseMounts(mountInfo ?? '')
  const selinux = enforce === undefined ? 'disabled' : enforce.trim() === '1' ? 'enforcing' : 'permissive'
  const programs = selinux === 'enforcing' ? [shell, env] : [shell]
  const copyDirRootFacts = await folderFacts(root, mounts, copyDirRoot) // created before its subfolders
  const others = [`${copyDirRoot}/.agent`, agentLogRoot, runFolder]
  const otherFolders = await Promise.all(others.map(async (path) => await folderFacts(root, mounts, path)))
  return {
    cgroup: cgroupOf(mounts),
    kernel: kernel?.trim(),
    container,
    os: /^PRETTY_NAME="?([^"\n]*)/m.exec(osRelease ?? '')?.[1],
    selinux: mountInfo === undefined ? undefined : selinux,
    agentContext: agentContext?.replaceAll('\0', '').trim(),
    isUserNamespaced: hostUids === undefined || agentUids === undefined ? undefined : hostUids !== agentUids,
    missingPrograms: await missingOf(root, programs),
    copyDirRoot: copyDirRootFacts,
    otherFolders,
  }
}

/** Whether the host is a container; constant while it is up. */
export async function readContainer(root: Pick<HostRoot, 'readText'>): Promise<HostFacts['container']> {
  try {
    const text = await root.readText('/run/systemd/container')
    const mountInfo = await root.readText('/proc/1/mountinfo').catch(() => undefined)
    return containerOf(text, parseMounts(mountInfo ?? ''))
  } catch {
    return 'unreadable'
  }
}

/** Facts that only the bus has; empty when it does not answer in time. */
export async function readBusFacts(connection: BusConnection): Promise<Pick<HostFacts, 'systemd' | 'bus'>> {
  const get = async (path: string, owner: string, property: string): Promise<string | undefined> => {
    const call = {
      destination: systemd,
      path,
      interface: 'org.freedesktop.DBus.Properties',
      member: 'Get',
      signature: 'ss',
      body: [owner, property],
    }
    try {
      const options = { timeoutMs: busTimeoutMs }
      const [value] = await connection.withBus((bus) => bus.call(call, options), options)
      const text = (value as Variant).value
      return typeof text === 'string' && text !== '' ? text : undefined
    } catch {
      return undefined
    }
  }
  const [version, bus, isPeer] = await Promise.all([
    get('/org/freedesktop/systemd1', `${systemd}.Manager`, 'Version'),
    get(unitPath('dbus.service'), `${systemd}.Unit`, 'Id'), // also for a missing unit
    connection.withBus(async (bus) => bus.isPeer, { timeoutMs: busTimeoutMs }).catch(() => false),
  ])
  return { systemd: version, bus: isPeer ? 'none' : bus }
}

async function folderFacts(root: HostRoot, mounts: readonly Mount[], path: string): Promise<FolderFacts> {
  const refusedWith = await whyRefused(root, path)
  return { path, mount: mountOf(mounts, await root.realPath(path).catch(() => path)), refusedWith }
}

/** The errno's name when the folder, or a file in it, cannot be created; undefined otherwise, and on a full disk. */
async function whyRefused(root: HostRoot, folder: string): Promise<string | undefined> {
  const probe = `${folder}/.preflight`
  try {
    // synced at once: later writers find the folder and do not wait for its name
    await root.mkdirp(folder, folder === runFolder || folder.endsWith('/.agent') ? 0o700 : 0o755)
    await root.createFile(probe, 0o600)
    await root.remove(probe)
    return undefined
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error)
    return code === 'ENOSPC' || code === 'EDQUOT' ? undefined : code
  }
}

/** If the host's files cannot be read, none is reported as missing. */
async function missingOf(root: HostRoot, programs: readonly string[]): Promise<readonly string[]> {
  const found = await Promise.all(
    programs.map(
      async (program) =>
        await root.stat(program).then(
          (stats) => stats !== undefined,
          () => true,
        ),
    ),
  )
  return programs.filter((_, index) => found[index] === false)
}

/**
 * Id of the host's current boot. Read through the host's root: where hosts are containers themselves, a container's own
 * /proc may show the id of another machine.
 */
export async function readBootId(root: HostRoot): Promise<string> {
  const bootId = (await root.readFile('/proc/sys/kernel/random/boot_id')).toString().trim()
  if (!/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(bootId))
    throw new Error(`the host's boot id reads ${JSON.stringify(bootId)}`)
  return bootId
}

/** Of the agent's network, which is the host's. */
const tables = ['/proc/self/net/tcp', '/proc/self/net/tcp6']

/**
 * The user whose program listens on the port, such as `app (uid 1001)`; undefined if it is in no table. Only a process
 * with CAP_SYS_PTRACE may see which process it is.
 */
export async function holderOfPort(root: Pick<HostRoot, 'readText'>, port: number): Promise<string | undefined> {
  const text = async (path: string): Promise<string> => (await root.readText(path).catch(() => undefined)) ?? ''
  const uids = await Promise.all(tables.map(async (path) => listenerUid(await text(path), port)))
  const uid = uids.find((one) => one !== undefined)
  if (uid === undefined) return undefined
  const name = userName(await text('/etc/passwd'), uid)
  return name === undefined ? `uid ${uid}` : `${name} (uid ${uid})`
}

/** Of a table such as `/proc/net/tcp`: the uid of the socket that listens on the port. */
export function listenerUid(table: string, port: number): number | undefined {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  for (const line of table.split('\n')) {
    const [, local, , state, , , , uid] = line.trim().split(/\s+/)
    if (state === listening && local?.endsWith(suffix) && uid !== undefined) return Number(uid)
  }
  return undefined
}
const listening = '0A'

function userName(passwd: string, uid: number): string | undefined {
  const line = passwd.split('\n').find((entry) => entry.split(':')[2] === String(uid))
  return /^[\w.-]{1,32}(?=:)/.exec(line ?? '')?.[0]
}
