/** Reboot of the host through logind, or systemd where it has none. Both stop services in order. */
import type { Variant } from 'dbus-next/lib/variant.js'
import type { BusCallOptions } from '../dbus/connection.ts'
import type { BusCall } from '../dbus/messages.ts'
import type { BusConnection } from '../dbus/reconnecting.ts'
import { BusError, describeError, isOutcomeUnknown, NotConnectedError } from '../dbus/errors.ts'
import { isLive, type ListedRow, stateOf } from './unit-state.ts'

const login = { destination: 'org.freedesktop.login1', path: '/org/freedesktop/login1' } as const
const systemd = { destination: 'org.freedesktop.systemd1', path: '/org/freedesktop/systemd1' } as const
const loginManager = { ...login, interface: `${login.destination}.Manager` } as const

export type Inhibitor = {
  /** For example `shutdown`, `sleep`. */
  readonly what: readonly string[]
  readonly who: string
  readonly why: string
  /** `block`, `block-weak` or `delay`. */
  readonly mode: string
  readonly uid: number
  readonly pid: number
}

export type RebootOutcome =
  /** The service that accepted it goes down with the host. Only a new boot id proves the reboot. */
  | { readonly outcome: 'accepted' }
  /** The host stays up. */
  | { readonly outcome: 'refused'; readonly reason: string }
  /** No answer, for example because the bus went down first: compare boot ids before asking again. */
  | { readonly outcome: 'unknown'; readonly detail: string }

/** What delays or blocks a shutdown of the host. */
export async function listInhibitors(
  connection: BusConnection,
  options?: BusCallOptions,
): Promise<readonly Inhibitor[]> {
  const [rows] = await connection.withBus((bus) => bus.call({ ...loginManager, member: 'ListInhibitors' }, options))
  return (rows as [string, string, string, string, number, number][]).map(([what, who, why, mode, uid, pid]) => {
    return { what: what.split(':'), who, why, mode, uid, pid }
  })
}

/**
 * Makes logind check root's inhibitors, too. logind up to 256 has no flag that affects root, later versions honor
 * `block` anyway.
 */
const checkInhibitorsFlag = 1n
/** A delay inhibitor delays the answer by at most 5 s, and logind may be busy. */
const rebootTimeoutMs = 30_000

/**
 * Requests a reboot unless an inhibitor blocks it. The caller has recorded the current boot id and that it is about to
 * ask. Up to systemd 256 root overrides every inhibitor, so they are read first: an inhibitor that blocks a person
 * blocks the agent.
 */
export async function reboot(connection: BusConnection, options: BusCallOptions = {}): Promise<RebootOutcome> {
  let inhibitors: readonly Inhibitor[]
  try {
    inhibitors = await listInhibitors(connection, options)
  } catch (error) {
    if (isLogindAbsent(error)) return await rebootBySystemd(connection, options)
    // nothing was asked yet
    const isSilent = isOutcomeUnknown(error)
    const detail = isSilent ? `${silentLogind} (${describeError(error)})` : describeError(error)
    return { outcome: 'refused', reason: `cannot read the inhibitors: ${detail}` }
  }
  const blockers = inhibitors.filter(({ what, mode }) => what.includes('shutdown') && mode !== 'delay')
  if (blockers.length > 0) {
    return {
      outcome: 'refused',
      reason: blockers.map(({ who, why, pid }) => `${who} (pid ${pid}) blocks it: ${why}`).join('; '),
    }
  }
  return await outcomeOf(requestReboot(connection, { timeoutMs: rebootTimeoutMs, ...options }))
}

/**
 * logind of systemd 257 does not reconnect to the bus after a restart of the bus daemon, and `systemctl reboot` fails.
 */
const silentLogind = 'logind does not answer. If it stays silent, restart systemd-logind.service'

/** The bus's answer for a name without an owner that cannot be activated; systemd refuses to start a missing unit. */
const absentServiceErrors: ReadonlySet<string> = new Set([
  'org.freedesktop.DBus.Error.ServiceUnknown',
  'org.freedesktop.DBus.Error.NameHasNoOwner',
  'org.freedesktop.systemd1.NoSuchUnit',
  'org.freedesktop.systemd1.UnitMasked',
])

const isLogindAbsent = (error: unknown): boolean => error instanceof BusError && absentServiceErrors.has(error.name)

/**
 * Like `systemctl reboot` without logind, which alone has inhibitors. If logind runs and cannot be asked, because the
 * bus is gone, it may have inhibitors: the host stays up.
 */
async function rebootBySystemd(connection: BusConnection, options: BusCallOptions): Promise<RebootOutcome> {
  const call = { ...systemd, interface: `${systemd.destination}.Manager` } as const
  try {
    const list = { ...call, member: 'ListUnitsByNames', signature: 'as', body: [['systemd-logind.service']] }
    const [rows] = await connection.withBus((bus) => bus.call(list, options))
    const [row] = rows as ListedRow[]
    if (row && isLive(stateOf(row)))
      return { outcome: 'refused', reason: 'cannot read the inhibitors: logind runs, and is not on the system bus' }
  } catch (error) {
    return { outcome: 'refused', reason: `cannot find out whether logind runs: ${describeError(error)}` }
  }
  const start = { ...call, member: 'StartUnit', signature: 'ss', body: ['reboot.target', 'replace-irreversibly'] }
  return await outcomeOf(connection.withBus((bus) => bus.call(start, { timeoutMs: rebootTimeoutMs, ...options })))
}

async function outcomeOf(request: Promise<unknown>): Promise<RebootOutcome> {
  try {
    await request
    return { outcome: 'accepted' }
  } catch (error) {
    if (isOutcomeUnknown(error)) return { outcome: 'unknown', detail: describeError(error) }
    if (error instanceof BusError && error.name === 'org.freedesktop.login1.OperationInProgress')
      return { outcome: 'accepted' } // another client was first
    if (error instanceof BusError || error instanceof NotConnectedError)
      return { outcome: 'refused', reason: describeError(error) }
    throw error
  }
}

/** The answers are short; while services stop, the bus may go away at any time. */
const shutdownTimeoutMs = 5_000

/**
 * Whether the host is going down: logind knows it from the request on, systemd while it stops services. Rejects if
 * systemd does not answer.
 */
export async function isShuttingDown(connection: BusConnection, options: BusCallOptions = {}): Promise<boolean> {
  const callOptions = { timeoutMs: shutdownTimeoutMs, ...options }
  const [isPreparing, systemState] = await connection.withBus(
    async (bus) =>
      await Promise.all([
        // without logind only systemd knows
        bus.call(managerProperty(login, 'PreparingForShutdown'), callOptions).catch(() => undefined),
        bus.call(managerProperty(systemd, 'SystemState'), callOptions),
      ]),
    callOptions,
  )
  const valueOf = (body: readonly unknown[] | undefined): unknown => (body?.[0] as Variant | undefined)?.value
  return valueOf(isPreparing) === true || valueOf(systemState) === 'stopping'
}

const managerProperty = (service: typeof login | typeof systemd, property: string): BusCall => ({
  ...service,
  interface: 'org.freedesktop.DBus.Properties',
  member: 'Get',
  signature: 'ss',
  body: [`${service.destination}.Manager`, property],
})

async function requestReboot(connection: BusConnection, options: BusCallOptions): Promise<void> {
  try {
    await connection.withBus((bus) =>
      bus.call({ ...loginManager, member: 'RebootWithFlags', signature: 't', body: [checkInhibitorsFlag] }, options),
    )
  } catch (error) {
    if (!isUnsupported(error)) throw error
    await connection.withBus((bus) =>
      bus.call({ ...loginManager, member: 'Reboot', signature: 'b', body: [false] }, options),
    ) // not interactive
  }
}

/** systemd before 246 lacks the method, and each version rejects flags it does not know. */
function isUnsupported(error: unknown): boolean {
  if (!(error instanceof BusError)) return false
  return (
    error.name === 'org.freedesktop.DBus.Error.UnknownMethod' || error.name === 'org.freedesktop.DBus.Error.InvalidArgs'
  )
}
