/** The system bus of a simulated host: connections that end with it, calls that take time, signals to who listens. */
import type { BusCallOptions, SystemBus } from '../../../src/host/dbus/connection.ts'
import type { BusCall, BusSignal, SignalMatch } from '../../../src/host/dbus/messages.ts'
import { NoReplyError, NotConnectedError } from '../../../src/host/dbus/errors.ts'
import type { Clock } from '../../../src/schemas/clock.ts'
import type { AgentProcess } from './agent-process.ts'

/** What happens to a call. `lost-answer`: it is carried out, and the connection ends before the answer. */
export type BusFault = 'lost-call' | 'lost-answer' | 'silent'

/** Decides about each call: a fault, or other values as its answer, now or later. It throws BusError to refuse it. */
export type BusScript = (
  call: BusCall,
  carryOut: () => readonly unknown[],
) => BusFault | readonly unknown[] | Promise<readonly unknown[]> | undefined

const defaultCallTimeoutMs = 25_000

/** Its methods have effects, all others have none that outlives the connection. */
const effects = /^(?:StartTransientUnit|StopUnit|RestartUnit|ResetFailedUnit|Reload|Reboot|RebootWithFlags)$/

export function createBus(ports: {
  readonly clock: Clock
  readonly carryOut: (call: BusCall, sender: object) => readonly unknown[]
  /** systemd drops what the connection held. */
  readonly onDisconnect: (sender: object) => void
}) {
  const { clock, carryOut, onDisconnect } = ports
  const connections = new Set<Connection>()
  let isUp = true
  let script: BusScript | undefined

  type Listener = { readonly match: SignalMatch; readonly listener: (signal: BusSignal) => void }
  type Connection = { readonly listeners: Set<Listener>; readonly end: (why: string) => void }

  function connect(process: AgentProcess, passed: (failpoint: string) => Promise<void>): SystemBus {
    if (!isUp) throw new NotConnectedError('cannot connect to the system bus: connect ECONNREFUSED')
    const closed = Promise.withResolvers<Error>()
    const pending = new Set<(error: Error) => void>()
    let endReason: Error | undefined
    const connection: Connection = {
      listeners: new Set(),
      end(why) {
        if (endReason) return
        endReason = new Error(why)
        connections.delete(connection)
        onDisconnect(connection)
        const lost = new NoReplyError('connection-lost', `the connection to the system bus ended: ${why}`)
        for (const reject of pending) reject(lost)
        closed.resolve(endReason)
      },
    }
    connections.add(connection)
    process.onEnd(() => connection.end('the process ended'))

    const answerTo = (call: BusCall, { timeoutMs = defaultCallTimeoutMs, signal }: BusCallOptions) =>
      new Promise<readonly unknown[]>((resolve, reject) => {
        const giveUp = (reason: 'timeout' | 'aborted', text: string): void =>
          settle(() => reject(new NoReplyError(reason, `${call.member}: ${text}`)))
        const cancelTimer = process.clock.startTimer(timeoutMs, () =>
          giveUp('timeout', `no answer within ${timeoutMs} ms`),
        )
        const onAbort = (): void => giveUp('aborted', 'aborted before the answer')
        const onLost = (error: Error): void => settle(() => reject(error))
        const settle = (act: () => void): void => {
          pending.delete(onLost)
          cancelTimer()
          signal?.removeEventListener('abort', onAbort)
          act()
        }
        signal?.addEventListener('abort', onAbort, { once: true })
        pending.add(onLost)
        const carriedOut = () => carryOut(call, connection)
        try {
          const happens = script?.(call, carriedOut)
          if (happens === 'silent') return
          if (happens === 'lost-call') return connection.end('the bus closed the connection')
          const values = happens === undefined || happens === 'lost-answer' ? carriedOut() : happens
          if (happens === 'lost-answer') return connection.end('the bus closed the connection')
          if (values instanceof Promise) void values.then((late) => settle(() => resolve(late)), onLost)
          else settle(() => resolve(values))
        } catch (error) {
          settle(() => reject(error as Error))
        }
      })

    return {
      isPeer: false,
      closed: closed.promise,
      async call(call, options = {}) {
        options.signal?.throwIfAborted()
        if (endReason) throw new NotConnectedError(`not connected to the system bus: ${endReason.message}`)
        const values = await answerTo(call, options)
        if (effects.test(call.member)) await passed(`bus:${call.member}`)
        return values
      },
      onSignal(match, listener) {
        const entry = { match, listener }
        connection.listeners.add(entry)
        return () => void connection.listeners.delete(entry)
      },
      close: () => connection.end('closed by the agent'),
    }
  }

  return {
    connect,
    setScript: (next: typeof script) => void (script = next),
    isUp: () => isUp,
    /** dbus-daemon ends, or is started again. */
    setUp(next: boolean): void {
      isUp = next
      if (!next) for (const connection of connections) connection.end('the bus closed the connection')
    },
    /** To everybody who subscribed, a moment later. */
    signal(interfaceName: string, member: string, path: string, body: readonly unknown[]): void {
      clock.startTimer(0, () => {
        for (const { listeners } of connections)
          for (const { match, listener } of listeners)
            if (match.interface === interfaceName && match.member === member && (match.path ?? path) === path)
              listener({ sender: ':1.1', path, body })
      })
    },
  }
}
