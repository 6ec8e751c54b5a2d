import { spawn } from 'node:child_process'

/** A census as a child process. */
export type CensusProcess = {
  readonly pid: number | undefined
  readonly output: AsyncIterable<Uint8Array>
  /** Resolves with a description of its end, for people; never rejects. */
  readonly exited: Promise<string>
  send(line: string): void
  /** Requests its exit. */
  closeInput(): void
  kill(): void
}

/**
 * Limits of the census's heap, in MB: 5,000 nodes with 60 labels and 5 Skyhooks each run within 72, so there is room
 * for twice as many (test/cluster/census-size.test.ts prints the current size). A small young generation keeps resident
 * memory close to used memory. If a census needs more, only the census dies, not its agent.
 */
export const censusFlags = ['--max-old-space-size=128', '--max-semi-space-size=2'] as const

/** `command` runs `runCensusProcess`; by default it is this program with the argument `census`. */
export function startCensusProcess(command: readonly [string, ...string[]] = ownCommand()): CensusProcess {
  const [program, ...args] = command
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.on('error', () => {}) // the child died before it read; its exit status is reported
  return {
    pid: child.pid,
    output: child.stdout,
    exited: new Promise((resolve) => {
      child.on('error', (error) => resolve(error.message))
      child.on('exit', (code, signal) =>
        resolve(signal === null ? `it ended with code ${code}` : `it was ended by ${signal}`),
      )
    }),
    send: (line) => void child.stdin.write(`${line}\n`),
    closeInput: () => void child.stdin.end(),
    kill: () => void child.kill('SIGKILL'),
  }
}

/** The bundle runs itself; memory flags come before the file. */
function ownCommand(): readonly [string, ...string[]] {
  return [process.execPath, ...censusFlags, process.argv[1] ?? '', 'census']
}
