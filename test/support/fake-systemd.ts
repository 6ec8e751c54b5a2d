import { Variant } from 'dbus-next/lib/variant.js'
import { systemClock, systemRandom } from '../../src/daemon/platform/system-clock.ts'
import { createBusConnection } from '../../src/host/dbus/reconnecting.ts'
import { createUnits } from '../../src/host/systemd/units.ts'
import type { Clock } from '../../src/schemas/clock.ts'
import { startFakeBus } from './fake-bus.ts'

export type FakeUnit = {
  loadState?: string
  activeState?: string
  subState?: string
  job?: number
  invocationId?: string
  result?: string
  execMainCode?: number
  execMainStatus?: number
  nRestarts?: number
  conditionResult?: boolean
  type?: string
}

/** A fake bus with a systemd whose units the test sets, and a connection to it. `clock`: for the time limits of calls. */
export async function startFakeSystemd({ clock = systemClock }: { readonly clock?: Clock | undefined } = {}) {
  const bus = await startFakeBus()
  const units = new Map<string, FakeUnit>()
  const byPath = (path = '') =>
    units.get(decodeURIComponent(path.slice(path.lastIndexOf('/') + 1).replaceAll('_', '%')))
  const row = (name: string) => {
    const unit = units.get(name)
    const {
      loadState = unit ? 'loaded' : 'not-found',
      activeState = 'inactive',
      subState = 'dead',
      job = 0,
    } = unit ?? {}
    return [name, '', loadState, activeState, subState, '', '/org/freedesktop/systemd1/unit/x', job, '', '/']
  }
  bus.answers('ListUnitsByNames', ({ message }) => ({
    signature: 'a(ssssssouso)',
    body: [(message.body[0] as string[]).map(row)],
  }))
  // patterns of the form `prefix-*.service`
  bus.answers('ListUnitsByPatterns', ({ message }) => {
    const [prefix = '', suffix = ''] = String((message.body[1] as string[])[0]).split('*')
    const names = [...units.keys()].filter((name) => name.startsWith(prefix) && name.endsWith(suffix))
    return { signature: 'a(ssssssouso)', body: [names.map(row)] }
  })
  let version = '257.4-1'
  bus.answers('Get', ({ message }) => ({
    signature: 'v',
    body: [
      message.body[1] === 'Version'
        ? new Variant('s', version)
        : new Variant('ay', Buffer.from(byPath(message.path)?.invocationId ?? '', 'hex')),
    ],
  }))
  bus.answers('GetAll', ({ message }) => {
    const unit = byPath(message.path)
    const values = {
      LoadState: new Variant('s', unit?.loadState ?? (unit ? 'loaded' : 'not-found')),
      ActiveState: new Variant('s', unit?.activeState ?? 'inactive'),
      SubState: new Variant('s', unit?.subState ?? 'dead'),
      Job: new Variant('(uo)', [unit?.job ?? 0, '/']),
      InvocationID: new Variant('ay', Buffer.from(unit?.invocationId ?? '', 'hex')),
      Result: new Variant('s', unit?.result ?? 'success'), // a missing unit answers this, too
      ExecMainCode: new Variant('i', unit?.execMainCode ?? 0),
      ExecMainStatus: new Variant('i', unit?.execMainStatus ?? 0),
      NRestarts: new Variant('u', unit?.nRestarts ?? 0),
      Type: new Variant('s', unit?.type ?? 'simple'),
      ConditionResult: new Variant('b', unit?.conditionResult ?? true),
      ConditionTimestamp: new Variant('t', unit ? 1_795_182_215_350_008n : 0n),
    }
    return { signature: 'a{sv}', body: [values] }
  })
  for (const member of ['RefUnit', 'UnrefUnit', 'ResetFailedUnit', 'Reload']) bus.answers(member, {})
  for (const member of ['StopUnit', 'StartTransientUnit']) bus.answers(member, { signature: 'o', body: ['/job/1'] })
  const connection = createBusConnection({ clock, random: systemRandom, socketPath: bus.socketPath })
  return {
    bus,
    connection,
    /** The host's units, set by the test. */
    hostUnits: units,
    units: createUnits(connection),
    /** As systemd says it; 257 unless set. */
    setVersion: (next: string) => void (version = next),
    /** From now on transient units end at once with success, and restarts succeed; both with the signal of their job. */
    carriesOutJobs() {
      let jobs = 0
      const carryOut = (unit: string, state: FakeUnit) => {
        const job = `/job/${++jobs}`
        const invocationId = (++jobs).toString(16).padStart(32, '0')
        units.set(unit, { subState: 'running', ...state, invocationId })
        setImmediate(() => bus.signal('JobRemoved', 'uoss', [jobs, job, unit, 'done']))
        return { signature: 'o', body: [job] }
      }
      bus.answers('StartTransientUnit', ({ message }) =>
        carryOut(String(message.body[0]), { activeState: 'inactive', execMainCode: 1, execMainStatus: 0 }),
      )
      bus.answers('RestartUnit', ({ message }) => carryOut(String(message.body[0]), { activeState: 'active' }))
    },
    /** Sends systemd's signal that a job ended. */
    jobRemoved: (unit: string, result = 'done', job = '/job/1', sender?: string) =>
      bus.signal('JobRemoved', 'uoss', [1, job, unit, result], sender),
    async [Symbol.asyncDispose]() {
      connection.close()
      await bus.stop()
    },
  }
}
