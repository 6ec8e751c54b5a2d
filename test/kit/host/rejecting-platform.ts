/** The ports of an agent that reject what a test wants rejected. */
import type { Platform } from '../../../src/daemon/platform/platform.ts'
import type { BusConnection } from '../../../src/host/dbus/reconnecting.ts'

/** One call of a port, by what it is about: ids, numbers and names of steps are left out of it. */
export type PortCall = {
  readonly port: 'root' | 'bus' | 'api' | 'store'
  /** Of the port; on the bus the member, of the API server the verb. */
  readonly method: string
  readonly target: string
}

/** Asked before each call; a call that gets an error rejects with it and does nothing. */
export type Rejection = (call: PortCall) => Error | undefined

/** The census of an agent is another process, and keeps its own connection. */
export function rejectingPlatform(platform: Platform, rejection: Rejection): Platform {
  return {
    ...platform,
    root: rejecting(platform.root, 'root', rejection),
    connectBus: () => rejectingBus(platform.connectBus(), rejection),
    connectApi(onRequest) {
      const transport = platform.connectApi(onRequest)
      return {
        ...transport,
        async json(method, path, options) {
          const error = rejection({ port: 'api', method, target: withoutNumbers(path) })
          if (error) throw error
          return await transport.json(method, path, options)
        },
      }
    },
    openImageStore: (folder) => rejecting(platform.openImageStore(folder), 'store', rejection),
  }
}

/** The same port; its asynchronous methods ask first. */
function rejecting<Port extends object>(port: Port, name: PortCall['port'], rejection: Rejection): Port {
  const ask =
    (method: string, call: (...args: unknown[]) => unknown) =>
    (...args: unknown[]): unknown => {
      const [first] = args
      const target = typeof first === 'string' ? withoutNumbers(first) : ''
      const error = synchronous.has(method) ? undefined : rejection({ port: name, method, target })
      return error ? Promise.reject(error) : call(...args)
    }
  return Object.fromEntries(
    Object.entries(port).map(([method, call]) => [method, ask(method, call as (...args: unknown[]) => unknown)]),
  ) as Port
}

const synchronous: ReadonlySet<string> = new Set(['newTemporaryToken'])

function rejectingBus(connection: BusConnection, rejection: Rejection): BusConnection {
  return {
    ...connection,
    withBus: async (use, options) =>
      await connection.withBus(
        async (bus) =>
          await use({
            ...bus,
            async call(call, callOptions) {
              const [first = ''] = call.body ?? []
              const target = withoutNumbers(`${String(first)} ${call.path.slice(call.path.lastIndexOf('/') + 1)}`)
              const error = rejection({ port: 'bus', method: call.member, target })
              if (error) throw error
              return await bus.call(call, callOptions)
            },
          }),
        options,
      ),
  }
}

const withoutNumbers = (text: string): string =>
  text.replaceAll(/skyhookd[-_]\S+service/g, 'step').replaceAll(/[0-9a-f]{8,}(?:-[0-9a-f]{4,})*|\d+/g, '#')
