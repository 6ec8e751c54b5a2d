import type { BusConnection } from '../../host/dbus/reconnecting.ts'
import type { Units } from '../../host/systemd/units.ts'
import { type Clock, startInterval } from '../../schemas/clock.ts'
import { type Journal, openSteps } from '../../schemas/journal.ts'
import { stagesWithSteps } from '../../schemas/package-config.ts'
import type { Log } from '../telemetry/log.ts'
import { named } from '../../schemas/wording.ts'

/**
 * Steps that run on this host and are not in the journal, because it was lost, damaged or replaced by another agent's.
 * Their work is unknown, so nothing starts beside them.
 */
export type StraySteps = {
  /** Looks for such steps, and continues until none is left. Rejects if systemd does not answer. */
  find(): Promise<void>
  /** Ids of the steps, whose files must stay. */
  ids(): readonly string[]
  /** Why nothing starts while there are such steps. */
  reason(): string | undefined
  close(): void
}

/** Every step that an agent ever started has such a unit (see `unitName` in stages/package/attempt.ts). */
const stepUnitPattern = 'skyhookd-*.service'
const stepIdPattern = /-([0-9a-f]{16})\.service$/
/** A credential provider of the kubelet that an agent ran (host/kubelet/run-plugin.ts), and may have left behind. */
const pluginUnitPrefix = 'skyhookd-credential-provider-'
/** The part of a step's unit name after the package, even if the package is called `credential-provider`. */
const modePattern = new RegExp(`(?:^|-)(?:${stagesWithSteps.join('|')})-`)
const lookIntervalMs = 10_000
const maxNamedUnits = 3

/** Units of the steps that run on this host, regardless of who started them. */
export async function listRunningSteps(systemd: Pick<Units, 'listLive'>): Promise<readonly string[]> {
  return (await systemd.listLive(stepUnitPattern)).filter(
    (unit) => !unit.startsWith(pluginUnitPrefix) || modePattern.test(unit.slice(pluginUnitPrefix.length)),
  )
}

/** Id of the attempt of a unit. */
export const stepIdOf = (unit: string): string | undefined => stepIdPattern.exec(unit)?.[1]

export function findStraySteps(ports: {
  readonly systemd: Units
  readonly connection: BusConnection
  readonly journal: () => Journal
  readonly clock: Clock
  readonly log: Log
  readonly wake: () => void
}): StraySteps {
  const { systemd, connection, journal, clock, log, wake } = ports
  let strays: readonly string[] = []
  let stopLooking = (): void => undefined

  async function find(): Promise<void> {
    const live = await listRunningSteps(systemd)
    const known = new Set(openSteps(journal()).map(({ unit }) => unit))
    const found = live.filter((unit) => !known.has(unit))
    if (found.join() !== strays.join()) {
      if (found.length > 0) log.warn({ units: found }, 'unknown steps are running, waiting for them to end')
      else log.info({}, 'unknown steps have ended')
    }
    strays = found
    stopLooking()
    if (found.length === 0) return wake()
    const lookAgain = (): void => void find().catch(() => undefined) // D-Bus is unavailable: the next check finds them
    const stops = [
      systemd.onJobEnd(({ unit }) => strays.includes(unit) && lookAgain()),
      connection.onState(({ state }) => state === 'connected' && lookAgain()),
      startInterval(clock, lookIntervalMs, lookAgain, { isBackground: true }),
    ]
    stopLooking = () => stops.forEach((stop) => stop())
  }

  return {
    find,
    ids: () => strays.flatMap((unit) => stepIdOf(unit) ?? []),
    reason() {
      if (strays.length === 0) return undefined
      return (
        `waiting for steps that run on the host but are not in its journal: ${named(strays, maxNamedUnits)}; ` +
        'to end one, run `systemctl stop` with its name on the host'
      )
    },
    close: () => stopLooking(),
  }
}
