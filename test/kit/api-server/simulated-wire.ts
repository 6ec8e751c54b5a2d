import { createSeededRandom, createVirtualClock } from '../virtual-clock.ts'
import { readSchemas } from './definitions.ts'
import type { SimRequest } from './request.ts'
import type { Wire, WireRequest } from './semantics-step.ts'
import { createSimulatedApiServer } from './server.ts'

/** A simulated server for the script of requests. */
export function simulatedWire(): Wire {
  const clock = createVirtualClock(undefined, { settleTurns: 0 })
  const server = createSimulatedApiServer({ clock, random: createSeededRandom(1), schemas: readSchemas() })
  const requestOf = ({ path, ...rest }: WireRequest): SimRequest => {
    const url = new URL(path, 'http://simulated')
    const query = Object.fromEntries(url.searchParams)
    return { ...rest, client: 'script', manager: 'script', path: url.pathname, query }
  }
  return {
    async send(request) {
      const { code, body, retryAfterSeconds } = server.handle(requestOf(request))
      await clock.advance(1)
      return { code, body, retryAfter: retryAfterSeconds === undefined ? undefined : String(retryAfterSeconds) }
    },
    async watch(request) {
      const opened = server.open(requestOf(request))
      if ('code' in opened) throw new Error(`the watch was refused with ${opened.code}`)
      await clock.advance(1_000)
      const chunks: Uint8Array[] = []
      for await (const chunk of opened) chunks.push(chunk)
      const lines = Buffer.concat(chunks).toString('utf8').split('\n')
      return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as unknown)
    },
    async compact() {
      server.stop()
      server.compact()
      server.start()
      await clock.advance(1)
    },
  }
}
