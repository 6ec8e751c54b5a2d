/** The command-line tool in this process, against a simulated API server, with a person who may answer. */
import { Readable } from 'node:stream'
import type { Clock } from '../../../src/schemas/clock.ts'
import type { KubeRequestOptions, KubeTransport, Method } from '../../../src/kube/transport.ts'
import { findAgentNamespace } from '../../../src/cli/base/connection/agent-namespace.ts'
import { allCommands } from '../../../src/cli/commands/all.ts'
import type { Connection, TextStream, Machine } from '../../../src/cli/base/framework/command.ts'
import type { GlobalFlags } from '../../../src/cli/base/framework/parse.ts'
import { runCommandLine } from '../../../src/cli/base/framework/run.ts'
import { sampleServer } from '../api-server/sample-server.ts'
import { createSeededRandom, type VirtualClock } from '../virtual-clock.ts'

export type Ended = { readonly code: number; readonly stdout: string; readonly stderr: string }

export type SentRequest = {
  readonly method: Method
  readonly path: string
  readonly query: KubeRequestOptions['query']
  readonly body: unknown
}

export type RunOptions = {
  readonly answer?: string
  /** Output goes to a terminal of this width, with color. */
  readonly columns?: number
  readonly signal?: AbortSignal
  /** Ctrl-C as soon as standard output has this. */
  readonly until?: string | undefined
  readonly environment?: Readonly<Record<string, string>>
  /** What stands for files; without it there are none. */
  readonly readFile?: (path: string) => Promise<string>
}

type Answer = (request: SentRequest) => unknown

export type CommandLine = {
  /** Runs one call, as a shell splits it. `answer`: a terminal is there, and this is typed at it. */
  run(line: string, options?: RunOptions): Promise<Ended>
  readonly admin: KubeTransport
  /** Of the server of its own, and of the tool unless it has another. */
  readonly clock: VirtualClock
  /** What the tool has sent, oldest first. */
  readonly sent: SentRequest[]
  /**
   * Answers matching requests instead of the server; may throw an ApiError. The latest comes first. The answer to a
   * stream is its text.
   */
  answer(match: (request: SentRequest) => boolean, answer: Answer): void
}

/** `clock`: what the tool sees as now, for ages. `client`: what answers instead of a server of its own. */
export function commandLine(
  surroundings: { readonly clock?: Clock; readonly client?: KubeTransport } = {},
): CommandLine {
  const { admin, connect, clock: virtualClock } = sampleServer()
  const { clock = virtualClock, client = connect({ name: 'person', manager: 'kubectl-skyhook' }) } = surroundings
  const sent: SentRequest[] = []
  const answers: { readonly match: (request: SentRequest) => boolean; readonly answer: Answer }[] = []
  const transport: KubeTransport = {
    ...client,
    async json<T>(method: Method, path: string, options: KubeRequestOptions = {}): Promise<T> {
      const request = { method, path, query: options.query, body: options.body }
      sent.push(request)
      const found = answers.findLast(({ match }) => match(request))
      if (found) return (await found.answer(request)) as T
      return await client.json<T>(method, path, options)
    },
    async stream(path, options = {}) {
      const request: SentRequest = { method: 'GET', path, query: options.query, body: undefined }
      const found = answers.findLast(({ match }) => match(request))
      if (!found) return await client.stream(path, options)
      sent.push(request)
      return Readable.from([Buffer.from(String(await found.answer(request)))])
    },
    close() {},
  }
  return {
    admin,
    clock: virtualClock,
    sent,
    answer: (match, answer) => void answers.push({ match, answer }),
    async run(line, { answer, columns, until, environment = {}, readFile, ...options } = {}) {
      const ending = new AbortController()
      const signal = AbortSignal.any([ending.signal, ...(options.signal ? [options.signal] : [])])
      let stdout = ''
      let stderr = ''
      const output = (onText: (text: string) => void): TextStream => ({
        write: onText,
        isTerminal: answer !== undefined || columns !== undefined,
        hasColor: columns !== undefined,
        columns: () => columns,
      })
      const machine: Machine = {
        stdout: output((text) => {
          stdout += text
          if (until !== undefined && stdout.includes(until)) ending.abort(new DOMException('ctrl-C', 'AbortError'))
        }),
        stderr: output((text) => (stderr += text)),
        stdin: {
          isTerminal: answer !== undefined,
          readLine: () => Promise.resolve(answer),
          readAll: () => Promise.resolve(answer ?? ''),
        },
        environment: { HOME: '/nonexistent', ...environment }, // no logins of whoever runs the test
        clock,
        random: createSeededRandom(1),
        signal,
        readFile: readFile ?? ((path) => Promise.reject(new Error(`no file ${path}`))),
      }
      const open = ({ namespace }: GlobalFlags): Connection => ({
        transport,
        namespace,
        contextName: 'test',
        server: 'https://test',
        agentNamespace: async () => namespace ?? (await findAgentNamespace(transport, signal)),
      })
      const ports = { connect: async (flags: GlobalFlags) => open(flags), contextNames: async () => ['test', 'other'] }
      const code = await runCommandLine(line.split(' ').filter(Boolean), allCommands, machine, ports)
      return { code, stdout, stderr }
    },
  }
}
