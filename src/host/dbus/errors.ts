/** The three ways in which a call on the bus fails, and what is known about its effect. */
import { messageOf } from '../../schemas/json.ts'

/** The bus or the service answered with an error: what was asked for did not happen. */
export class BusError extends Error {
  /** The error's name on the bus, for example `org.freedesktop.systemd1.NoSuchUnit`. */
  override readonly name: string

  constructor(name: string, text: string) {
    super(text || name)
    this.name = name
  }
}

/** `unreadable`: an answer came, but it is too large or malformed. */
export type NoReplyReason = 'timeout' | 'connection-lost' | 'aborted' | 'unreadable'

/** The call went out and no usable answer came: it may have been carried out or not. */
export class NoReplyError extends Error {
  override readonly name = 'NoReplyError'
  readonly reason: NoReplyReason

  constructor(reason: NoReplyReason, message: string, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
  }
}

/** There is no connection to the bus: nothing was requested. */
export class NotConnectedError extends Error {
  override readonly name = 'NotConnectedError'
}

/** Errors of the bus itself when the service ended or stayed silent during the call. */
const noReplyErrorNames = new Set([
  'org.freedesktop.DBus.Error.NoReply',
  'org.freedesktop.DBus.Error.Disconnected',
  'org.freedesktop.DBus.Error.Timeout',
  'org.freedesktop.DBus.Error.TimedOut',
])

/** True when the call may have had its effect anyway: look before repeating it. */
export function isOutcomeUnknown(error: unknown): boolean {
  return error instanceof NoReplyError || (error instanceof BusError && noReplyErrorNames.has(error.name))
}

/** One line for a reason or a log: the message of the error, with its bus name if it has one. */
export function describeError(error: unknown): string {
  if (error instanceof BusError) return error.message === error.name ? error.name : `${error.message} (${error.name})`
  return messageOf(error)
}
