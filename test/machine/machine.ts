/**
 * A virtual machine of an ordinary Debian: systemd as first process, cgroup v2 alone, a kernel of its own. Emulated
 * where the processor has no virtualization, which takes ten times as long. What it writes is forgotten at its end.
 */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { accessSync, constants, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

export const suites = ['bookworm', 'trixie'] as const
export type Suite = (typeof suites)[number]

export type MachineOptions = {
  readonly suite: Suite
  /** With the Debian packages that the sandbox and the tests would install. */
  readonly isPrepared: boolean
  /** Patterns of what it has of this machine's cache. */
  readonly cacheParts: readonly string[]
}

export type Machine = {
  readonly isEmulated: boolean
  /** From the start of the machine until it can be used. */
  readonly bootMs: number
  /** In the checkout, by root's shell; output goes to this process's own. Resolves with the exit code. */
  run(command: string): Promise<number>
  /** What a command of it prints. @throws where it fails */
  read(command: string): Promise<string>
  stop(): Promise<void>
}

const bootTimeoutMs = 300_000
/** Where Debian keeps the certificates that all programs trust; Node.js has to be told. */
const trusted = '/etc/ssl/certs/ca-certificates.crt'
const repository = join(import.meta.dirname, '../..')

/** QEMU with KVM. A /dev/kvm on a processor without these flags boots no ordinary kernel. */
function hasKvm(): boolean {
  try {
    accessSync('/dev/kvm', constants.W_OK)
    return /\b(?:vmx|svm)\b/.test(readFileSync('/proc/cpuinfo', 'utf8'))
  } catch {
    return false
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Makes its disks, boots it and waits until it can be entered. @throws where it does not come up, with its console */
export async function startMachine({ suite, isPrepared, cacheParts }: MachineOptions): Promise<Machine> {
  const folder = mkdtempSync(join(process.env['TMPDIR'] ?? '/var/tmp', 'machine-'))
  const disks = join(import.meta.dirname, 'disk.sh')
  const script = (args: readonly string[], env: NodeJS.ProcessEnv): string =>
    execFileSync(disks, args, {
      encoding: 'utf8',
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
  let qemu: ChildProcess | undefined
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
  const stop = async (): Promise<void> => {
    if (qemu?.exitCode === null && qemu.signalCode === null) {
      const ended = new Promise((resolve) => qemu?.once('exit', resolve))
      qemu.kill('SIGKILL') // nothing of it is kept
      await ended
    }
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const system = script(['system', suite], isPrepared ? { WITH: 'sandbox' } : {}).trim()
    const project = join(folder, 'project.raw')
    script(['project', repository, project], { CACHE_PARTS: cacheParts.join(' ') })
    const [port, isEmulated] = [await freePort(), !hasKvm()]
    const startMs = performance.now()
    const consoleLog = join(folder, 'console.log')
    const parameters = parametersOf({ system, project, consoleLog, port, isEmulated })
    // it does not outlive this process
    qemu = spawn('setpriv', ['--pdeathsig', 'KILL', 'qemu-system-x86_64', ...parameters], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    const options = [
      'StrictHostKeyChecking=no',
      'UserKnownHostsFile=/dev/null',
      'ConnectTimeout=5',
      'ServerAliveInterval=30',
    ]
    const ssh = ['-q', '-i', join(system, 'key'), '-p', String(port), ...options.flatMap((one) => ['-o', one])]
    const call = (command: string): string[] => [...ssh, 'root@127.0.0.1', command]
    const enter = async (command: string): Promise<number> => {
      const child = spawn('ssh', call(command), { stdio: ['ignore', 'inherit', 'inherit'] })
      return await new Promise((resolve) => child.once('exit', (code) => resolve(code ?? 255)))
    }
    while ((await enter('true')) !== 0) {
      const isOver = performance.now() - startMs > bootTimeoutMs
      if (isOver || qemu.exitCode !== null)
        throw new Error(`the machine did not boot: ${readFileSync(consoleLog, 'utf8').slice(-2_000)}`)
      await sleep(500)
    }
    const bootMs = performance.now() - startMs
    await enter(`cp /project/ca-certificates.crt ${trusted}`)
    const patience = isEmulated ? 5 : 1
    const settings = `NODE_EXTRA_CA_CERTS=${trusted} SKYHOOKD_CACHE=/project/cache SANDBOX_PATIENCE=${patience}`
    const inCheckout = (command: string): string => `cd /project/skyhookd && export ${settings} && ${command}`
    return {
      isEmulated,
      bootMs,
      run: async (command) => await enter(inCheckout(command)),
      read: async (command) =>
        (await promisify(execFile)('ssh', call(inCheckout(command)), { maxBuffer: 2 ** 24 })).stdout,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

type Parts = {
  readonly system: string
  readonly project: string
  readonly consoleLog: string
  readonly port: number
  readonly isEmulated: boolean
}

function parametersOf({ system, project, consoleLog, port, isEmulated }: Parts): string[] {
  const drives = [join(system, 'disk.raw'), project].map((file) => `file=${file},format=raw,if=virtio,cache=unsafe`)
  // its services are not reachable but for this port of the loopback interface
  const network = `user,id=net,hostfwd=tcp:127.0.0.1:${port}-:22`
  const options: Readonly<Record<string, string>> = {
    accel: isEmulated ? 'tcg,thread=multi,tb-size=1024' : 'kvm',
    cpu: 'max',
    smp: '2',
    m: '8192',
    display: 'none',
    serial: `file:${consoleLog}`,
    kernel: join(system, 'vmlinuz'),
    initrd: join(system, 'initrd'),
    append: 'root=/dev/vda rw console=ttyS0 net.ifnames=0',
    netdev: network,
  }
  const devices = ['virtio-net-pci,netdev=net', 'virtio-rng-pci']
  return [
    '-no-reboot',
    '-snapshot',
    ...Object.entries(options).flatMap(([name, value]) => [`-${name}`, value]),
    ...drives.flatMap((drive) => ['-drive', drive]),
    ...devices.flatMap((device) => ['-device', device]),
  ]
}
