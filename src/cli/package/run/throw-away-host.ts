/** A host for one run: a base below, a folder for what changes above, systemd-nspawn around. It reboots and crashes. */
import type { Variant } from 'dbus-next/lib/variant.js'
import { hostSockets } from '../../../host/dbus/connection.ts'
import { type BusConnection, createBusConnection } from '../../../host/dbus/reconnecting.ts'
import { createHostRoot, type HostRoot } from '../../../host/fs/host-root.ts'
import { createUnits, type Units } from '../../../host/systemd/units.ts'
import { type Clock, type Random, sleep } from '../../../schemas/clock.ts'
import { CommandError, exitCodes } from '../../base/framework/command-error.ts'
import { init } from './host-scripts.ts'
import { type Boot, startBoot } from './supervisor.ts'

export type HostOptions = {
  readonly clock: Clock
  readonly random: Random
  readonly signal: AbortSignal
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Of this machine. */
  readonly root: HostRoot
  readonly base: string
  /** Exists and is empty; the caller removes it. */
  readonly folder: string
  readonly network: 'none' | 'host'
  /** Puts files into the host before its first boot; `upper` is the host's root on this machine. */
  readonly prepare: (upper: string) => Promise<void>
}

export type ThrowAwayHost = {
  readonly root: HostRoot
  readonly connection: BusConnection
  readonly units: Units
  /** False while it goes down, and when it is gone. */
  isUp(): Promise<boolean>
  /** Resolves, with a sentence, when the host has ended although nobody asked it to. */
  readonly failed: Promise<string>
  /**
   * Carries out what makes the host go down, waits until it is down and boots it again. `by`: a host that ends in
   * another way than by a reboot is an error, unless its power is cut. @throws CommandError
   */
  restart(by: 'reboot' | 'power-cut', goDown: () => Promise<void>): Promise<void>
  /** Ends every process of the host at once, as a power cut; for `restart`. */
  cutPower(): void
  /** Ends the host and waits until nothing of it is left but its folder. May be repeated. */
  stop(): Promise<void>
}

const rebootCode = 133
const pollMs = 50
const bootTimeoutMs = 180_000
/** Above systemd's own 90 s for a service that does not stop. */
const downTimeoutMs = 150_000
const consoleLines = 15

const folders = ['base', 'root', 'work', 'upper', 'upper/etc', 'upper/var']
/** Units that bring a host up to date with its /usr run at its first boot, and would be missed after the next. */
const upToDateFiles = ['upper/etc/.updated', 'upper/var/.updated']

/** Boots it. @throws CommandError where it does not come up, with the end of its console */
export async function bootThrowAwayHost(options: HostOptions): Promise<ThrowAwayHost> {
  const { clock, random, signal, environment, root, base, folder, network, prepare } = options
  const name = `skyhook-run-${random.hex(4)}`
  const mount = `${folder}/host` // a stable path across reboots
  const connection = createBusConnection({ clock, random, sockets: hostSockets(mount) })
  const units = createUnits(connection)
  const failure = Promise.withResolvers<string>()
  let boot: Boot | undefined
  let isExpected = false

  for (const one of folders) await root.makeFolder(`${folder}/${one}`, 0o755)
  // What a first boot would do would be taken for the package's doing.
  await root.writeFile(`${folder}/upper/etc/machine-id`, `${random.hex(16)}\n`, 0o444)
  await root.writeFile(`${folder}/upper/etc/hostname`, 'throw-away\n', 0o644)
  for (const file of upToDateFiles) await root.writeFile(`${folder}/${file}`, '', 0o644)
  await root.writeFile(`${folder}/upper/.skyhook-run-init`, init, 0o755)
  await prepare(`${folder}/upper`)

  async function isUp(): Promise<boolean> {
    const state = await systemState(connection, signal).catch(() => undefined) // its bus is not there
    return state === 'running' || state === 'degraded'
  }

  async function start(): Promise<void> {
    signal.throwIfAborted()
    isExpected = false
    const current = startBoot(folder, { base, name, network, parameters: nspawnParameters(name, network) }, environment)
    boot = current
    void current.ended.then((code) => {
      if (boot !== current) return
      boot = undefined
      if (!isExpected) failure.resolve(`the host ended by itself (${code})`)
    })
    const startMs = clock.monotonicMs()
    for (;;) {
      const leader = boot !== current ? undefined : await leaderOf(root, current)
      if (leader !== undefined) {
        await root.replaceLink(mount, `/proc/${leader}/root`)
        if (await isUp()) return
      }
      if (boot !== current || clock.monotonicMs() - startMs > bootTimeoutMs) {
        const why = boot !== current ? await failure.promise : `it was not up after ${bootTimeoutMs / 1000} s`
        throw await hostError(root, folder, `the host did not boot: ${why}`)
      }
      await sleep(clock, pollMs, signal)
    }
  }

  async function end(): Promise<void> {
    isExpected = true
    const current = boot
    current?.kill()
    await current?.ended
  }

  try {
    await start()
  } catch (error) {
    connection.close()
    await end()
    throw error
  }
  return {
    root: createHostRoot(mount, random),
    connection,
    units,
    isUp,
    failed: failure.promise,
    async restart(by, goDown) {
      const current = boot
      if (current === undefined) throw await hostError(root, folder, await failure.promise)
      isExpected = true
      try {
        await goDown()
      } catch (error) {
        isExpected = false
        throw error
      }
      const code = await endWithin(current, options)
      if (code === undefined)
        throw await hostError(root, folder, `the host did not go down within ${downTimeoutMs / 1000} s`)
      if (by === 'reboot' && code !== rebootCode)
        throw await hostError(root, folder, `the host ended (${code}) instead of booting again`)
      await start()
    },
    cutPower: () => boot?.kill(),
    async stop() {
      connection.close()
      await end()
    },
  }
}

function nspawnParameters(name: string, network: 'none' | 'host'): string[] {
  return [
    '--quiet',
    '--directory=root',
    `--machine=${name}`,
    '--register=no',
    ...(network === 'none' ? ['--private-network', '--resolv-conf=off'] : ['--resolv-conf=copy-host']),
    '--timezone=off',
    '--link-journal=no',
    '--console=read-only',
    '--kill-signal=SIGRTMIN+3',
    '/.skyhook-run-init',
  ]
}

/** The exit code of the host; undefined when it still runs after a while. Rejects when the signal aborts. */
async function endWithin(boot: Boot, { clock, signal }: HostOptions): Promise<number | string | undefined> {
  const over = new AbortController()
  try {
    const isLate = sleep(clock, downTimeoutMs, AbortSignal.any([signal, over.signal])).then(() => undefined)
    return await Promise.race([boot.ended, isLate])
  } finally {
    over.abort()
  }
}

/** PID of the host's first process; undefined while there is none. */
async function leaderOf(root: HostRoot, { pid }: Boot): Promise<string | undefined> {
  if (pid === undefined) return undefined
  const parents = new Map<string, string[]>()
  const firsts = new Set<string>()
  for (const name of await root.readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const status = await root.readText(`/proc/${name}/status`).catch(() => undefined) // it has ended
    const parent = /^PPid:\s*(\d+)$/m.exec(status ?? '')?.[1]
    if (parent === undefined) continue
    parents.set(parent, [...(parents.get(parent) ?? []), name])
    if (/^NSpid:.*\t1$/m.test(status ?? '')) firsts.add(name)
  }
  const grandchildren = (parents.get(String(pid)) ?? []).flatMap((child) => parents.get(child) ?? [])
  return grandchildren.find((one) => firsts.has(one))
}

async function systemState(connection: BusConnection, signal: AbortSignal): Promise<unknown> {
  const call = {
    destination: 'org.freedesktop.systemd1',
    path: '/org/freedesktop/systemd1',
    interface: 'org.freedesktop.DBus.Properties',
    member: 'Get',
    signature: 'ss',
    body: ['org.freedesktop.systemd1.Manager', 'SystemState'],
  }
  const [value] = await connection.withBus((bus) => bus.call(call, { timeoutMs: 2_000 }), { timeoutMs: 2_000, signal })
  return (value as Variant | undefined)?.value
}

async function hostError(root: HostRoot, folder: string, message: string): Promise<CommandError> {
  const text = (await root.readText(`${folder}/console.log`)) ?? ''
  const lines = text.trimEnd().split(/\r?\n/).slice(-consoleLines)
  return new CommandError(exitCodes.failed, [message, ...lines.map((line) => `  ${line}`)].join('\n'))
}
