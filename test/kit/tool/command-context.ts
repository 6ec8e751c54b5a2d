/** What a command is given, for tests: a transport instead of a kubeconfig, and texts instead of a terminal. */
import type { Context, OutputFormat } from '../../../src/cli/base/framework/command.ts'
import { createTextOutput } from '../../../src/cli/base/framework/run.ts'
import type { KubeTransport } from '../../../src/kube/transport.ts'
import type { Clock } from '../../../src/schemas/clock.ts'
import { createSeededRandom } from '../virtual-clock.ts'

export type CommandContext = {
  readonly context: Context
  readonly stdout: () => string
  readonly stderr: () => string
}

export function commandContext(options: {
  readonly transport: KubeTransport
  readonly clock: Clock
  readonly format?: OutputFormat
  readonly isTerminal?: boolean
  readonly signal?: AbortSignal
}): CommandContext {
  const { transport, clock, format = 'table', isTerminal = false, signal = new AbortController().signal } = options
  const written = { stdout: '', stderr: '' }
  const output = (name: 'stdout' | 'stderr') =>
    createTextOutput({
      write: (text: string): void => void (written[name] += text),
      isTerminal,
      hasColor: false,
      columns: () => (isTerminal ? 100 : undefined),
    })
  const connection = {
    transport,
    contextName: 'test',
    server: 'https://api.test',
    namespace: undefined,
    agentNamespace: async () => 'skyhook',
  }
  return {
    context: {
      stdout: output('stdout'),
      stderr: output('stderr'),
      environment: {},
      clock,
      random: createSeededRandom(1),
      signal,
      format,
      dryRun: 'none',
      connect: async () => connection,
      confirm: async () => undefined,
      verbose: () => undefined,
      readText: async (path) => await Promise.reject(new Error(`no file ${path}`)),
    },
    stdout: () => written.stdout,
    stderr: () => written.stderr,
  }
}
