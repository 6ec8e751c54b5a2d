import type { BusConnection } from '../../host/dbus/reconnecting.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { type TakenPort, whyNoReboot } from '../../host/preflight/facts.ts'
import { hostReport, preflight, whyUnfit } from '../../host/preflight/findings.ts'
import {
  holderOfPort,
  type PreflightFolders,
  readBootId,
  readBusFacts,
  readContainer,
  readHostFacts,
} from '../../host/preflight/gather.ts'
import { type Backoff, backoffMs } from '../../schemas/backoff.ts'
import type { Clock } from '../../schemas/clock.ts'
import type { Snapshot } from '../../stages/model/snapshot.ts'
import type { Log } from '../telemetry/log.ts'

/** Interval of the checks of an unfit host; a fit host is checked only when there is work for it. */
const unfitBackoff: Backoff = { initialMs: 5_000, maxMs: 60_000 }

/** The host: its boot id, its folders, and whether it can be reached and worked on. */
export type HostSource = {
  readonly bootId: () => string
  /** Reads the boot id again: an agent may survive a reboot of its host. */
  refreshBootId(): Promise<void>
  /** Why the host must not be rebooted; undefined if it may be. */
  rebootBarrier(): string | undefined
  /** Names of the folders below `copyDirRoot` when `loadFolders` was called. */
  folders(): ReadonlySet<string>
  loadFolders(): Promise<void>
  /**
   * Checks the host now; later snapshots contain the result, too. Returns why packages cannot run on it; undefined if
   * they can. Concurrent callers share one check.
   */
  readonly checkFitness: () => Promise<string | undefined>
  /**
   * Records why a server of this agent does not listen; undefined when it does. The Node shows it, and the process that
   * has the port.
   */
  portTaken(of: TakenPort['of'], taken: Pick<TakenPort, 'port' | 'code'> | undefined): void
  /** The state of the system bus, and the result of the last check. */
  state(): Snapshot['host']
  /** The result of the last check, for the Node. Undefined before the first check. */
  report(): string | undefined
}

/** Connects to the bus; `state` has the result. */
export async function openHost(options: {
  readonly root: HostRoot
  readonly connection: BusConnection
  readonly folders: PreflightFolders
  readonly clock: Clock
  readonly log: Log
  readonly wake: () => void
  readonly signal: AbortSignal
}): Promise<HostSource> {
  const { root, connection, clock, log, wake, signal } = options
  let bootId = await readBootId(root)
  let rebootBarrier = whyNoReboot(await readContainer(root))
  let folders: ReadonlySet<string> = new Set()
  let busError: string | undefined // undefined until the first attempt to connect has ended
  let busFacts: Awaited<ReturnType<typeof readBusFacts>> = {}
  let isBusNew = true // systemd may have been upgraded
  const takenPorts = new Map<TakenPort['of'], Pick<TakenPort, 'port' | 'code'>>()
  let unfitness: string | undefined
  let report: string | undefined
  let current: Promise<string | undefined> | undefined
  let unfitLooks = 0
  let cancelNextLook = (): void => undefined

  async function look(): Promise<string | undefined> {
    if (isBusNew && connection.state().state === 'connected') {
      isBusNew = false
      busFacts = await readBusFacts(connection)
    }
    const ports = [...takenPorts].map(
      async ([of, { port, code }]): Promise<TakenPort> => ({ of, port, code, holder: await holderOfPort(root, port) }),
    )
    const facts = {
      ...(await readHostFacts(root, options.folders)),
      ...busFacts,
      ...(ports.length > 0 && { takenPorts: await Promise.all(ports) }),
    }
    rebootBarrier = whyNoReboot(facts.container)
    const findings = preflight(facts)
    const why = whyUnfit(findings)
    const next = hostReport(facts, findings)
    const isChanged = next !== report
    if (isChanged && findings.length > 0) log.warn({ findings }, 'preflight of the host has findings')
    report = next
    unfitness = why
    unfitLooks = why === undefined ? 0 : unfitLooks + 1
    cancelNextLook()
    if (why !== undefined && !signal.aborted) cancelNextLook = lookAgainIn(backoffMs(unfitLooks, unfitBackoff))
    if (isChanged) wake()
    return why
  }

  const lookAgainIn = (delayMs: number): (() => void) =>
    clock.startTimer(delayMs, () => void checkFitness(), { isBackground: true })

  const checkFitness = async (): Promise<string | undefined> => {
    current ??= look().finally(() => (current = undefined))
    return await current
  }

  connection.onState((bus) => {
    busError = bus.state === 'connected' ? undefined : `the host's system bus does not answer: ${bus.why}`
    if (bus.state === 'connected') {
      isBusNew = true
      void checkFitness()
    }
    wake()
  })
  signal.addEventListener('abort', () => cancelNextLook(), { once: true })
  connection.withBus(async () => undefined, { signal }).catch(() => undefined)
  return {
    bootId: () => bootId,
    async refreshBootId() {
      bootId = await readBootId(root)
    },
    rebootBarrier: () => rebootBarrier,
    folders: () => folders,
    async loadFolders() {
      const { copyDirRoot } = options.folders
      folders = new Set((await root.stat(copyDirRoot)) ? await root.readdir(copyDirRoot) : [])
    },
    checkFitness,
    portTaken(of, taken) {
      if (taken === undefined) takenPorts.delete(of)
      else takenPorts.set(of, taken)
      void Promise.resolve(current).then(checkFitness) // a running check may already have checked the ports
    },
    state() {
      if (busError !== undefined) return { state: 'unusable', reason: 'HostUnreachable', message: busError }
      if (unfitness !== undefined) return { state: 'unusable', reason: 'HostUnusable', message: unfitness }
      return { state: 'usable' }
    },
    report: () => report,
  }
}
