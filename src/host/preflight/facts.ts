/** What the preflight checks on a host. Unknown facts are undefined and cause no finding. */
export type HostFacts = {
  /** As systemd reports it, such as `252.39-1~deb12u2`. */
  readonly systemd?: string | undefined
  /** Unit of the system bus: `dbus.service` or `dbus-broker.service`. `none`: the agent calls systemd directly. */
  readonly bus?: string | undefined
  /** `hybrid`: the controllers are on v1, systemd's own tree on v2. */
  readonly cgroup?: 'v1' | 'v2' | 'hybrid' | undefined
  readonly kernel?: string | undefined
  /** The host is a container. Undefined: it is not, or not known. `unreadable`: its type cannot be read. */
  readonly container?: Container | 'unreadable' | undefined
  readonly os?: string | undefined
  readonly selinux?: 'disabled' | 'permissive' | 'enforcing' | undefined
  /** Security context of the agent, such as `system_u:system_r:spc_t:s0`. */
  readonly agentContext?: string | undefined
  /** The agent is root of a user namespace that is not the host's. */
  readonly isUserNamespaced?: boolean | undefined
  /** Programs that every step needs. */
  readonly missingPrograms: readonly string[]
  readonly copyDirRoot: FolderFacts
  /** Others in which every step needs files. */
  readonly otherFolders: readonly FolderFacts[]
  /** Ports on which the agent should listen and cannot. */
  readonly takenPorts?: readonly TakenPort[] | undefined
}

export type TakenPort = {
  readonly of: 'health' | 'metrics'
  readonly port: number
  /** Name of the errno, such as EADDRINUSE. */
  readonly code: string
  /** Whose program has it, such as `root (uid 0)`. */
  readonly holder?: string | undefined
}

export type FolderFacts = {
  readonly path: string
  /** How the host mounts it, which need not be how the agent's container does. */
  readonly mount?: Mount | undefined
  /**
   * Name of the errno when the agent tried to create a file there. A full disk does not count: the write that fails
   * reports it.
   */
  readonly refusedWith?: string | undefined
}

export type Mount = { readonly point: string; readonly fileSystem: string; readonly options: readonly string[] }

/** Mounts in the order of a `mountinfo`: a later one on the same point hides the earlier. */
export function parseMounts(mountInfo: string): readonly Mount[] {
  return mountInfo.split('\n').flatMap((line) => {
    const fields = line.split(' ')
    const [, , , , escapedPoint, options] = fields
    const fileSystem = fields[fields.indexOf('-', 6) + 1]
    if (escapedPoint === undefined || options === undefined || fileSystem === undefined) return []
    const point = escapedPoint.replaceAll(/\\(\d{3})/g, (_, digits: string) =>
      String.fromCharCode(Number.parseInt(digits, 8)),
    )
    return [{ point, fileSystem, options: options.split(',') }]
  })
}

/** The mount of a path: the longest mount point above it. */
export function mountOf(mounts: readonly Mount[], path: string): Mount | undefined {
  let found: Mount | undefined
  for (const mount of mounts) {
    const isAbove = mount.point === '/' || path === mount.point || path.startsWith(`${mount.point}/`)
    if (isAbove && mount.point.length >= (found?.point.length ?? 0)) found = mount
  }
  return found
}

export type Container = {
  /** As its manager calls itself, such as `docker` or `systemd-nspawn`. */
  readonly manager: string
  /** Its boots have ids of their own. Otherwise the id is the machine's, and outlives the container. */
  readonly hasOwnBootId: boolean
}

export const bootIdPath = '/proc/sys/kernel/random/boot_id'

/**
 * What systemd writes about its environment to /run/systemd/container. A manager that gives each boot an id, as
 * systemd-nspawn does, mounts it over the machine's id. If the mounts are not known, the manager's name decides.
 */
export function containerOf(text: string | undefined, mounts: readonly Mount[]): Container | undefined {
  const manager = text?.trim()
  if (manager === undefined || manager === '') return undefined
  const hasOwnBootId =
    mounts.length === 0 ? manager === 'systemd-nspawn' : mounts.some(({ point }) => point === bootIdPath)
  return { manager, hasOwnBootId }
}

/** Why the host must not be rebooted, for people; undefined if it may be rebooted. */
export function whyNoReboot(container: HostFacts['container']): string | undefined {
  if (container === 'unreadable')
    return '/run/systemd/container cannot be read: a container with the boot id of its machine must not be rebooted'
  if (container === undefined || container.hasOwnBootId) return undefined
  return (
    `the host is a container (/run/systemd/container: ${container.manager.slice(0, 32)}) with the boot id of its ` +
    'machine, which stays the same when the container starts again: the agent could not detect a reboot'
  )
}

/** Which hierarchy has the controllers. Undefined where none is mounted. */
export function cgroupOf(mounts: readonly Mount[]): HostFacts['cgroup'] {
  const types = mounts.filter(({ point }) => point.startsWith('/sys/fs/cgroup')).map(({ fileSystem }) => fileSystem)
  if (types.includes('cgroup')) return types.includes('cgroup2') ? 'hybrid' : 'v1'
  return types.includes('cgroup2') ? 'v2' : undefined
}
