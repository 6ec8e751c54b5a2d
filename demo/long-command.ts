import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Screen } from './screen.ts'

const repository = join(import.meta.dirname, '..')
/** Longer silences make people wonder. */
const silenceMs = 15_000

export class CommandFailedError extends Error {}

/**
 * Runs a command that may take long: each line it says stays on the screen, and while it says nothing the elapsed time
 * is told. Throws CommandFailedError with its last lines unless it ends with 0.
 */
export async function runLongCommand(
  screen: Screen,
  what: string,
  command: readonly [string, ...string[]],
): Promise<void> {
  const [program, ...parameters] = command
  const startedMs = Date.now()
  let lastOutputMs = startedMs
  let last = what
  const tail: string[] = []
  const child = spawn(program, parameters, { cwd: repository, stdio: ['ignore', 'pipe', 'pipe'] })
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      last = line.replace(/^(sandbox: |\+ *[\d.]+ s +)/, '')
      lastOutputMs = Date.now()
      tail.push(line)
      if (tail.length > 10) tail.shift()
      screen.line(`  ${last}`)
    })
  }
  const ticker = setInterval(() => {
    const elapsed = `${Math.round((Date.now() - startedMs) / 1000)} s`
    if (screen.isLive) screen.draw([`  … ${last} (${elapsed})`])
    else if (Date.now() - lastOutputMs >= silenceMs) {
      lastOutputMs = Date.now()
      screen.line(`  … still at it: ${last} (${elapsed})`)
    }
  }, 1_000)
  try {
    const status = await new Promise<number>((resolve, reject) => {
      child.on('error', reject)
      child.on('close', (code) => resolve(code ?? -1))
    })
    if (status !== 0)
      throw new CommandFailedError(`${what} failed: ${command.join(' ')} ended with ${status}\n${tail.join('\n')}`)
  } finally {
    clearInterval(ticker)
    screen.draw([])
    screen.keep()
  }
}

const restartDelayMs = 1_000

/**
 * Follows a command until `signal` aborts; each line goes to `onLine`. It is started again when it ends, as `kubectl
 * logs` does when a host reboots. What it says on standard error is not the demo's business.
 */
export function followCommand(
  command: () => readonly [string, ...string[]],
  env: Readonly<Record<string, string>>,
  onLine: (line: string) => void,
  signal: AbortSignal,
): void {
  const [program, ...parameters] = command()
  const child = spawn(program, parameters, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'ignore'] })
  const kill = (): void => void child.kill()
  signal.addEventListener('abort', kill)
  createInterface({ input: child.stdout }).on('line', onLine)
  child.on('error', (error) => onLine(`${program}: ${error.message}`))
  child.on('close', () => {
    signal.removeEventListener('abort', kill)
    if (!signal.aborted) setTimeout(() => signal.aborted || followCommand(command, env, onLine, signal), restartDelayMs)
  })
}
