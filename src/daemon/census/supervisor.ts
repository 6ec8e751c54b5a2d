/**
 * The agent's side of the census: runs it as a child process for the length of a term, so that other agents do not need
 * its memory. Only a census that counts keeps the leadership: its agent resigns if the census is silent or cannot
 * count.
 */
import { type CensusLine, type CensusSettings, readCensusLine, type SeriesLine } from '../../census/model/messages.ts'
import { readLines } from '../../kube/watch.ts'
import type { FleetSeries } from '../../schemas/catalogue/fleet-metrics.ts'
import { type Clock, sleep } from '../../schemas/clock.ts'
import type { CensusProcess } from '../platform/census-process.ts'

export type CensusSupervisorOptions = {
  /** Called when a census starts. */
  readonly settings: () => CensusSettings
  readonly start: () => CensusProcess
  readonly clock: Clock
  readonly onLine: (line: Exclude<CensusLine, SeriesLine>) => void
  /** The census exited by itself. */
  readonly onExit: (exitReason: string) => void
  /** Called when a census starts. Returns for how long no census has counted, according to the Lease. */
  readonly uncountedMs: () => number
  /** It exited too often here, or did not count: other agents should lead for this time. */
  readonly onUnfit: (resignForMs: number, why: string) => void
}

type Heartbeat = Extract<CensusLine, { kind: 'heartbeat' }>

export type CensusSupervisor = {
  /** Keeps a census running until `term` is aborted. Never throws. */
  supervise(term: AbortSignal): Promise<void>
  /** The counts of the running census; empty after it has exited, because the next one counts again. */
  series(): readonly FleetSeries[]
  /** When the running census last saw all that it counts, in monotonic ms; undefined before that. */
  countedAtMs(): number | undefined
  /** Process id while it runs. */
  pid(): number | undefined
}

const restartDelayMs = 1_000
/** Time for a graceful exit before it is killed. It has no work to finish. */
const gracePeriodMs = 2_000
const deathWindowMs = 10 * 60_000
const resignMs = 30 * 60_000
/** A broken watch recovers in less time, and the first count of a large fleet takes less. */
export const maxUncountedMs = 60_000
/** An agent that never counted in its last terms waits longer in the next one: the API server may only be slow. */
const maxCountTimeoutMs = 16 * maxUncountedMs
/** The timeout is at most a quarter of the time without a count: another agent may be able to count by now. */
const maxUncountedShare = 1 / 4

/** Remembers exits and timeouts across terms: the cause of an exit here also ends the census of the next term. */
export function createCensusSupervisor(options: CensusSupervisorOptions): CensusSupervisor {
  const { clock, settings, onLine } = options
  let deathsMs: number[] = []
  let running: CensusProcess | undefined
  /** By subject. A census that is ending must not add to the series of the next one. */
  let series = new Map<string, FleetSeries>()
  /** How long a census may run without counting, if no other agent can count either. */
  let ownTimeoutMs = maxUncountedMs
  let countedAtMs: number | undefined

  async function runOnce(term: AbortSignal): Promise<string> {
    const census = options.start()
    running = census
    countedAtMs = undefined
    const ownSeries = new Map<string, FleetSeries>()
    series = ownSeries
    let cancelKill = (): void => undefined
    let cancelDeadline = (): void => undefined
    const stop = (): void => {
      cancelDeadline()
      census.closeInput()
      cancelKill = clock.startTimer(gracePeriodMs, () => census.kill())
    }
    const startedAtMs = clock.monotonicMs()
    let countTimeoutMs = Math.max(maxUncountedMs, Math.min(ownTimeoutMs, options.uncountedMs() * maxUncountedShare))
    const giveTime = (sinceMs: number): void => {
      cancelDeadline()
      const delayMs = sinceMs + countTimeoutMs - clock.monotonicMs()
      cancelDeadline = clock.startTimer(Math.max(0, delayMs), () => endTerm(startedAtMs))
    }
    const onHeartbeat = ({ uncountedMs }: Heartbeat): void => {
      if (uncountedMs === undefined || running !== census || term.aborted) return
      if (uncountedMs === 0) countTimeoutMs = ownTimeoutMs = maxUncountedMs
      countedAtMs = Math.max(startedAtMs, clock.monotonicMs() - uncountedMs)
      giveTime(countedAtMs)
    }
    census.send(JSON.stringify(settings()))
    giveTime(startedAtMs)
    if (term.aborted) stop()
    else term.addEventListener('abort', stop, { once: true })
    const [exitReason] = await Promise.all([census.exited, forwardLines(census, ownSeries, onHeartbeat)])
    cancelDeadline()
    cancelKill()
    term.removeEventListener('abort', stop)
    if (running === census) running = undefined
    if (series === ownSeries) series = new Map()
    return exitReason
  }

  function endTerm(startedAtMs: number): void {
    const nowMs = clock.monotonicMs()
    const seconds = Math.round((nowMs - (countedAtMs ?? startedAtMs)) / 1_000)
    if (countedAtMs === undefined) ownTimeoutMs = Math.min(maxCountTimeoutMs, 2 * ownTimeoutMs)
    options.onUnfit(resignMs, `the census has not counted for ${seconds} s`)
  }

  async function forwardLines(
    { output }: CensusProcess,
    ownSeries: Map<string, FleetSeries>,
    onHeartbeat: (line: Heartbeat) => void,
  ): Promise<void> {
    try {
      for await (const text of readLines(output)) {
        const line = readCensusLine(text)
        if (line === undefined) continue
        if (line.kind === 'heartbeat') onHeartbeat(line)
        if (line.kind !== 'series') onLine(line)
        else if (line.series === undefined) ownSeries.delete(line.subject)
        else ownSeries.set(line.subject, line.series)
      }
    } catch {
      // the census was killed in the middle of a line
    }
  }

  return {
    series: () => [...series.values()],
    countedAtMs: () => (running === undefined ? undefined : countedAtMs),
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
          options.onUnfit(resignMs, `the census exited twice within ten minutes, the last time because ${exitReason}`)
        }
        await sleep(clock, restartDelayMs, term).catch(() => {}) // the loop ends with the term
      }
    },
  }
}
