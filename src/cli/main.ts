import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { randomBytes } from 'node:crypto'
import { basename } from 'node:path'
import { isatty } from 'node:tty'
import { setFlagsFromString } from 'node:v8'
import type { Clock, Random } from '../schemas/clock.ts'
import { allCommands } from './commands/all.ts'
import type { TextStream, Machine, TextInput } from './base/framework/command.ts'
import { runCommandLine } from './base/framework/run.ts'

const startWallMs = Date.now() - performance.now()

const clock: Clock = {
  wallMs: () => Date.now(),
  steadyMs: () => Math.floor(startWallMs + performance.now()),
  monotonicMs: () => performance.now(),
  startTimer(delayMs, callback, options) {
    const timer = setTimeout(callback, delayMs)
    if (options?.isBackground) timer.unref()
    return () => clearTimeout(timer)
  },
}

const random: Random = {
  number: () => Math.random(),
  hex: (bytes) => randomBytes(bytes).toString('hex'),
}

function outputOf(stream: NodeJS.WriteStream, fd: number): TextStream {
  const { env } = process
  const isTerminal = isatty(fd)
  return {
    write: (text) => void stream.write(text),
    isTerminal,
    hasColor: isTerminal && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb',
    // a pseudo-terminal may report zero columns
    columns: () => (isTerminal && stream.columns > 0 ? stream.columns : undefined),
  }
}

const stdin: TextInput = {
  isTerminal: isatty(0),
  async readLine(signal) {
    const lines = createInterface({ input: process.stdin })
    try {
      return await new Promise<string | undefined>((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
        lines.once('line', resolve)
        lines.once('close', () => resolve(undefined))
      })
    } finally {
      lines.close()
      process.stdin.unref()
    }
  },
  readAll: () => text(process.stdin),
}

function abortOnSignals(): AbortSignal {
  const controller = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.on(name, () => {
      // After a second signal the user does not want to wait for an orderly end.
      if (controller.signal.aborted) process.exit(130)
      controller.abort(new DOMException(`interrupted by ${name}`, 'AbortError'))
    })
  return controller.signal
}

// A reader that has enough, such as `head`, ends the tool silently.
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => process.exit(code === 'EPIPE' ? 0 : 1))

const machine: Machine = {
  stdout: outputOf(process.stdout, 1),
  stderr: outputOf(process.stderr, 2),
  stdin,
  environment: process.env,
  clock,
  random,
  signal: abortOnSignals(),
  readFile: (path) => readFile(path, 'utf8'),
}

const argv = process.argv.slice(2)
// kubectl starts the tool by this name for tab after `kubectl skyhook`.
const isCompletion = basename(process.argv[1] ?? '').startsWith('kubectl_complete-')

const ended = runCommandLine(isCompletion ? ['__complete', ...argv] : argv, allCommands, machine, {
  async connect(flags, machine) {
    const { openConnection } = await import('./base/connection/open.ts')
    // A fleet is read in megabytes that are garbage at once. V8 would let them pile up: with 1,000 nodes a screen took
    // 186 MiB, and takes 122 with these flags; V8's own flag for it, --memory-saver-mode, took a fifth more time. On
    // the command line they would make V8 refuse what Node has compiled.
    setFlagsFromString('--heap-growing-percent=20')
    setFlagsFromString('--semi-space-growth-factor=1')
    return await openConnection(flags, machine)
  },
  contextNames: async (flags, machine) =>
    await (await import('./base/connection/kubeconfig.ts')).contextNames(flags, machine),
})
void ended.then((code) => {
  process.exitCode = code
})
