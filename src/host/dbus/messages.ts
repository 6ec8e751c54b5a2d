/** Messages on the bus, in the form that callers and watchers use. */
export type BusCall = {
  readonly destination: string
  readonly path: string
  readonly interface: string
  readonly member: string
  readonly signature?: string
  readonly body?: readonly unknown[]
}

/** Which signals to ask the bus for. `sender` may be a well-known name; the signals carry its unique one. */
export type SignalMatch = {
  readonly sender: string
  readonly interface: string
  readonly member: string
  readonly path?: string
  readonly arg0?: string
}

export type BusSignal = { readonly sender: string; readonly path: string; readonly body: readonly unknown[] }
