/** Who listens on a port of the host, from the kernel's public tables. */
import type { HostRoot } from './fs/host-root.ts'

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
