import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, unlinkSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll } from 'vitest'
import { systemClock, systemRandom } from '../../../src/daemon/platform/system-clock.ts'
import { type BusSockets, hostSockets } from '../../../src/host/dbus/connection.ts'
import { NoReplyError, NotConnectedError } from '../../../src/host/dbus/errors.ts'
import { type BusConnection, createBusConnection } from '../../../src/host/dbus/reconnecting.ts'
import { createHostRoot, type HostRoot } from '../../../src/host/fs/host-root.ts'
import type { StepHost } from '../../../src/host/step/files.ts'
import { observeStepUnit, type StepIdentity, type StepObservation } from '../../../src/host/step/observe.ts'
import { startStepUnit, type StepUnitRequest } from '../../../src/host/step/start.ts'
import { createUnits, type Units } from '../../../src/host/systemd/units.ts'
import { onThisMachine } from '../machine-speed.ts'

const run = promisify(execFile)
const sandboxProgram = new URL('../../../bin/sandbox', import.meta.url).pathname
const hostName = 'host-1'

/** A real host with systemd, as an agent sees it. */
export type SystemdHost = {
  readonly root: HostRoot
  readonly sockets: BusSockets
  /** Runs a command on the host and returns what it prints. */
  exec(...command: readonly string[]): Promise<string>
  /** Reboots in order, or cuts the power; returns when the host is up again. */
  reboot(): Promise<void>
  crash(): Promise<void>
  /** Waits until the host is up in another boot than `oldBootId`, after a reboot that something else requested. */
  awaitBoot(oldBootId: string): Promise<void>
  down(): Promise<void>
}

type Disk = { readonly diskMib?: number; readonly rootOnDisk?: boolean }

/**
 * Boots a separate host for one test file (1.5 s once the base disk is made). With `diskMib` it has a disk of that
 * size whose power cuts lose what was not synced; `rootOnDisk`: it is the host's `/`, with everything on it (1000 MiB
 * at least).
 */
export async function bootHost({ diskMib, rootOnDisk }: Disk = {}): Promise<SystemdHost> {
  const disk = { ...(diskMib && { DISK_MIB: String(diskMib) }), ...(rootOnDisk && { ROOT_ON_DISK: '1' }) }
  const environment = { ...process.env, SANDBOX: `host-test-${process.pid}`, ...disk }
  const sandbox = async (...args: readonly string[]) => (await run(sandboxProgram, args, { env: environment })).stdout
  const folder = mkdtempSync(join(tmpdir(), 'systemd-host-'))
  const mount = join(folder, 'host') // a stable path across reboots, as /host in the agent's pod
  async function attach(): Promise<void> {
    const leader = (await sandbox('leader', hostName)).trim()
    rmSync(mount, { force: true })
    symlinkSync(`/proc/${leader}/root`, mount)
  }
  await sandbox('host-up', hostName)
  await attach()
  const root = createHostRoot(mount, systemRandom)
  return {
    root,
    // the private socket takes no client from outside of the host's PID namespace: the host has a relay
    sockets: { ...hostSockets(mount), systemd: join(mount, 'run/sandbox-relay') },
    exec: async (...command) => await sandbox('exec', hostName, '--', ...command),
    async reboot() {
      await sandbox('reboot', hostName)
      await attach()
    },
    async crash() {
      await sandbox('crash', hostName)
      await sandbox('start', hostName)
      await attach()
    },
    async awaitBoot(oldBootId) {
      for (const deadline = Date.now() + 60_000; Date.now() < deadline; await delay(50)) {
        const leader = (await sandbox('leader', hostName).catch(() => '')).trim()
        const bootId =
          leader && (await readFile(`/proc/${leader}/root/proc/sys/kernel/random/boot_id`, 'utf8').catch(() => ''))
        if (bootId && bootId.trim() !== oldBootId) {
          await sandbox('start', hostName) // it is booting: this waits until it is up
          return await attach()
        }
      }
      throw new Error('the host did not boot again within 60 s')
    },
    async down() {
      unlinkSync(mount)
      rmSync(folder, { recursive: true })
      await sandbox('down')
    },
  }
}

/** One agent on that host. Systemd sees a closed connection, as when an agent is killed. */
export type TestAgent = {
  readonly connection: BusConnection
  readonly units: Units
  readonly stepHost: StepHost
  /** Starts a step; throws if that fails. */
  start(request: StepUnitRequest): Promise<void>
  /** Observes now and at every signal until the step has ended or is absent. */
  awaitEnd(step: StepIdentity): Promise<Exclude<StepObservation, { state: 'running' }>>
  run(request: StepUnitRequest): Promise<Exclude<StepObservation, { state: 'running' }>>
  kill(): void
}

/** A step that lasts as long without a signal has been forgotten. */
const maxSilenceMs = onThisMachine(20_000)

export function startAgent(host: SystemdHost): TestAgent {
  const connection = createBusConnection({ clock: systemClock, random: systemRandom, sockets: host.sockets })
  const units = createUnits(connection)
  const stepHost: StepHost = { units, root: host.root }
  const agent: TestAgent = {
    connection,
    units,
    stepHost,
    async start(request) {
      const start = await startStepUnit(stepHost, request)
      if (!start.started) throw new Error(`${start.error.kind}: ${start.error.message}`)
    },
    async awaitEnd(step) {
      let wake = () => {}
      const stops = [
        units.onJobEnd(({ unit }) => unit === step.unit && wake()),
        connection.onState(({ state }) => state === 'connected' && wake()),
      ]
      try {
        for (;;) {
          const signaled = new Promise<string>((resolve) => (wake = () => resolve('signal')))
          const observation = await observeStepUnit(stepHost, step).catch(unknownIfDisconnected)
          if (observation.state !== 'running') return observation
          const outcome = await Promise.race([signaled, delay(maxSilenceMs, 'nothing', { ref: false })])
          // this must work without polling
          if (outcome === 'nothing')
            throw new Error(`no signal about ${step.unit} for ${Math.round(maxSilenceMs / 1_000)} s`)
        }
      } finally {
        for (const stop of stops) stop()
      }
    },
    async run(request) {
      await agent.start(request)
      return await agent.awaitEnd(request)
    },
    kill: () => connection.close(),
  }
  return agent
}

/** The next connection looks again. */
function unknownIfDisconnected(error: unknown): { readonly state: 'running' } {
  if (error instanceof NoReplyError || error instanceof NotConnectedError) return { state: 'running' }
  throw error
}

/** A host with an agent for one test file: their fields are set once the file's tests run. */
export type HostInUse = {
  readonly host: SystemdHost
  readonly agent: TestAgent
  /** Runs a shell script on the host and returns what it prints, trimmed. */
  readonly sh: (script: string) => Promise<string>
  /** Replaces the agent, as after a boot. */
  readonly restartAgent: () => void
  readonly reboot: () => Promise<void>
}

export function useHost(disk?: Disk): HostInUse {
  const host = {} as SystemdHost
  const agent = {} as TestAgent
  let stop = async (): Promise<void> => undefined
  beforeAll(async () => {
    Object.assign(host, await bootHost(disk))
    Object.assign(agent, startAgent(host))
    stop = async () => {
      agent.kill()
      await host.down()
    }
  })
  afterAll(async () => await stop())
  function restartAgent(): void {
    agent.kill()
    Object.assign(agent, startAgent(host))
  }
  return {
    host,
    agent,
    sh: async (script) => (await host.exec('sh', '-c', script)).trim(),
    restartAgent,
    async reboot() {
      await host.reboot()
      restartAgent()
    },
  }
}

let count = 0

/** A step with a unique name, whose output goes to `/var/log/steps/ID.out` and `.err`. */
export function stepRequest(
  command: readonly [string, ...string[]],
  more: Partial<StepUnitRequest> = {},
): StepUnitRequest {
  const id = `t${process.pid}-${++count}`
  return {
    id,
    unit: `skyhookd-test-${id}.service`,
    description: `test ${id}`,
    command,
    workingDirectory: '/',
    environment: {},
    stdoutFile: `/var/log/steps/${id}.out`,
    stderrFile: `/var/log/steps/${id}.err`,
    stopTimeoutMs: 5_000,
    ...more,
  }
}

export const shell = (script: string, more: Partial<StepUnitRequest> = {}) =>
  stepRequest(['/bin/sh', '-c', script], more)
