/**
 * The parts of dbus-next that turn messages into bytes and back. The package types only its high-level client, which is
 * not used: it leaves calls pending forever when the bus goes away.
 */
declare module 'dbus-next/lib/marshall-compat.js' {
  import type { DBusMessage } from 'dbus-next/lib/message-type.js'

  export function marshallMessage(message: DBusMessage): [bytes: Buffer, fds: readonly unknown[]]
  export function messageToJsFmt<T extends { signature?: string; body?: readonly unknown[] }>(
    message: T,
  ): T & { signature: string; body: unknown[] }
}

declare module 'dbus-next/lib/message-type.js' {
  export type DBusMessage = {
    type: number
    serial: number
    flags?: number | undefined
    path?: string | undefined
    interface?: string | undefined
    member?: string | undefined
    errorName?: string | undefined
    replySerial?: number | undefined
    destination?: string | undefined
    sender?: string | undefined
    signature?: string | undefined
    body?: readonly unknown[] | undefined
  }
  export const Message: new (message: DBusMessage) => DBusMessage
}

declare module 'dbus-next/lib/dbus-buffer.js' {
  const DBusBuffer: new (
    buffer: Buffer,
    startPosition: number,
    endian: number,
    fds: readonly unknown[] | undefined,
    options: { ayBuffer: boolean },
  ) => { read(signature: string): unknown[]; align(powerOfTwo: number): void }
  export = DBusBuffer
}

declare module 'dbus-next/lib/variant.js' {
  export class Variant<T = unknown> {
    constructor(signature: string, value: T)
    readonly signature: string
    readonly value: T
  }
}
