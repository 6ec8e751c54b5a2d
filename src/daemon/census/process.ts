/** The census as its own process: reads its settings from stdin and writes lines to stdout. */
import { runCensus, type CensusContext } from '../../census/census.ts'
import { readCensusSettings } from '../../census/model/messages.ts'
import type { Credentials } from '../../kube/credentials.ts'
import { createKubeTransport } from '../../kube/transport.ts'
import { podCredentials } from '../platform/service-account.ts'
import { systemClock, systemRandom } from '../platform/system-clock.ts'

export type CensusStreams = {
  /** One line of settings. The end of the stream means stop; it also ends when the agent is killed. */
  readonly stdin: NodeJS.ReadableStream
  readonly stdout: NodeJS.WritableStream
}

/** Counts until stdin ends. Throws without usable settings or credentials. */
export async function runCensusProcess(
  { stdin, stdout }: CensusStreams,
  credentials: Credentials = podCredentials(),
): Promise<void> {
  const stopping = new AbortController()
  const stop = (): void => stopping.abort(new Error('the agent has exited'))
  const settings = readCensusSettings(await firstLine(stdin, stop))
  stdout.on('error', stop)
  const clock = systemClock
  const context: CensusContext = {
    clock,
    random: systemRandom,
    connectApi: (onRequest) => createKubeTransport({ credentials, version: settings.version, clock, onRequest }),
    emit: (line) => void stdout.write(`${JSON.stringify(line)}\n`),
  }
  await runCensus(settings, context, stopping.signal)
}

/** Returns the first line. Calls `onEnd` when the stream ends, before or after that. */
async function firstLine(stdin: NodeJS.ReadableStream, onEnd: () => void): Promise<string> {
  return await new Promise((resolve, reject) => {
    let text = ''
    stdin.setEncoding('utf8')
    stdin.on('data', (chunk: string) => {
      text += chunk
      const end = text.indexOf('\n')
      if (end < 0) return
      resolve(text.slice(0, end))
      text = ''
    })
    for (const event of ['end', 'close', 'error']) {
      stdin.on(event, () => {
        onEnd()
        reject(new Error('stdin ended before the settings'))
      })
    }
  })
}
