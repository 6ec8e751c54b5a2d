/**
 * The agent's side of the census: runs it as a child process for the length of a term, so that no agent carries its
 * memory.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { abortableSleep } from '../../kube/retry.ts'
import { readLines } from '../../kube/watch.ts'
import { readCensusLine, type CensusLine, type CensusSettings } from '../../census/messages.ts'

export type CensusSupervisorOptions = {
  readonly settings: CensusSettings
  /** Program and arguments that run `runCensus`; default: this very program with the argument `census`. */
  readonly command?: readonly [string, ...string[]]
  readonly onLine: (line: CensusLine) => void
  /** The census died by itself. */
  readonly onExit: (exitReason: string) => void
  /** It died too often here: others should lead for so long. */
  readonly onCrashLoop: (resignForMs: number, why: string) => void
  readonly nowMs?: () => number
}

export type CensusSupervisor = {
  /** Keeps a census running until `term` is aborted. Never throws. */
  supervise(term: AbortSignal): Promise<void>
  /** Process id while one runs. */
  pid(): number | undefined
}

/**
 * Limits of the census's heap, in MB: 5,000 nodes with 60 labels and 5 Skyhooks each run within 72, so there is room
 * for twice as many (test/cluster/census-size.test.ts prints what it takes). A small young generation keeps what is
 * resident near what is used. A census that needs more dies alone, and not its agent.
 * /
 */
export const censusFlags = ['--max-old-space-size=128', '--max-semi-space-size=2'] as const
const restartDelayMs = 1_000
/** Time for an end in good order before it is killed; nothing it does has to be finished. */
const gracePeriodMs = 2_000
const deathWindowMs = 10 * 60_000
const resignMs = 30 * 60_000

/** Deaths are remembered over terms: what kills a census here will do so in the next term as well. */
export function createCensusSupervisor(options: CensusSupervisorOptions): CensusSupervisor {
  const { nowMs = () => performance.now() } = options
  const [program, ...args] = options.command ?? ownCommand()
  let deathsMs: number[] = []
  let running: ChildProcess | undefined

  const runOnce = async (term: AbortSignal): Promise<string> => {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    running = child
    const exited = new Promise<string>((resolve) => {
      child.on('error', (error) => resolve(error.message))
      child.on('exit', (code, signal) =>
        resolve(signal === null ? `it ended with code ${code}` : `it was ended by ${signal}`),
      )
    })
    let killTimer: NodeJS.Timeout | undefined
    const stop = (): void => {
      child.stdin.end()
      killTimer = setTimeout(() => child.kill('SIGKILL'), gracePeriodMs)
    }
    child.stdin.on('error', () => {}) // it died before it read; its exit says the rest
    child.stdin.write(`${JSON.stringify(options.settings)}\n`)
    if (term.aborted) stop()
    else term.addEventListener('abort', stop, { once: true })
    const [exitReason] = await Promise.all([exited, forwardLines(child)])
    clearTimeout(killTimer)
    term.removeEventListener('abort', stop)
    running = undefined
    return exitReason
  }

  const forwardLines = async (child: ChildProcess): Promise<void> => {
    if (child.stdout === null) return
    try {
      for await (const text of readLines(child.stdout as AsyncIterable<Uint8Array>)) {
        const line = readCensusLine(text)
        if (line !== undefined) options.onLine(line)
      }
    } catch {
      // killed in the middle of a line
    }
  }

  return {
    pid: () => running?.pid,
    async supervise(term) {
      while (!term.aborted) {
        const exitReason = await runOnce(term)
        if (term.aborted) return
        options.onExit(exitReason)
        const diedMs = nowMs()
        deathsMs = [...deathsMs.filter((atMs) => diedMs - atMs < deathWindowMs), diedMs]
        if (deathsMs.length >= 2) {
          deathsMs = []
          options.onCrashLoop(
            resignMs,
            `the census died twice within ten minutes here, the last time because ${exitReason}`,
          )
        }
        await abortableSleep(restartDelayMs, term).catch(() => {}) // the term ends: so does this loop
      }
    },
  }
}

/** The bundle runs itself; its flags for memory come before the file. */
function ownCommand(): readonly [string, ...string[]] {
  return [process.execPath, ...censusFlags, process.argv[1] ?? '', 'census']
}
