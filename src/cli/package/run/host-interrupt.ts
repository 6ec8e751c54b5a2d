/** Interrupts on the throw-away host, as the agent makes them; killed ones, as accidents do. */
import { BusError, describeError, isOutcomeUnknown } from '../../../host/dbus/errors.ts'
import type { BusConnection } from '../../../host/dbus/reconnecting.ts'
import { reboot } from '../../../host/systemd/reboot.ts'
import { restartService } from '../../../host/systemd/service-restart.ts'
import { type Clock, sleep } from '../../../schemas/clock.ts'
import type { Interrupt } from '../../../schemas/skyhook.ts'
import { serviceUnit } from '../../../schemas/systemd.ts'
import { CommandError, exitCodes } from '../../framework/command-error.ts'
import type { InterruptRun } from './life.ts'
import type { ThrowAwayHost } from './throw-away-host.ts'

/** The effect of the operator's restartAllServices: it reloads kernel settings and restarts no service. */
const sysctlUnit = 'systemd-sysctl.service'
/** Services have started to stop by then. */
const powerCutDelayMs = 200
/** Units restart by themselves, or stay failed, within that. */
const afterKillMs = 500

export type Surroundings = { readonly clock: Clock; readonly signal: AbortSignal }

/** Returns what went wrong, for people; undefined when the interrupt took place. @throws CommandError */
export async function interruptHost(
  host: ThrowAwayHost,
  { type, services = [] }: Interrupt,
  run: InterruptRun,
  around: Surroundings,
): Promise<string | undefined> {
  switch (type) {
    case 'noop':
      return undefined
    case 'reboot':
      return await rebootHost(host, run, around)
    case 'restartAllServices':
      return await restartUnits(host, [sysctlUnit], run, around)
    case 'service':
      return await restartUnits(host, services.map(serviceUnit), run, around)
  }
}

async function rebootHost(
  host: ThrowAwayHost,
  run: InterruptRun,
  { clock, signal }: Surroundings,
): Promise<string | undefined> {
  const request = async (): Promise<void> => {
    const outcome = await reboot(host.connection)
    if (outcome.outcome === 'refused')
      throw new CommandError(exitCodes.failed, `the host refused to reboot: ${outcome.reason}`)
    if (run !== 'killed') return
    await sleep(clock, powerCutDelayMs, signal)
    host.cutPower()
  }
  try {
    await host.restart(run === 'killed' ? 'power-cut' : 'reboot', request)
    return undefined
  } catch (error) {
    // A host that refuses, or does not boot any more, is the doing of the package.
    if (error instanceof CommandError) return error.message
    throw error
  }
}

async function restartUnits(
  host: ThrowAwayHost,
  names: readonly string[],
  run: InterruptRun,
  { clock, signal }: Surroundings,
): Promise<string | undefined> {
  const { units, connection } = host
  await units.reload({ signal })
  const failures: string[] = []
  for (const unit of names) {
    if (run === 'killed') {
      try {
        await units.restart(unit, { signal })
      } catch (error) {
        if (error instanceof BusError) return `restarting ${unit}: ${describeError(error)}` // not there, masked, …
        throw error
      }
      await killUnit(connection, unit)
      await sleep(clock, afterKillMs, signal)
      continue
    }
    const previousInvocation = (await units.readState(unit)).invocationId ?? ''
    const outcome = await restartService({ units, clock, unit, previousInvocation, signal })
    if (outcome.outcome !== 'restarted' && outcome.outcome !== 'not-needed') failures.push(outcome.detail)
  }
  return failures.length === 0 ? undefined : failures.join('\n')
}

/** Kills every process of a unit at once (SIGKILL); a unit that has ended is fine. */
export async function killUnit(connection: BusConnection, unit: string): Promise<void> {
  const call = {
    destination: 'org.freedesktop.systemd1',
    path: '/org/freedesktop/systemd1',
    interface: 'org.freedesktop.systemd1.Manager',
    member: 'KillUnit',
    signature: 'ssi',
    body: [unit, 'all', sigkill],
  }
  try {
    await connection.withBus((bus) => bus.call(call))
  } catch (error) {
    if (!(error instanceof BusError) || isOutcomeUnknown(error)) throw error
  }
}

const sigkill = 9
