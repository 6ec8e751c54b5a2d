import type { MessageHeader, ReceivedMessage } from './framing.ts'
import type { BusCall, BusSignal, SignalMatch } from './messages.ts'
import { BusError } from './errors.ts'
import { decodeBody, messageType } from './wire.ts'

export const busDriver = {
  destination: 'org.freedesktop.DBus',
  path: '/org/freedesktop/DBus',
  interface: 'org.freedesktop.DBus',
} as const

/** The signals that the agent listens to have a few hundred bytes. */
const maxSignalBytes = 64 * 1024

export type Subscriptions = {
  /** Takes effect before every later call. Returns a function that ends it. */
  add(match: SignalMatch, listener: (signal: BusSignal) => void): () => void
  /** True for a signal that somebody subscribed to, from the owner of the name that it is expected from. */
  isExpected(header: MessageHeader): boolean
  deliver(message: ReceivedMessage): void
  clear(): void
}

type Subscription = { readonly match: SignalMatch; readonly listener: (signal: BusSignal) => void }

export type SubscriptionPorts = {
  /** `onAnswer` is called before anything after the answer is read. */
  readonly call: (call: BusCall, onAnswer?: (values: readonly unknown[]) => void) => Promise<unknown>
  /** The connection receives no signals from here on. */
  readonly onDeaf: (reason: Error) => void
}

const ownerChanged = { interface: busDriver.interface, member: 'NameOwnerChanged', path: busDriver.path } as const

/**
 * The listeners of one connection, and the senders that they accept. Any local user can send any signal to any
 * connection: only the bus itself knows the owner of a name, and signals of other senders are dropped unread.
 */
export function createSubscriptions({ call, onDeaf }: SubscriptionPorts): Subscriptions {
  const subscriptions = new Set<Subscription>()
  /** By well-known name; undefined while it has no owner, or the bus has not answered yet. */
  const owners = new Map<string, string | undefined>()

  // Not awaited: the bus works in order, so the rule holds for the next call.
  function addMatch(match: SignalMatch): void {
    call({ ...busDriver, member: 'AddMatch', signature: 's', body: [matchRule(match)] }).catch((cause: unknown) =>
      onDeaf(new Error(`cannot subscribe to ${match.member}`, { cause })),
    )
  }

  function followOwner(name: string): void {
    if (name === busDriver.destination || name.startsWith(':') || owners.has(name)) return
    owners.set(name, undefined)
    addMatch({ sender: busDriver.destination, ...ownerChanged, arg0: name })
    call({ ...busDriver, member: 'GetNameOwner', signature: 's', body: [name] }, ([owner]) =>
      owners.set(name, String(owner)),
    ).catch((cause: unknown) => {
      if (cause instanceof BusError && cause.name === 'org.freedesktop.DBus.Error.NameHasNoOwner') return
      onDeaf(new Error(`cannot find out who owns ${name}`, { cause }))
    })
  }

  const isFromOwner = ({ match }: Subscription, header: MessageHeader): boolean =>
    isSignalOf(match, header) &&
    header.sender !== undefined &&
    header.sender === (owners.has(match.sender) ? owners.get(match.sender) : match.sender)

  return {
    add(match, listener) {
      const subscription = { match, listener }
      subscriptions.add(subscription)
      addMatch(match)
      followOwner(match.sender)
      return () => {
        if (!subscriptions.delete(subscription)) return
        // it ends with the connection anyway
        call({ ...busDriver, member: 'RemoveMatch', signature: 's', body: [matchRule(match)] }).catch(() => undefined)
      }
    },

    isExpected: (header) =>
      header.type === messageType.signal &&
      header.bodyBytes <= maxSignalBytes &&
      (isOwnerChange(header) || [...subscriptions].some((one) => isFromOwner(one, header))),

    deliver(message) {
      const { header } = message
      const body = readBody(message)
      if (!body) return
      const [name, , owner] = body
      if (isOwnerChange(header) && typeof name === 'string' && owners.has(name))
        owners.set(name, owner === '' ? undefined : String(owner))
      const signal = { sender: header.sender ?? '', path: header.path ?? '', body }
      for (const one of subscriptions) {
        if (isFromOwner(one, header) && (one.match.arg0 === undefined || one.match.arg0 === name)) one.listener(signal)
      }
    },

    clear: () => subscriptions.clear(),
  }
}

/**
 * The listeners of a connection to a service itself, without a bus: signals come without a subscription and without a
 * sender, and only the service can send them. There are no signals of a bus.
 */
export function createPeerSubscriptions(peerName: string): Subscriptions {
  const subscriptions = new Set<Subscription>()
  const isMatch = ({ match }: Subscription, header: MessageHeader): boolean =>
    match.sender === peerName && isSignalOf(match, header)
  return {
    add(match, listener) {
      const subscription = { match, listener }
      subscriptions.add(subscription)
      return () => subscriptions.delete(subscription)
    },
    isExpected: (header) =>
      header.type === messageType.signal &&
      header.bodyBytes <= maxSignalBytes &&
      [...subscriptions].some((one) => isMatch(one, header)),
    deliver(message) {
      const body = readBody(message)
      if (!body) return
      const { header } = message
      for (const one of subscriptions) {
        if (isMatch(one, header) && (one.match.arg0 === undefined || one.match.arg0 === body[0]))
          one.listener({ sender: peerName, path: header.path ?? '', body })
      }
    },
    clear: () => subscriptions.clear(),
  }
}

const isSignalOf = (match: SignalMatch, { interface: name, member, path }: MessageHeader): boolean =>
  match.member === member && match.interface === name && (match.path === undefined || match.path === path)

/** Undefined for a malformed message. */
function readBody(message: ReceivedMessage): readonly unknown[] | undefined {
  try {
    return decodeBody(message)
  } catch {
    return undefined
  }
}

const isOwnerChange = ({ sender, interface: name, member, path }: MessageHeader): boolean =>
  sender === busDriver.destination &&
  name === ownerChanged.interface &&
  member === ownerChanged.member &&
  path === ownerChanged.path

function matchRule(match: SignalMatch): string {
  const parts = { type: 'signal', ...match }
  return Object.entries(parts)
    .map(([key, value]) => `${key}='${value.replaceAll("'", "'\\''")}'`)
    .join(',')
}
