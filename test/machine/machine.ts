/**
 * A virtual machine of an ordinary Debian: systemd as first process, cgroup v2 alone, a kernel of its own. Emulated
 * where the processor has no virtualization, which takes ten times as long. What it writes is forgotten at its end.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { accessSync, constants, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

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
  stop(): Promise<void>
}

const bootTimeoutMs = 300_000
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
    const console_ = join(folder, 'console.log')
    qemu = spawn('qemu-system-x86_64', parametersOf({ system, project, console: console_, port, isEmulated }), {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    const ssh = [
      ...['-q', '-i', join(system, 'key'), '-p', String(port), '-o', 'StrictHostKeyChecking=no'],
      ...['-o', 'UserKnownHostsFile=/dev/null', '-o', 'ConnectTimeout=5', '-o', 'ServerAliveInterval=30'],
      'root@127.0.0.1',
    ]
    const enter = async (command: string): Promise<number> => {
      const child = spawn('ssh', [...ssh, command], { stdio: ['ignore', 'inherit', 'inherit'] })
      return await new Promise((resolve) => child.once('exit', (code) => resolve(code ?? 255)))
    }
    while ((await enter('true')) !== 0) {
      const isOver = performance.now() - startMs > bootTimeoutMs
      if (isOver || qemu.exitCode !== null)
        throw new Error(`the machine did not boot: ${readFileSync(console_, 'utf8').slice(-2_000)}`)
      await sleep(500)
    }
    const bootMs = performance.now() - startMs
    const settings = `SKYHOOKD_CACHE=/project/cache SANDBOX_PATIENCE=${isEmulated ? 5 : 1}`
    return {
      isEmulated,
      bootMs,
      run: async (command) => await enter(`cd /project/skyhookd && export ${settings} && ${command}`),
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
  readonly console: string
  readonly port: number
  readonly isEmulated: boolean
}

function parametersOf({ system, project, console: log, port, isEmulated }: Parts): string[] {
  const disk = (file: string): string[] => ['-drive', `file=${file},format=raw,if=virtio,cache=unsafe`]
  return [
    ...['-accel', isEmulated ? 'tcg,thread=multi,tb-size=1024' : 'kvm', '-cpu', 'max', '-smp', '2', '-m', '8192'],
    ...['-display', 'none', '-no-reboot', '-snapshot', '-serial', `file:${log}`],
    ...['-kernel', join(system, 'vmlinuz'), '-initrd', join(system, 'initrd')],
    ...['-append', 'root=/dev/vda rw console=ttyS0 net.ifnames=0'],
    ...[...disk(join(system, 'disk.raw')), ...disk(project)],
    // its services are not reachable but for this port of the loopback interface
    ...['-netdev', `user,id=net,hostfwd=tcp:127.0.0.1:${port}-:22`, '-device', 'virtio-net-pci,netdev=net'],
    ...['-device', 'virtio-rng-pci'],
  ]
}
