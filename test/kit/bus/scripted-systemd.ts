import { Variant } from 'dbus-next/lib/variant.js'
import type { BusCall } from '../../../src/host/dbus/connection.ts'
import { BusError } from '../../../src/host/dbus/errors.ts'
import { createMessageReader } from '../../../src/host/dbus/framing.ts'
import { createBusConnection } from '../../../src/host/dbus/reconnecting.ts'
import { decodeBody, encodeMessage, messageType } from '../../../src/host/dbus/wire.ts'
import { createUnits } from '../../../src/host/systemd/units.ts'
import { startProcess } from '../host/agent-process.ts'
import { type BusFault, createBus } from '../host/bus.ts'
import { createSeededRandom, createVirtualClock } from '../virtual-clock.ts'

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

/** A call as systemd gets it. */
type ReceivedCall = BusCall & { readonly body: readonly unknown[] }

type Reply =
  | { readonly signature?: string; readonly body?: readonly unknown[] }
  | { readonly error: string; readonly text?: string }
/** One that comes later has no time limit. */
type FakeReply = Reply | BusFault | Promise<Reply>

/**
 * A systemd whose units and answers the test sets, on a bus in memory, and a connection to it. Signals come when the
 * clock is moved, by no time if need be.
 */
export function createScriptedSystemd() {
  const clock = createVirtualClock(undefined, { settleTurns: 0 })
  const units = new Map<string, FakeUnit>()
  const services = new Map<string, (call: ReceivedCall) => FakeReply>()
  const calls: ReceivedCall[] = []
  let version = '257.4-1'
  let reply: Reply | Promise<Reply>

  const bus = createBus({
    clock,
    carryOut: () => (reply instanceof Promise ? reply.then(valuesOf) : valuesOf(reply)),
    onDisconnect: () => undefined,
  })
  bus.setFault((call) => {
    const received = { ...call, body: sentOver(call.signature, call.body) }
    calls.push(received)
    const next = services.get(call.member)?.(received) ?? unknownMethod(call)
    if (typeof next === 'string') return next
    reply = next
    return undefined
  })
  const process = startProcess({ id: 1, clock, wallMs: () => clock.wallMs(), uptimeMs: () => clock.steadyMs() })
  const connection = createBusConnection({
    clock,
    random: createSeededRandom(1),
    sockets: { bus: '', systemd: '' },
    connect: async () => bus.connect(process, async () => undefined),
  })

  function answers(member: string, service: FakeReply | ((call: ReceivedCall) => FakeReply)): void {
    services.set(member, typeof service === 'function' ? service : () => service)
  }

  const byPath = (path: string) =>
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
  answers('ListUnitsByNames', ({ body }) => ({
    signature: 'a(ssssssouso)',
    body: [(body[0] as string[]).map(row)],
  }))
  // patterns of the form `prefix-*.service`
  answers('ListUnitsByPatterns', ({ body }) => {
    const [prefix = '', suffix = ''] = String((body[1] as string[])[0]).split('*')
    const names = [...units.keys()].filter((name) => name.startsWith(prefix) && name.endsWith(suffix))
    return { signature: 'a(ssssssouso)', body: [names.map(row)] }
  })
  answers('Get', ({ body, path }) => ({
    signature: 'v',
    body: [
      body[1] === 'Version'
        ? new Variant('s', version)
        : new Variant('ay', Buffer.from(byPath(path)?.invocationId ?? '', 'hex')),
    ],
  }))
  answers('GetAll', ({ path }) => {
    const unit = byPath(path)
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
  for (const member of ['Subscribe', 'RefUnit', 'UnrefUnit', 'ResetFailedUnit', 'Reload']) answers(member, {})
  for (const member of ['StopUnit', 'StartTransientUnit']) answers(member, { signature: 'o', body: ['/job/1'] })

  return {
    clock,
    connection,
    /** The host's units, set by the test. */
    hostUnits: units,
    units: createUnits(connection),
    /** Every call so far. */
    calls,
    calledMembers: () => calls.map(({ member }) => member),
    /** Sets the answer of a method: a constant, or a function of the call. */
    answers,
    /** As systemd says it; 257 unless set. */
    setVersion: (next: string) => void (version = next),
    /** Every connection ends, and none is accepted any more. */
    stopBus: () => bus.setUp(false),
    /** Every connection ends; the next one is accepted. */
    hangUp(): void {
      bus.setUp(false)
      bus.setUp(true)
    },
    /** Sends systemd's signal that a job ended. */
    jobRemoved: (unit: string, result = 'done', job = '/job/1') =>
      bus.signal('org.freedesktop.systemd1.Manager', 'JobRemoved', '/org/freedesktop/systemd1', [1, job, unit, result]),
    /** What the promise brings within `ms`. Throws when it is not settled by then. */
    async settled<T>(promise: Promise<T>, ms = 0): Promise<T> {
      let isSettled = false
      const settle = (): void => void (isSettled = true)
      promise.then(settle, settle)
      await clock.advance(ms)
      if (!isSettled) throw new Error(`the promise is not settled after ${ms} ms`)
      return await promise
    },
    /** Sends the bus's signal that systemd left it. */
    leaveBus: () =>
      bus.signal('org.freedesktop.DBus', 'NameOwnerChanged', '/org/freedesktop/DBus', [
        'org.freedesktop.systemd1',
        ':1.1',
        '',
      ]),
  }
}

export type ScriptedSystemd = ReturnType<typeof createScriptedSystemd>

const unknownMethod = ({ member }: BusCall): Reply => ({
  error: 'org.freedesktop.DBus.Error.UnknownMethod',
  text: `no ${member}`,
})

function valuesOf(reply: Reply): readonly unknown[] {
  if ('error' in reply) throw new BusError(reply.error, reply.text ?? '')
  return sentOver(reply.signature, reply.body)
}

/** Values as they arrive: the codec is the real one. */
function sentOver(signature = '', body: readonly unknown[] = []): readonly unknown[] {
  let values: readonly unknown[] = []
  const read = createMessageReader({ isExpected: () => true, onMessage: (message) => (values = decodeBody(message)) })
  read(encodeMessage({ type: messageType.methodReturn, serial: 1, replySerial: 1, signature, body }))
  return values
}
