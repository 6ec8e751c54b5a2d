/**
 * The agent's side of the census: runs it as a child process for the length of a term, so that no agent carries its
 * memory.
 */
import { type CensusLine, type CensusSettings, readCensusLine, type SeriesLine } from '../../census/messages.ts'
import { readLines } from '../../kube/watch.ts'
import type { FleetSeries } from '../../schemas/catalogue/fleet-metrics.ts'
import { type Clock, sleep } from '../../schemas/clock.ts'
import type { CensusProcess } from '../platform/census-process.ts'

export type CensusSupervisorOptions = {
  /** Asked when a census starts. */
  readonly settings: () => CensusSettings
  readonly start: () => CensusProcess
  readonly clock: Clock
  readonly onLine: (line: Exclude<CensusLine, SeriesLine>) => void
  /** The census exited by itself. */
  readonly onExit: (exitReason: string) => void
  /** It exited too often here: others should lead for this long. */
  readonly onCrashLoop: (resignForMs: number, why: string) => void
}

export type CensusSupervisor = {
  /** Keeps a census running until `term` is aborted. Never throws. */
  supervise(term: AbortSignal): Promise<void>
  /** What the running census counted; nothing once it has exited: the next one counts again. */
  series(): readonly FleetSeries[]
  /** Process id while it runs. */
  pid(): number | undefined
}

const restartDelayMs = 1_000
/** Time for a graceful exit before it is killed; nothing has to be finished. */
const gracePeriodMs = 2_000
const deathWindowMs = 10 * 60_000
const resignMs = 30 * 60_000

/** Remembers exits across terms: what kills a census here does so in the next term as well. */
export function createCensusSupervisor(options: CensusSupervisorOptions): CensusSupervisor {
  const { clock, settings, onLine } = options
  let deathsMs: number[] = []
  let running: CensusProcess | undefined
  /** By subject. One that is still ending must not add to those of the next. */
  let series = new Map<string, FleetSeries>()

  async function runOnce(term: AbortSignal): Promise<string> {
    const census = options.start()
    running = census
    const ownSeries = new Map<string, FleetSeries>()
    series = ownSeries
    let cancelKill = (): void => undefined
    const stop = (): void => {
      census.closeInput()
      cancelKill = clock.startTimer(gracePeriodMs, () => census.kill())
    }
    census.send(JSON.stringify(settings()))
    if (term.aborted) stop()
    else term.addEventListener('abort', stop, { once: true })
    const [exitReason] = await Promise.all([census.exited, forwardLines(census, ownSeries)])
    cancelKill()
    term.removeEventListener('abort', stop)
    running = undefined
    if (series === ownSeries) series = new Map()
    return exitReason
  }

  async function forwardLines({ output }: CensusProcess, ownSeries: Map<string, FleetSeries>): Promise<void> {
    try {
      for await (const text of readLines(output)) {
        const line = readCensusLine(text)
        if (line === undefined) continue
        if (line.kind !== 'series') onLine(line)
        else if (line.series === undefined) ownSeries.delete(line.subject)
        else ownSeries.set(line.subject, line.series)
      }
    } catch {
      // killed in the middle of a line
    }
  }

  return {
    series: () => [...series.values()],
    pid: () => running?.pid,
    async supervise(term) {
      while (!term.aborted) {
        const exitReason = await runOnce(term)
        if (term.aborted) return
        options.onExit(exitReason)
        const diedMs = clock.monotonicMs()
        deathsMs = [...deathsMs.filter((atMs) => diedMs - atMs < deathWindowMs), diedMs]
        if (deathsMs.length >= 2) {
          deathsMs = []
          options.onCrashLoop(
            resignMs,
            `the census exited twice within ten minutes, the last time because ${exitReason}`,
          )
        }
        await sleep(clock, restartDelayMs, term).catch(() => {}) // the loop ends with the term
      }
    },
  }
}
