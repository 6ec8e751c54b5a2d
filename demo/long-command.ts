import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Screen } from './screen.ts'

const repository = join(import.meta.dirname, '..')
/** After this silence the demo reports that the command is still running. */
const silenceMs = 15_000

export class CommandFailedError extends Error {}

/**
 * Runs a command that may take long: prints each line of its output, and the elapsed time while there is none. Throws
 * CommandFailedError with the last lines unless it exits with 0.
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
      screen.line(`  … still running: ${last} (${elapsed})`)
    }
  }, 1_000)
  try {
    const status = await new Promise<number>((resolve, reject) => {
      child.on('error', reject)
      child.on('close', (code) => resolve(code ?? -1))
    })
    if (status !== 0)
      throw new CommandFailedError(`${what} failed: ${command.join(' ')} exited with ${status}\n${tail.join('\n')}`)
  } finally {
    clearInterval(ticker)
    screen.draw([])
    screen.keep()
  }
}

const restartDelayMs = 1_000

/**
 * Follows a command until `signal` aborts and passes each line to `onLine`. Restarts the command when it exits, as
 * `kubectl logs` does when a host reboots. Ignores its standard error.
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
