/** Which machine this is, and which of its boots. */
import { type HostRoot, ignoreEnoent } from './fs/host-root.ts'

/**
 * Id of the host's present boot. Read through the host's root: a container's own /proc may show another machine's where
 * hosts are containers themselves.
 */
export async function readBootId(root: HostRoot): Promise<string> {
  const bootId = (await root.readFile('/proc/sys/kernel/random/boot_id')).toString().trim()
  if (!/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(bootId))
    throw new Error(`the host's boot id reads ${JSON.stringify(bootId)}`)
  return bootId
}

/** 32 hex digits that stay over reboots; undefined on a host that has none (yet). */
export async function readMachineId(root: HostRoot): Promise<string | undefined> {
  const machineId = (await readIfPresent(root, '/etc/machine-id'))?.trim()
  return machineId && /^[0-9a-f]{32}$/.test(machineId) ? machineId : undefined
}

/** `ID` and `VERSION_ID` of os-release, for example `debian` and `12`. */
export async function readOperatingSystem(
  root: HostRoot,
): Promise<{ readonly id: string; readonly versionId?: string }> {
  const content =
    (await readIfPresent(root, '/etc/os-release')) ?? (await readIfPresent(root, '/usr/lib/os-release')) ?? ''
  const value = (name: string) => new RegExp(`^${name}=(["']?)(.*)\\1$`, 'm').exec(content)?.[2]
  const versionId = value('VERSION_ID')
  return { id: value('ID') || 'linux', ...(versionId ? { versionId } : {}) } // `linux` is os-release's own default
}

async function readIfPresent(root: HostRoot, path: string): Promise<string | undefined> {
  return (await root.readFile(path).catch(ignoreEnoent))?.toString()
}
