import type { BusCall } from '../../../src/host/dbus/messages.ts'
import { BusError } from '../../../src/host/dbus/errors.ts'
import { createMessageReader } from '../../../src/host/dbus/framing.ts'
import { createBusConnection } from '../../../src/host/dbus/reconnecting.ts'
import { decodeBody, encodeMessage, messageType } from '../../../src/host/dbus/wire.ts'
import { createUnits } from '../../../src/host/systemd/units.ts'
import { createSeededRandom, createVirtualClock } from '../virtual-clock.ts'
import type { BusScript } from './bus.ts'
import { createSimulatedHost } from './simulated-host.ts'
import { createSimulatedRoot } from './simulated-root.ts'
import type { StepRun } from './step-processes.ts'

/** A call as systemd gets it. */
type ReceivedCall = BusCall & { readonly body: readonly unknown[] }
type Answer = ReturnType<BusScript>

/**
 * A simulated host with an agent's connection to its systemd, whose answers the test may change. Signals come when the
 * clock is moved, by no time if need be.
 */
export function connectSystemd(run: StepRun = { durationMs: 60_000 }) {
  const clock = createVirtualClock(undefined, { settleTurns: 0 })
  const random = createSeededRandom(1)
  const simulated = createSimulatedHost({ name: 'n1', clock, seed: 1, registry: () => undefined, runStep: () => run })
  const { bus, disk, systemd } = simulated
  const process = simulated.startProcess('agent')
  const passed = async (): Promise<void> => undefined
  const scripts = new Map<string, (call: ReceivedCall, carryOut: () => readonly unknown[]) => Answer>()
  const calls: ReceivedCall[] = []
  bus.setScript((call, carryOut) => {
    const received = { ...call, body: sentOver(call) }
    calls.push(received)
    return scripts.get(call.member)?.(received, carryOut)
  })
  const connection = createBusConnection({
    clock,
    random,
    sockets: { bus: '', systemd: '' },
    connect: async () => bus.connect(process, passed),
  })

  return {
    clock,
    simulated,
    root: createSimulatedRoot({ disk, random, passed }),
    connection,
    units: createUnits(connection),
    setUnit: systemd.setUnit,
    setVersion: systemd.setVersion,
    /** Every call so far. */
    calls,
    calledMembers: () => calls.map(({ member }) => member),
    /** Sets the answer of a method in place of the host's: a constant, or a function of the call. */
    answers(
      member: string,
      answer: Answer | ((call: ReceivedCall, carryOut: () => readonly unknown[]) => Answer),
    ): void {
      scripts.set(member, typeof answer === 'function' ? answer : () => answer)
    },
    /** Each call of the method is refused. */
    refuses(member: string, error: string, text = ''): void {
      scripts.set(member, () => {
        throw new BusError(error, text)
      })
    },
    /** Every connection ends; the next one is accepted. */
    hangUp(): void {
      bus.setUp(false)
      bus.setUp(true)
    },
    /** Sends systemd's signal that a job ended. */
    jobRemoved: (unit: string, result = 'done', job = '/job/1') =>
      bus.signal('org.freedesktop.systemd1.Manager', 'JobRemoved', '/org/freedesktop/systemd1', [1, job, unit, result]),
    /** Sends the bus's signal that systemd left it. */
    leaveBus: () =>
      bus.signal('org.freedesktop.DBus', 'NameOwnerChanged', '/org/freedesktop/DBus', [
        'org.freedesktop.systemd1',
        ':1.1',
        '',
      ]),
    /** What the promise brings within `ms`. Throws when it is not settled by then. */
    settled: async <T>(promise: Promise<T>, ms = 0): Promise<T> => {
      let isSettled = false
      const settle = (): void => void (isSettled = true)
      promise.then(settle, settle)
      await clock.advance(ms)
      if (!isSettled) throw new Error(`the promise is not settled after ${ms} ms`)
      return await promise
    },
  }
}

export type SystemdConnection = ReturnType<typeof connectSystemd>

/** The values of a call as they arrive: the codec is the real one. */
function sentOver({ signature = '', body = [] }: BusCall): readonly unknown[] {
  let values: readonly unknown[] = []
  const read = createMessageReader({ isExpected: () => true, onMessage: (message) => (values = decodeBody(message)) })
  read(encodeMessage({ type: messageType.methodReturn, serial: 1, replySerial: 1, signature, body }))
  return values
}
