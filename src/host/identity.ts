import type { HostRoot } from './fs/host-root.ts'

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
