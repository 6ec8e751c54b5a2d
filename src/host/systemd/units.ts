/** systemd's manager on the system bus: transient units, their state, and the ends of jobs. */
import { Variant } from 'dbus-next/lib/variant.js'
import { systemdVersionNumber } from '../../schemas/systemd.ts'
import type { BusCallOptions } from '../dbus/connection.ts'
import type { BusCall } from '../dbus/messages.ts'
import type { BusConnection } from '../dbus/reconnecting.ts'
import { busDriver } from '../dbus/subscriptions.ts'
import { BusError, describeError, isOutcomeUnknown } from '../dbus/errors.ts'
import { assertUnitName, type UnitProperty, unitPath } from './unit-properties.ts'
import {
  type Invocation,
  invocationOf,
  isLive,
  type ListedRow,
  notFoundState,
  snapshotOf,
  stateOf,
  type UnitSnapshot,
  type UnitState,
} from './unit-state.ts'

const systemdBusName = 'org.freedesktop.systemd1'
const systemdManager = {
  destination: systemdBusName,
  path: '/org/freedesktop/systemd1',
  interface: `${systemdBusName}.Manager`,
} as const
/**
 * systemctl's timeout of a daemon-reload: systemd runs all generators, for up to 90 s, and reads every unit. It answers
 * no calls meanwhile.
 */
const reloadTimeoutMs = 180_000
const propertiesInterface = 'org.freedesktop.DBus.Properties'

export type StartOutcome =
  | { readonly outcome: 'started'; readonly job: string }
  /** A unit of that name is running, or has ended and is still loaded: this attempt was started before. */
  | { readonly outcome: 'exists' }
  /** Nothing was started. `isUnitNameTaken`: systemd keeps the name taken, try again under a new one only. */
  | { readonly outcome: 'refused'; readonly error: string; readonly message: string; readonly isUnitNameTaken: boolean }
  /** No answer: look the unit up first. */
  | { readonly outcome: 'unknown'; readonly message: string }

export type EndedJob = { readonly unit: string; readonly job: string; readonly result: string }

export type Units = {
  /** Starts a transient unit. Properties marked optional are left out where systemd does not know them. */
  startTransient(unit: string, properties: readonly UnitProperty[], options?: BusCallOptions): Promise<StartOutcome>
  /** All of a unit's state in one consistent reply (2-6 ms for 400 properties; `readState` is ten times cheaper). */
  readSnapshot(unit: string, options?: BusCallOptions): Promise<UnitSnapshot>
  /**
   * Load, active and job state together, and the invocation. Never fails for an unknown unit: loadState is `not-found`.
   */
  readState(unit: string, options?: BusCallOptions): Promise<UnitState & Invocation>
  /** Names of the active units that match a glob pattern. */
  listLive(pattern: string): Promise<readonly string[]>
  /**
   * Requests a restart and returns the job; `onJobEnd` reports its end, perhaps before this answer. Rejects with
   * BusError.
   */
  restart(unit: string, options?: BusCallOptions): Promise<string>
  /** Requests a stop of the unit, by its own rules (KillMode, TimeoutStopUSec). False: no such unit. */
  stop(unit: string, options?: BusCallOptions): Promise<boolean>
  /**
   * Keeps a loaded unit loaded after its end, so that its result can be read; a unit started with AddRef is kept
   * already. systemd drops the reference with the connection, so it is renewed on every new one. False: no such unit.
   * Without a system bus systemd keeps no references: a successful unit is unloaded, a failed one stays by its
   * CollectMode.
   */
  ref(unit: string): Promise<boolean>
  unref(unit: string): Promise<boolean>
  /** Clears the failed state and the start limit's counter. False: no such unit. */
  resetFailed(unit: string): Promise<boolean>
  /** daemon-reload; answers when done, within 180 s unless `options` set another limit. */
  reload(options?: BusCallOptions): Promise<void>
  /** Number of systemd's version, such as 252. Rejects if systemd does not answer or its version has no number. */
  version(options?: BusCallOptions): Promise<number>
  /**
   * Calls back at the end of every job on the host, this agent's and others'. A unit's last job ends after the unit
   * itself, ExecStopPost included.
   */
  onJobEnd(listener: (job: EndedJob) => void): () => void
  /** Calls back when ends of jobs may be missed from here on: the connection ended, or systemd re-executes itself. */
  onInterrupted(listener: (why: string) => void): () => void
}

/** Over `connection`, which has not been used yet: every new connection of it is subscribed to systemd. */
export function createUnits(connection: BusConnection): Units {
  const references = keepReferences(connection)
  const jobs = followJobs(connection)

  async function callManager(
    member: string,
    signature = '',
    body: readonly unknown[] = [],
    options?: BusCallOptions,
  ): Promise<readonly unknown[]> {
    return await connection.withBus((bus) => bus.call(managerCall(member, signature, body), options), {
      signal: options?.signal,
    })
  }

  return {
    async startTransient(unit, properties, options) {
      assertUnitName(unit)
      let sentProperties = properties
      for (;;) {
        try {
          const [job] = await connection.withBus(
            async (bus) => {
              if (bus.isPeer) sentProperties = withoutReference(sentProperties)
              const values = sentProperties.map(({ name, signature, value }) => [name, new Variant(signature, value)])
              const body = [unit, 'fail', values, []]
              return await bus.call(managerCall('StartTransientUnit', 'ssa(sv)a(sa(sv))', body), options)
            },
            { signal: options?.signal },
          )
          if (sentProperties.some(({ name }) => name === 'AddRef')) references.add(unit)
          return { outcome: 'started', job: String(job) }
        } catch (error) {
          const unsupported = unsupportedProperty(error)
          const remaining = sentProperties.filter(({ name, optional }) => !(optional && name === unsupported))
          if (remaining.length === sentProperties.length) return startOutcomeOfError(error)
          sentProperties = remaining
        }
      }
    },

    async readSnapshot(unit, options) {
      const call = propertiesCall(unit, 'GetAll', 's', ['']) // '': all interfaces
      const [values] = await connection.withBus((bus) => bus.call(call, options), { signal: options?.signal })
      return snapshotOf(values as Record<string, Variant>)
    },

    async readState(unit, options) {
      const list = managerCall('ListUnitsByNames', 'as', [[unit]])
      const get = propertiesCall(unit, 'Get', 'ss', [`${systemdBusName}.Unit`, 'InvocationID'])
      return await connection.withBus(
        async (bus) => {
          const [[units], [invocation]] = await Promise.all([bus.call(list, options), bus.call(get, options)])
          const [row] = units as ListedRow[]
          return { ...(row ? stateOf(row) : notFoundState), ...invocationOf((invocation as Variant).value) }
        },
        { signal: options?.signal },
      )
    },

    async listLive(pattern) {
      const [rows] = await callManager('ListUnitsByPatterns', 'asas', [[], [pattern]])
      return (rows as ListedRow[]).filter((row) => isLive(stateOf(row))).map(([name]) => name)
    },

    async restart(unit, options) {
      const [job] = await callManager('RestartUnit', 'ss', [unit, 'replace'], options)
      return String(job)
    },
    stop: (unit, options) => falseIfNotFound(callManager('StopUnit', 'ss', [unit, 'replace'], options)),
    ref: async (unit) =>
      await connection.withBus(async (bus) => {
        if (bus.isPeer) return true // systemd keeps no references here, so the end of a unit must be recorded elsewhere
        if (references.has(unit)) return true // systemd counts references: two AddRef need two Unref
        references.add(unit) // before the answer, which may be lost
        const exists = await falseIfNotFound(bus.call(managerCall('RefUnit', 's', [unit])))
        if (!exists) references.delete(unit)
        return exists
      }),
    async unref(unit) {
      references.delete(unit)
      return await connection.withBus(
        async (bus) => !bus.isPeer && (await falseIfNotFound(bus.call(managerCall('UnrefUnit', 's', [unit])))),
      )
    },
    resetFailed: (unit) => falseIfNotFound(callManager('ResetFailedUnit', 's', [unit])),
    async reload(options) {
      await callManager('Reload', '', [], { timeoutMs: reloadTimeoutMs, ...options })
    },
    async version(options) {
      const { interface: owner, ...manager } = systemdManager
      const call = {
        ...manager,
        interface: propertiesInterface,
        member: 'Get',
        signature: 'ss',
        body: [owner, 'Version'],
      }
      const [value] = await connection.withBus((bus) => bus.call(call, options), { signal: options?.signal })
      const text = String((value as Variant).value)
      const version = systemdVersionNumber(text)
      if (version === undefined) throw new Error(`systemd names the version ${JSON.stringify(text)}, without a number`)
      return version
    },
    ...jobs,
  }
}

/** systemd keeps no references without a system bus. A failed unit then stays loaded by itself, until `resetFailed`. */
const withoutReference = (properties: readonly UnitProperty[]): readonly UnitProperty[] =>
  properties
    .filter(({ name }) => name !== 'AddRef')
    .map((one) => (one.name === 'CollectMode' ? { ...one, value: 'inactive' } : one))

/**
 * The units that stay referenced: systemd drops references with the connection, so each new connection takes them
 * again.
 */
function keepReferences(connection: BusConnection): Set<string> {
  const references = new Set<string>()
  connection.onConnect(async (bus) => {
    if (bus.isPeer) return
    await Promise.all([...references].map((unit) => falseIfNotFound(bus.call(managerCall('RefUnit', 's', [unit])))))
  })
  return references
}

/** Signals of systemd about jobs, on this connection and every later one. */
function followJobs(connection: BusConnection): Pick<Units, 'onJobEnd' | 'onInterrupted'> {
  const jobListeners = new Set<(job: EndedJob) => void>()
  const interruptionListeners = new Set<(why: string) => void>()

  function notifyInterrupted(why: string): void {
    for (const listener of interruptionListeners) listener(why)
  }

  connection.onState((state) => {
    if (state.state === 'disconnected') notifyInterrupted(state.why)
  })
  connection.onConnect(async (bus) => {
    await bus.call(managerCall('Subscribe'))
  })
  // Not PropertiesChanged: it comes six times per step with all properties, and adds nothing to what the agent reads
  // anyway.
  connection.onSignal(
    { sender: systemdBusName, interface: systemdManager.interface, member: 'JobRemoved', path: systemdManager.path },
    ({ body }) => {
      const [, job, unit, result] = body as [number, string, string, string]
      for (const listener of jobListeners) listener({ unit, job, result })
    },
  )
  // systemd takes a new bus name when it re-executes itself; its subscriptions and our references survive that.
  connection.onSignal(
    { sender: busDriver.destination, interface: busDriver.interface, member: 'NameOwnerChanged', arg0: systemdBusName },
    () => notifyInterrupted('systemd left the bus'),
  )
  return {
    onJobEnd(listener) {
      jobListeners.add(listener)
      return () => jobListeners.delete(listener)
    },
    onInterrupted(listener) {
      interruptionListeners.add(listener)
      return () => interruptionListeners.delete(listener)
    },
  }
}

function managerCall(member: string, signature = '', body: readonly unknown[] = []): BusCall {
  return { ...systemdManager, member, signature, body }
}

function propertiesCall(unit: string, member: string, signature: string, body: readonly unknown[]): BusCall {
  return { destination: systemdBusName, path: unitPath(unit), interface: propertiesInterface, member, signature, body }
}

function startOutcomeOfError(error: unknown): StartOutcome {
  if (isOutcomeUnknown(error)) return { outcome: 'unknown', message: describeError(error) }
  if (!(error instanceof BusError)) throw error
  if (error.name === `${systemdBusName}.UnitExists`) return { outcome: 'exists' }
  // the incomplete unit stays loaded, held by our reference
  const isUnitNameTaken = error.name === `${systemdBusName}.BadUnitSetting`
  return { outcome: 'refused', error: error.name, message: error.message, isUnitNameTaken }
}

/** systemd's error for an unknown property leaves nothing behind: the same unit name may be used again. */
function unsupportedProperty(error: unknown): string | undefined {
  if (!(error instanceof BusError) || error.name !== 'org.freedesktop.DBus.Error.PropertyReadOnly') return undefined
  return /^Cannot set property (\w+)/.exec(error.message)?.[1]
}

async function falseIfNotFound(call: Promise<unknown>): Promise<boolean> {
  try {
    await call
    return true
  } catch (error) {
    if (
      error instanceof BusError &&
      (error.name === `${systemdBusName}.NoSuchUnit` || error.name === `${systemdBusName}.NotReferenced`)
    )
      return false
    throw error
  }
}
