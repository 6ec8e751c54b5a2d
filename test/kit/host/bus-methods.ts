/** The methods of systemd and logind that the agent calls over the bus, on a simulated host. */
import { Variant } from 'dbus-next/lib/variant.js'
import type { BusCall } from '../../../src/host/dbus/messages.ts'
import { BusError } from '../../../src/host/dbus/errors.ts'
import { unitPath } from '../../../src/host/systemd/unit-properties.ts'
import type { Logind } from './logind.ts'
import type { SimulatedSystemd } from './systemd.ts'
import type { Unit } from './unit.ts'
import { readUnitRequest } from './unit-request.ts'

export type BusServices = {
  readonly systemd: SimulatedSystemd
  readonly logind: Logind
  readonly isStopping: () => boolean
}

/** Carries a call out at once and returns the values of its reply; throws BusError. */
export function carryOut({ systemd, logind, isStopping }: BusServices, call: BusCall, sender: object) {
  const { member, path, body = [] } = call
  const [first, second, third] = body
  const name = String(first)

  const systemdState = (property: string): Variant => {
    if (property === 'SystemState') return new Variant('s', isStopping() ? 'stopping' : 'running')
    return new Variant('s', systemd.version())
  }

  const propertyOf = (owner: string, property: string): Variant => {
    if (owner.endsWith('login1.Manager')) return new Variant('b', logind.isPreparing())
    if (owner.endsWith('systemd1.Manager')) return systemdState(property)
    if (property === 'Id') return new Variant('s', 'dbus.service')
    return new Variant('ay', Buffer.from(unitAt(path)?.invocationId ?? '', 'hex'))
  }

  const unitAt = (path: string): Unit | undefined => {
    for (const unit of systemd.all()) if (unitPath(unit.name) === path) return unit
    return undefined
  }

  switch (member) {
    case 'Subscribe':
    case 'Reload':
      return []
    case 'StartTransientUnit':
      return [systemd.startTransient(readUnitRequest(name, third as readonly [string, Variant][]), sender)]
    case 'StopUnit':
      return [systemd.stop(name)]
    case 'RestartUnit':
      return [systemd.restart(name)]
    case 'RefUnit':
      return (systemd.reference(name, sender), [])
    case 'UnrefUnit':
      return (systemd.unreference(name, sender), [])
    case 'ResetFailedUnit':
      return (systemd.resetFailed(name), [])
    case 'ListUnitsByNames':
      return [(first as string[]).map((unit) => rowOf(unit, systemd.get(unit)))]
    case 'ListUnitsByPatterns': {
      const [prefix = '', suffix = ''] = String((second as string[])[0]).split('*')
      const found = [...systemd.all()].filter((unit) => unit.name.startsWith(prefix) && unit.name.endsWith(suffix))
      return [found.map((unit) => rowOf(unit.name, unit))]
    }
    case 'Get':
      return [propertyOf(name, String(second))]
    case 'GetAll':
      return [propertiesOf(unitAt(path))]
    case 'ListInhibitors':
      return [
        logind.inhibitors().map(({ what = 'shutdown', who, why, mode = 'block' }) => [what, who, why, mode, 0, 321]),
      ]
    case 'RebootWithFlags':
    case 'Reboot':
      return (logind.reboot(), [])
    default:
      throw new BusError('org.freedesktop.DBus.Error.UnknownMethod', `the simulated host knows no method ${member}`)
  }
}

function rowOf(name: string, unit: Unit | undefined): readonly unknown[] {
  const { activeState = 'inactive', subState = 'dead', job = 0 } = unit ?? {}
  return [name, '', unit ? 'loaded' : 'not-found', activeState, subState, '', unitPath(name), job, '', '/']
}

function propertiesOf(unit: Unit | undefined): Readonly<Record<string, Variant>> {
  return {
    LoadState: new Variant('s', unit ? 'loaded' : 'not-found'),
    ActiveState: new Variant('s', unit?.activeState ?? 'inactive'),
    SubState: new Variant('s', unit?.subState ?? 'dead'),
    Job: new Variant('(uo)', [unit?.job ?? 0, '/']),
    InvocationID: new Variant('ay', Buffer.from(unit?.invocationId ?? '', 'hex')),
    Result: new Variant('s', unit?.result ?? 'success'), // a missing unit answers this, too
    ExecMainCode: new Variant('i', unit?.execMainCode ?? 0),
    ExecMainStatus: new Variant('i', unit?.execMainStatus ?? 0),
    NRestarts: new Variant('u', unit?.nRestarts ?? 0),
    Type: new Variant('s', unit?.isOneshot ? 'oneshot' : 'simple'),
    ConditionResult: new Variant('b', unit?.conditionResult ?? true),
    ConditionTimestamp: new Variant('t', unit ? 1n : 0n),
  }
}
