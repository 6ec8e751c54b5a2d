/**
 * A host of a simulated fleet: disk, systemd, logind, system bus, images and clock on virtual time. It survives its
 * agents, and loses what a real host would lose. Many of them live in one process, and one seed decides about each.
 */
import type { Clock, Random } from '../../../src/schemas/clock.ts'
import { createSeededRandom } from '../virtual-clock.ts'
import { type AgentProcess, startProcess } from './agent-process.ts'
import { carryOut } from './bus-methods.ts'
import { createBus } from './bus.ts'
import { createClaims } from './claims.ts'
import { createDisk } from './disk.ts'
import type { FetchFate, Registry, SimulatedImage } from './images.ts'
import { createLogind } from './logind.ts'
import type { HostEvent, HostListener, ProcessKind } from './observer.ts'
import type { StepScript } from './step-processes.ts'
import { createSystemd } from './systemd.ts'

export type HostOptions = {
  readonly name: string
  /** Virtual time, shared by the whole fleet. */
  readonly clock: Clock
  readonly seed: number
  readonly registry: Registry
  readonly runStep: StepScript
  /** How fetches of images go; by default each takes 200 ms. */
  readonly fetchFate?: (image: SimulatedImage) => FetchFate
  /** From a request for a reboot until the host is down; by default 3 s. */
  readonly shutdownMs?: () => number
  /** From there until it has booted; by default 20 s. */
  readonly bootMs?: () => number
}

export type PowerCut = {
  readonly downMs?: number
  /** Of what the disk has not been asked to keep; by default `some`. */
  readonly loss?: 'some' | 'all'
}

const bootIdFile = '/proc/sys/kernel/random/boot_id'
/** What a boot finds in memory only. */
const volatileFolders = ['/run', '/proc', '/sys']

export type SimulatedHost = ReturnType<typeof createSimulatedHost>

export function createSimulatedHost(options: HostOptions) {
  const { name, clock, registry, runStep, shutdownMs = () => 3_000, bootMs = () => 20_000 } = options
  const { fetchFate = () => ({ durationMs: 200 }) } = options
  const random: Random = createSeededRandom(options.seed)
  const listeners = new Set<HostListener>()
  const processes = new Set<AgentProcess>()
  const claims = createClaims()
  let power: 'up' | 'stopping' | 'down' = 'up'
  let bootId = ''
  let bootedAtMs = 0
  let wallOffsetMs = 0
  let lastProcess = 0
  let cancelPower = (): void => undefined

  const tell = (event: HostEvent): void => {
    const atMs = clock.monotonicMs()
    for (const listener of listeners) listener(event, atMs)
  }
  const wallMs = (): number => clock.wallMs() + wallOffsetMs
  const uptimeMs = (): number => clock.monotonicMs() - bootedAtMs
  const isStopping = (): boolean => power === 'stopping'

  const disk = createDisk({ wallMs, monotonicMs: () => clock.monotonicMs(), random, volatileFolders })
  const systemd = createSystemd({
    clock,
    random,
    disk,
    bootId: () => bootId,
    isStopping,
    runStep,
    tell,
    jobRemoved: (job, unit, result) =>
      bus.signal('org.freedesktop.systemd1.Manager', 'JobRemoved', '/org/freedesktop/systemd1', [1, job, unit, result]),
  })
  const logind = createLogind({ isStopping, shutDown, tell })
  const bus = createBus({
    clock,
    carryOut: (call, sender) => carryOut({ systemd, logind, isStopping }, call, sender),
    onDisconnect: (sender) => systemd.forget(sender),
  })

  function write(path: string, content: string, mode: number): void {
    const parts = path.split('/')
    for (let depth = 2; depth < parts.length; depth++) {
      const folder = disk.locate(parts.slice(0, depth).join('/'))
      if (folder.node === undefined) disk.makeFolder(folder, 0o755)
    }
    const place = disk.locate(path)
    disk.write(disk.create(place, mode), Buffer.from(content), path)
  }

  function installSystem(): void {
    write('/bin/sh', 'a shell', 0o755)
    for (const folder of ['/etc', '/var/lib', '/var/log']) write(`${folder}/.installed`, '', 0o644)
    disk.syncAll()
  }

  function boot(): void {
    power = 'up'
    disk.mount()
    bootId = `${random.hex(4)}-0000-4000-8000-${random.hex(6)}`
    bootedAtMs = clock.monotonicMs()
    write(bootIdFile, `${bootId}\n`, 0o444)
    systemd.boot()
    bus.setUp(true)
    tell({ event: 'booted', bootId })
  }

  function shutDown(): void {
    power = 'stopping'
    tell({ event: 'shutdownStarted', bootId })
    systemd.stopAll()
    cancelPower = clock.startTimer(shutdownMs(), () => goDown('shutdown'))
  }

  function goDown(how: 'shutdown' | 'power cut', { downMs = bootMs(), loss = 'some' }: PowerCut = {}): void {
    cancelPower()
    power = 'down'
    for (const process of processes) process.kill()
    if (how === 'shutdown') disk.syncAll()
    bus.setUp(false)
    systemd.killAll()
    if (how === 'power cut') disk.cutPower(loss)
    tell({ event: 'wentDown', bootId, how })
    cancelPower = clock.startTimer(downMs, boot)
  }

  installSystem()
  boot()

  return {
    name,
    disk,
    systemd,
    logind,
    bus,
    claims,
    registry,
    fetchFate,
    tell,
    bootId: () => bootId,
    power: () => power,
    /** A source of chance of its own, that depends on the host's alone. */
    fork: (): Random => createSeededRandom(Math.floor(random.number() * 2 ** 32)),
    /** Live processes of agents. */
    processes: (): ReadonlySet<AgentProcess> => processes,
    observe(listener: HostListener): () => void {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    /** The host's clock is off by this; it jumps. */
    setWallOffsetMs: (ms: number) => void (wallOffsetMs = ms),
    /** Throws on a host that is not up. */
    startProcess(kind: ProcessKind): AgentProcess {
      if (power === 'down') throw new Error(`host ${name} is down`)
      const process = startProcess({ id: ++lastProcess, clock, wallMs, uptimeMs })
      processes.add(process)
      process.onEnd(() => {
        processes.delete(process)
        tell({ event: 'agentEnded', process: process.id, kind })
      })
      tell({ event: 'agentStarted', process: process.id, kind })
      return process
    },
    /** As an administrator does, at the host. */
    reboot: () => power === 'up' && shutDown(),
    /** At any moment, also while it shuts down. */
    cutPower(cut?: PowerCut): void {
      if (power !== 'down') goDown('power cut', cut)
    },
    /** As an administrator does, at a host that is down. */
    powerOn(): void {
      if (power !== 'down') return
      cancelPower()
      boot()
    },
    /** A new disk in the same host, which boots from it. */
    wipe(): void {
      if (power !== 'down') goDown('power cut')
      disk.format()
      disk.setFull(false)
      disk.setFault(undefined)
      installSystem()
      tell({ event: 'wiped' })
    },
  }
}
