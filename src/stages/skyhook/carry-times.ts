import type { Journal, StageAttempt, StoredJournal } from '../../schemas/journal.ts'
import { isObject } from '../../schemas/json.ts'
import { maxDrainPauseMs } from '../drain/drain-timeout.ts'
import { maxStageRetryDelayMs } from '../model/backoff.ts'

/** Steady time of this agent: whole ms since its host booted. */
export type TimeBase = {
  readonly bootId: string
  readonly nowMs: number
  /** By how much the wall clock is ahead of it. */
  readonly wallOffsetMs: number
}

/** How the journal names a moment of steady time. */
const moment = /(?:^at|^since|^until|At|Since|Until)Ms$/

/** What counts from these starts over: how long an earlier boot waited is not known, and a jump must not end it. */
const startingOver = new Set(['sinceMs', 'interruptedAtMs', 'taintUnliftedSinceMs'])

/** The longest pause that ends at these. All others have passed. */
const longestPauseMs: Readonly<Record<string, number>> = { retryAtMs: maxStageRetryDelayMs, untilMs: maxDrainPauseMs }

/**
 * The journal of an earlier process for this one. Steady time of another boot counts from elsewhere, so each moment is
 * moved by way of the wall clock, which may have been wrong: no wait ends later than it could if it began now.
 */
export function carryTimes({ wallOffsetMs, ...journal }: StoredJournal, base: TimeBase): Journal {
  if (journal.bootId === base.bootId && wallOffsetMs !== undefined) return journal
  const moveMs = (wallOffsetMs ?? 0) - base.wallOffsetMs
  return JSON.parse(JSON.stringify(journal), (name, value: unknown) =>
    carry(name, value, moveMs, base.nowMs),
  ) as Journal
}

/** Called for the members of an object before the object. Names may be those of packages and of their configuration. */
function carry(name: string, value: unknown, moveMs: number, nowMs: number): unknown {
  if (isAttempt(value)) return { ...value, startedAtMs: nowMs } satisfies StageAttempt // its time starts over, too
  if (Array.isArray(value)) return value.map((element) => carry(name, element, moveMs, nowMs))
  if (typeof value !== 'number' || !moment.test(name)) return value
  if (name === 'readySinceMs') return undefined // after a boot the node has to be Ready for the whole time again
  return startingOver.has(name) ? nowMs : Math.min(value + moveMs, nowMs + (longestPauseMs[name] ?? 0))
}

const isAttempt = (value: unknown): value is StageAttempt =>
  isObject(value) && Array.isArray(value['steps']) && typeof value['startedAtMs'] === 'number'
