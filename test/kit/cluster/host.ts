import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemRandom } from '../../../src/daemon/platform/system-clock.ts'
import { createHostRoot, type HostRoot } from '../../../src/host/fs/host-root.ts'
import type { Sandbox } from '../../sandbox/sandbox.ts'

/** One host of the sandbox, as seen from a login. Paths are the host's. */
export type Host = {
  readonly name: string
  /** Content of a file; undefined if it does not exist. */
  read(path: string): Promise<string | undefined>
  write(path: string, text: string): Promise<void>
  remove(path: string): Promise<void>
  /** Names in a folder, sorted; empty if it does not exist. */
  list(path: string): Promise<string[]>
  exists(path: string): Promise<boolean>
  /** Lines of a file; empty if it does not exist. */
  lines(path: string): Promise<string[]>
  exec(...command: readonly string[]): Promise<string>
  /** Resolves once the file has a line that contains `text`; polls twenty times a second, even while the host boots. */
  awaitLine(path: string, text: string, withinMs?: number): Promise<void>
  bootId(): Promise<string>
}

/** Reads files through /proc, so that no process starts on the host. */
export function hostOf(sandbox: Sandbox, name: string): Host {
  let found: { readonly leader: string; readonly startedAt: string; readonly root: HostRoot } | undefined

  /** The host's systemd is another process after every boot. Its PID may soon be that of a process of another host. */
  async function root(): Promise<HostRoot> {
    if (found && (await startOf(found.leader)) === found.startedAt) return found.root
    const leader = (await sandbox.must(['leader', name])).trim()
    const startedAt = (await startOf(leader)) ?? ''
    found = { leader, startedAt, root: createHostRoot(`/proc/${leader}/root`, systemRandom) }
    return found.root
  }

  const host: Host = {
    name,
    read: async (path) => (await undefinedIfMissing((await root()).readFile(path)))?.toString('utf8'),
    write: async (path, text) => await (await root()).writeFile(path, text, 0o644),
    remove: async (path) => await (await root()).remove(path),
    list: async (path) => ((await undefinedIfMissing((await root()).readdir(path))) ?? []).sort(),
    exists: async (path) => (await (await root()).stat(path)) !== undefined,
    lines: async (path) => ((await host.read(path)) ?? '').split('\n').filter((line) => line !== ''),
    exec: async (...command) => await sandbox.must(['exec', name, '--', ...command]),
    async awaitLine(path, text, withinMs = 20_000) {
      for (const end = Date.now() + withinMs; ; await sleep(50)) {
        const lines = await host.lines(path).catch((error: unknown) => [String(error)])
        if (lines.some((line) => line.includes(text))) return
        if (Date.now() > end)
          throw new Error(
            `no line with ${JSON.stringify(text)} in ${path} of ${name} within ${withinMs} ms: ` +
              JSON.stringify(lines),
          )
      }
    },
    bootId: async () => ((await host.read('/proc/sys/kernel/random/boot_id')) ?? '').trim(),
  }
  return host
}

/** The clock ticks after which a process started, as text (proc_pid_stat(5)); undefined: there is none, or it has ended. */
async function startOf(pid: string): Promise<string | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // the name in parentheses may have spaces
  const [state, ...fields] = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return state === undefined || state === '' || state === 'Z' ? undefined : fields[18]
}

async function undefinedIfMissing<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
