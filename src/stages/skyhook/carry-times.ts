import type { Journal, StoredJournal } from '../../schemas/journal.ts'
import type { StageAttempt } from '../../schemas/package-record.ts'
import { isObject } from '../../schemas/json.ts'
import { maxDrainPauseMs } from '../drain/drain-status.ts'
import { maxStageRetryDelayMs } from '../model/transitions.ts'

/** Steady time of this agent: whole ms since its host booted. */
export type TimeBase = {
  readonly bootId: string
  readonly nowMs: number
  /** By how much the wall clock is ahead of it. */
  readonly wallOffsetMs: number
}

/** Names of fields with steady time in the journal. */
const moment = /(?:^at|^since|^until|At|Since|Until)Ms$/

/**
 * Durations from these times start over: the time that an earlier boot waited is unknown, and a jump must not end the
 * wait.
 */
const startingOver = new Set(['sinceMs', 'interruptedAtMs', 'taintUnliftedSinceMs'])

/** The longest pause that ends at these times. All other times are in the past. */
const longestPauseMs: Readonly<Record<string, number>> = { retryAtMs: maxStageRetryDelayMs, untilMs: maxDrainPauseMs }

/**
 * The journal of an earlier process for this one. Steady time of another boot has another origin, so each time is
 * converted by the wall clock. That clock may have been wrong, so no wait may end later than if it started now.
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
  if (name === 'readySinceMs') return undefined // after a boot the node must be Ready for the whole time again
  return startingOver.has(name) ? nowMs : Math.min(value + moveMs, nowMs + (longestPauseMs[name] ?? 0))
}

const isAttempt = (value: unknown): value is StageAttempt =>
  isObject(value) && Array.isArray(value['steps']) && typeof value['startedAtMs'] === 'number'
