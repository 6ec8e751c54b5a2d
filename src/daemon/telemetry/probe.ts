import { request, type IncomingMessage } from 'node:http'

/**
 * The agent's own binary asks for its health over this socket in its container, without a port on the host's network.
 */
export const healthSocket = '/tmp/skyhookd-health.sock'

/** The probe: asks the running agent and returns the exit code; problems go to stderr. */
export async function probe(check: 'live' | 'ready', socket = healthSocket): Promise<number> {
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request({ socketPath: socket, path: `/${check}`, timeout: 3_000 }, resolve)
        .on('timeout', function (this: { destroy(error: Error): void }) {
          this.destroy(new Error('no answer within 3 s'))
        })
        .on('error', reject)
        .end()
    })
    let text = ''
    for await (const chunk of response) text += String(chunk)
    if (response.statusCode === 200) return 0
    process.stderr.write(text)
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  }
  return 1
}
