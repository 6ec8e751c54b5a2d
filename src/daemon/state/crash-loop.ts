import type { HostRoot } from '../../host/fs/host-root.ts'
import { type Clock, toWallMs } from '../../schemas/clock.ts'
import type { Journal, SkyhookRecord } from '../../schemas/journal.ts'
import { attemptOf } from '../../schemas/package-record.ts'
import { isObject, parseJson } from '../../schemas/json.ts'
import { formatTime } from '../../schemas/time.ts'
import { errorField, type Log } from '../telemetry/log.ts'

/**
 * Handles an agent that crashes repeatedly at the same place of its work. The kubelet restarts the agent each time,
 * which repeats the work. Therefore the agent stands down for a while, shows a reason on the Node, and then tries once.
 */
export type CrashLoop = {
  /** Called once per process, with the journal of the last process. Never rejects. */
  begin(journal: Journal): Promise<void>
  /** Why nothing starts; undefined while the agent does not stand down. */
  reason(): string | undefined
  /** The process was asked to exit: its end does not count as a crash. Never rejects. */
  end(): Promise<void>
}

const runFolder = '/run/skyhook'
/** A reboot removes it. */
const crashLoopFile = `${runFolder}/crash-loop`
/** An agent that is killed for other reasons gets further within this number of starts. */
const maxCrashes = 5
/** The kubelet restarts a container after at most 5 min. */
const maxIntervalMs = 600_000
const pauseMs = 1_800_000

/** The record of one process for the next. */
type Trace = {
  /** The progress of the work when the process started. */
  readonly place: string
  readonly startedAtMs: number
  /** Consecutive processes that ended at this place, each within ten minutes. */
  readonly crashes: number
  readonly untilMs?: number | undefined
}

export function createCrashLoop(ports: {
  readonly root: HostRoot
  readonly clock: Clock
  readonly log: Log
  readonly wake: () => void
}): CrashLoop {
  const { root, clock, log, wake } = ports
  let message: string | undefined
  let stopWaiting = (): void => undefined
  let isKept = false

  async function keep(trace: Trace): Promise<void> {
    isKept = true
    await root.makeFolder(runFolder, 0o700)
    await root.writeFile(crashLoopFile, JSON.stringify(trace), 0o600)
  }

  function pause(trace: Trace, untilMs: number): void {
    message =
      `the agent ended ${trace.crashes} times in a row at the same place of this work; it starts nothing until ` +
      `${formatTime(toWallMs(clock, untilMs))}, or until its pod is restarted`
    log.error({ crashes: trace.crashes, place: trace.place, detail: message }, 'agent ended repeatedly, standing down')
    const tryOnce = (): void => {
      message = undefined
      log.info({}, 'stand-down is over, trying once')
      const next = { place: trace.place, startedAtMs: clock.steadyMs(), crashes: maxCrashes - 1 }
      keep(next).catch(warn).finally(wake)
    }
    stopWaiting = clock.startTimer(untilMs - clock.steadyMs(), tryOnce, { isBackground: true })
  }

  const warn = (error: unknown): void =>
    log.warn(errorField(error), 'crashes of the agent are not counted, it does not stand down')

  return {
    async begin(journal) {
      try {
        const last = parseTrace(await root.readText(crashLoopFile))
        const trace = traceOf(last, placeOf(journal), clock.steadyMs())
        if (trace.untilMs !== undefined) pause(trace, trace.untilMs)
        if (last !== undefined || trace.place !== '') await keep(trace)
      } catch (error) {
        warn(error)
      }
    },
    reason: () => message,
    async end() {
      stopWaiting()
      if (isKept) await root.remove(crashLoopFile).catch(warn)
    },
  }
}

/** The trace of this process, from that of the last one. */
function traceOf(last: Trace | undefined, place: string, nowMs: number): Trace {
  const fresh = { place, startedAtMs: nowMs, crashes: 0 }
  if (last === undefined || place === '' || last.place !== place) return fresh
  if (last.untilMs !== undefined && last.untilMs > nowMs) return last
  if (nowMs - last.startedAtMs > maxIntervalMs) return fresh
  const crashes = last.crashes + 1
  return { ...fresh, crashes, ...(crashes >= maxCrashes && { untilMs: nowMs + pauseMs }) }
}

/**
 * The progress of the current work; empty without work. Ignores attempts and repeats: an agent that dies each time
 * increases them without progress.
 */
function placeOf({ skyhooks }: Journal): string {
  return Object.entries(skyhooks)
    .filter(([, record]) => record.lifecycle ?? record.canceling ?? record.interrupt)
    .map(([name, record]) => `${name}(${progressOf(record).join(', ')})`)
    .join(' ')
}

const progressOf = ({ packages }: SkyhookRecord): string[] =>
  Object.entries(packages).map(([key, { progress }]) => {
    const passed = attemptOf(progress)?.steps.filter(({ result }) => result?.result === 'ok').length ?? 0
    return `${key} ${progress.stage} ${progress.state === 'complete' ? 'complete' : passed}`
  })

function parseTrace(text: string | undefined): Trace | undefined {
  const value = text === undefined ? undefined : parseJson(text)
  const { place, startedAtMs, crashes, untilMs } = isObject(value) ? value : {}
  if (typeof place !== 'string' || typeof startedAtMs !== 'number' || typeof crashes !== 'number') return undefined
  return { place, startedAtMs, crashes, ...(typeof untilMs === 'number' && { untilMs }) }
}
