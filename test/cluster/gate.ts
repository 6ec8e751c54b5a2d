import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/**
 * A TCP gate before a server: while it is shut, connections through it break and new ones are refused, as with a cut
 * cable.
 */
export type Gate = { readonly port: number; shut(): void; open(): void; close(): Promise<void> }

export async function openGate(target: number): Promise<Gate> {
  const sockets = new Set<Socket>()
  let isOpen = true
  const server = createServer((inner) => {
    if (!isOpen) return void inner.destroy()
    const outer = connect(target, '127.0.0.1')
    for (const [socket, other] of [
      [inner, outer],
      [outer, inner],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => other.destroy())
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
      socket.pipe(other)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const shut = (): void => {
    isOpen = false
    for (const socket of sockets) socket.destroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    shut,
    open() {
      isOpen = true
    },
    async close() {
      shut()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
