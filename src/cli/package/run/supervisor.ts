import { spawn } from 'node:child_process'
import { supervisor } from './host-scripts.ts'

/** One boot of the host: a process of this machine that ends with it, and with this one. */
export type Boot = {
  /** The supervisor, whose child systemd-nspawn is; undefined when it could not be started. */
  readonly pid: number | undefined
  /** The exit code of systemd-nspawn, 133 for a reboot; or why it could not be started. Never rejects. */
  readonly ended: Promise<number | string>
  /** Kills every process of the host, as a power cut does. It ends soon after. */
  kill(): void
}

/**
 * Starts the supervisor (`host-scripts.ts`) in a session of its own, so that ctrl-C reaches this process alone, which
 * then ends the host in order.
 * @param folder of the run, with `base`, `root`, `upper` and `work`
 */
export function startBoot(
  folder: string,
  { base, name, parameters, network }: BootRequest,
  environment: Readonly<Record<string, string | undefined>>,
): Boot {
  const child = spawn(
    'unshare',
    ['--mount', '--propagation', 'slave', '--', 'sh', '-euc', supervisor, 'supervisor', base, name, ...parameters],
    {
      cwd: folder,
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
      env: {
        PATH: environment['PATH'],
        SYSTEMD_NSPAWN_LOCK: '0', // its locks outlive the host
        // Settings of a network that is shared are those of this machine.
        ...(network === 'none' && { SYSTEMD_NSPAWN_API_VFS_WRITABLE: 'network' }),
      },
    },
  )
  child.stdin.on('error', () => undefined) // it may have ended
  return {
    pid: child.pid,
    ended: new Promise((resolve) => {
      child.on('error', (error) => resolve(error.message))
      child.on('exit', (code, signal) => {
        child.stdin.destroy()
        resolve(code ?? `killed by ${signal}`)
      })
    }),
    kill: () => child.stdin.destroy(),
  }
}

export type BootRequest = {
  readonly base: string
  /** Of the machine, its cgroups and its mount. */
  readonly name: string
  /** For systemd-nspawn. */
  readonly parameters: readonly string[]
  readonly network: 'none' | 'host'
}
