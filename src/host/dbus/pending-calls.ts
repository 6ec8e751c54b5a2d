import type { Clock } from '../../schemas/clock.ts'
import { BusError, NoReplyError, type NoReplyReason } from './errors.ts'
import type { ReceivedMessage } from './framing.ts'
import type { MessageHeader } from './header.ts'
import { decodeBody, messageType } from './wire.ts'

const defaultCallTimeoutMs = 25_000 // what libdbus and sd-bus use
/** The largest answer to what the agent asks is all of a unit's properties: 50 KiB, and the step's arguments. */
const maxAnswerBytes = 4 * 1024 * 1024

export type PendingCallOptions = {
  readonly member: string
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Called before anything after the answer in the stream is read. */
  readonly onAnswer?: ((values: readonly unknown[]) => void) | undefined
}

export type PendingCalls = {
  /** Sends under a serial of its own and waits for the answer. */
  send(options: PendingCallOptions, write: (serial: number) => void): Promise<readonly unknown[]>
  /** True for the answer to a pending call. An answer that is too large to be read rejects its call at once. */
  isExpected(header: MessageHeader): boolean
  settle(message: ReceivedMessage): void
  rejectAll(cause: Error): void
}

type PendingCall = {
  readonly resolve: (values: readonly unknown[]) => void
  readonly reject: (error: Error) => void
  readonly giveUp: (reason: NoReplyReason, message: string, cause?: unknown) => void
}

/** Calls that wait for their reply. Each has a timeout. */
export function createPendingCalls(clock: Clock): PendingCalls {
  const calls = new Map<number, PendingCall>()
  let lastSerial = 0

  return {
    async send({ member, timeoutMs = defaultCallTimeoutMs, signal, onAnswer }, write) {
      lastSerial = lastSerial >= 0xffff_ffff ? 1 : lastSerial + 1
      const serial = lastSerial
      const answer = Promise.withResolvers<readonly unknown[]>()
      const giveUp: PendingCall['giveUp'] = (reason, message, cause) => {
        calls.delete(serial)
        answer.reject(new NoReplyError(reason, `${member}: ${message}`, { cause }))
      }
      const resolve = (values: readonly unknown[]): void => {
        onAnswer?.(values)
        answer.resolve(values)
      }
      write(serial)
      calls.set(serial, { resolve, reject: answer.reject, giveUp })
      const cancelTimer = clock.startTimer(timeoutMs, () => giveUp('timeout', `no answer within ${timeoutMs} ms`))
      const onAbort = () => giveUp('aborted', 'aborted before the answer', signal?.reason)
      signal?.addEventListener('abort', onAbort, { once: true })
      try {
        return await answer.promise
      } finally {
        cancelTimer()
        signal?.removeEventListener('abort', onAbort)
      }
    },

    isExpected({ type, replySerial = 0, bodyBytes }) {
      if (type !== messageType.methodReturn && type !== messageType.error) return false
      const call = calls.get(replySerial)
      if (call && bodyBytes > maxAnswerBytes)
        call.giveUp('unreadable', `its answer of ${bodyBytes} bytes is larger than ${maxAnswerBytes}`)
      return calls.has(replySerial) // not an answer after the timeout
    },

    settle(message) {
      const { type, replySerial = 0, errorName = 'org.freedesktop.DBus.Error.Failed' } = message.header
      const call = calls.get(replySerial)
      if (!call) return
      let values: readonly unknown[]
      try {
        values = decodeBody(message)
      } catch (error) {
        return call.giveUp('unreadable', `its answer cannot be read`, error)
      }
      calls.delete(replySerial)
      const [text] = values
      if (type === messageType.methodReturn) call.resolve(values)
      else call.reject(new BusError(errorName, typeof text === 'string' ? text : ''))
    },

    rejectAll(cause) {
      const message = `the connection to the system bus ended: ${cause.message}`
      for (const call of calls.values()) call.reject(new NoReplyError('connection-lost', message, { cause }))
      calls.clear()
    },
  }
}
