import { ignoreNotFound } from '../../../host/fs/errors.ts'
import { readStepNote, type StepHost, stepFiles } from '../../../host/step/files.ts'
import {
  afterCut,
  cutOf,
  cutWindowBytes,
  initialBudget,
  type OutputBudget,
  refilled,
  sampleBytes,
  spent,
  windowsOf,
} from '../../../packages/step/log-limit.ts'
import {
  createOutputReader,
  endOf,
  initialCursor,
  type OutputCursor,
  type OutputReader,
} from '../../../packages/step/output-reader.ts'
import { type Clock, startInterval } from '../../../schemas/clock.ts'
import { isObject, parseJson } from '../../../schemas/json.ts'
import {
  type OutputStream,
  outputSkippedMessage,
  outputTruncatedMessage,
  type StepOfLine,
} from '../../../schemas/step-log.ts'
import { errorField, type Log } from '../../telemetry/log.ts'
import type { StepLogNote } from './observe.ts'

/**
 * Output is in the log within a second: half of the time is for this interval, the rest for the disk and for readers of
 * the log.
 */
const lookIntervalMs = 500
/** Pause after a failed read: a failing disk is not read twice a second. */
const failedLookPauseMs = 5_000
const chunkBytes = 16 * 1024

/** How much of the unprinted output is printed at the end of a step. The file has more (log-limit.ts). */
const maxTailLines = 1_000
const maxTailChars = 64 * 1024

/** Prints the output of steps into the agent's log: while they run, bounded, without secrets, each line once. */
export type StepOutput = {
  /** From now on, prints the output of the step while it runs. May be repeated. */
  follow(of: StepOfLine): void
  /**
   * Prints the output of an ended attempt that is not in the log yet. Safe to repeat: nothing is printed twice. A
   * previous agent may have started the attempt and printed a part.
   */
  finish(of: StepOfLine): Promise<void>
  /** The followed step with this id. */
  stepOf(id: string): StepOfLine | undefined
  /** Its end is recorded: forgets it. */
  forget(id: string): void
  /** Resolves when the printed amount is stored for the next agent. */
  close(): Promise<void>
}

export type OutputPorts = {
  readonly host: StepHost
  readonly clock: Clock
  readonly log: Log
  /** Limit of the file of each stream of a step. */
  readonly logLimitBytes: number
}

/** The state of one attempt. */
type Followed = {
  readonly of: StepOfLine
  /** Its log files; undefined before they were looked up. `none`: they are no longer known. */
  source: { readonly note: StepLogNote; readonly reader: OutputReader } | 'none' | undefined
  readonly cursors: Record<OutputStream, OutputCursor>
  readonly budgets: Record<OutputStream, OutputBudget>
  /** The last of its reads, which run one after another. */
  work: Promise<void>
  isLooking: boolean
  hasFailed: boolean
  /** No read before this time (steady ms). */
  pausedUntilMs: number
}

export function createStepOutput({ host, clock, log, logLimitBytes }: OutputPorts): StepOutput {
  const { root } = host
  const followed = new Map<string, Followed>()
  let stopLooking: (() => void) | undefined

  function entryOf(of: StepOfLine): Followed {
    const existing = followed.get(of.stepId)
    if (existing) return existing
    const budget = initialBudget(clock.steadyMs())
    const entry: Followed = {
      of,
      source: undefined,
      cursors: { stdout: initialCursor(), stderr: initialCursor() },
      budgets: { stdout: budget, stderr: budget },
      work: Promise.resolve(),
      isLooking: false,
      hasFailed: false,
      pausedUntilMs: 0,
    }
    followed.set(of.stepId, entry)
    return entry
  }

  /** Runs one task of an attempt at a time. */
  async function inTurn(entry: Followed, task: () => Promise<void>): Promise<void> {
    const turn = entry.work.catch(() => undefined).then(task)
    entry.work = turn
    await turn
  }

  async function open(entry: Followed): Promise<Exclude<Followed['source'], undefined>> {
    if (entry.source !== undefined) return entry.source
    const [note, printed] = await Promise.all([
      readStepNote(host, entry.of.stepId),
      root.readText(stepFiles(host, entry.of.stepId).printed),
    ])
    if (note === undefined) return (entry.source = 'none')
    const parsed = JSON.parse(note) as StepLogNote
    Object.assign(entry.cursors, parsePrinted(printed))
    return (entry.source = { note: parsed, reader: createOutputReader(parsed.secrets) })
  }

  /** Stores the cursors for the next agent. A reboot may lose them, as well as the output itself. */
  async function save({ of, cursors }: Followed): Promise<void> {
    await root.writeFile(stepFiles(host, of.stepId).printed, formatPrinted(cursors), 0o600)
  }

  /** Prints output since the last read, within the budget. Returns true if the cursor moved. */
  async function look(entry: Followed, stream: OutputStream): Promise<boolean> {
    const source = await open(entry)
    if (source === 'none') return false
    const { note, reader } = source
    const before = entry.cursors[stream].offset
    let budget = refilled(entry.budgets[stream], clock.steadyMs())
    let hasJumped = false
    while (!budget.isUsedUp) {
      const { bytes, sizeBytes } = await readNew(entry, stream, note.files[stream], chunkBytes)
      const from = sizeBytes - sampleBytes(budget)
      if (from > endOf(entry.cursors[stream]) && !hasJumped) {
        skipTo(entry, stream, from, source)
        hasJumped = true
        continue
      }
      const { lines, cursor } = reader.read(entry.cursors[stream], bytes)
      entry.cursors[stream] = cursor
      for (const line of lines) log.info({ ...entry.of, stream }, line)
      budget = spent(budget, { lines: lines.length, bytes: bytes.length })
      if (bytes.length < chunkBytes) break
    }
    entry.budgets[stream] = budget
    return entry.cursors[stream].offset !== before
  }

  function skipTo(entry: Followed, stream: OutputStream, offset: number, { note, reader }: Source): void {
    const skippedBytes = offset - entry.cursors[stream].offset
    log.info({ ...entry.of, stream, skippedBytes, log: note.files[stream] }, outputSkippedMessage)
    entry.cursors[stream] = reader.jump(offset)
  }

  async function readNew(
    entry: Followed,
    stream: OutputStream,
    path: string,
    maxBytes: number,
  ): Promise<{ readonly bytes: Buffer; readonly sizeBytes: number }> {
    const nothing = { bytes: Buffer.alloc(0), sizeBytes: 0 }
    const read = async (offset: number) =>
      (await root.readFrom(path, offset, maxBytes).catch(ignoreNotFound)) ?? nothing
    const found = await read(endOf(entry.cursors[stream]))
    if (found.sizeBytes >= endOf(entry.cursors[stream])) return found
    entry.cursors[stream] = initialCursor() // another program has truncated the file
    return await read(0)
  }

  /** Leaves out the middle of a file that is too large. Returns true if it did. */
  async function limit(entry: Followed, stream: OutputStream): Promise<boolean> {
    const source = await open(entry)
    if (source === 'none') return false
    const path = source.note.files[stream]
    const stats = await root.lstat(path)
    const windows = stats?.isFile() ? windowsOf(stats.size, logLimitBytes) : undefined
    if (windows === undefined) return false
    const piece = async (offset: number): Promise<Buffer> => (await root.readFrom(path, offset, cutWindowBytes)).bytes
    const cut = cutOf(windows, await piece(windows.headOffset), await piece(windows.tailOffset))
    await root.replaceBytes(path, cut, cut.note)
    entry.cursors[stream] = afterCut(entry.cursors[stream], cut)
    return true
  }

  /** Stores at once how much it has printed: if the agent is killed before that, the next one prints it again. */
  async function lookAtAll(entry: Followed): Promise<void> {
    for (const stream of outputStreams)
      for (const task of [look, limit]) if (await task(entry, stream)) await save(entry)
  }

  function lookAtEach(): void {
    for (const entry of followed.values()) {
      if (entry.isLooking || clock.steadyMs() < entry.pausedUntilMs) continue
      entry.isLooking = true
      void inTurn(entry, () => lookAtAll(entry))
        .catch((error: unknown) => {
          if (!entry.hasFailed)
            log.warn({ ...entry.of, ...errorField(error) }, 'output of a running step is unreadable')
          entry.hasFailed = true
          entry.pausedUntilMs = clock.steadyMs() + failedLookPauseMs
        })
        .finally(() => (entry.isLooking = false))
    }
  }

  async function printRest(entry: Followed, stream: OutputStream): Promise<void> {
    const source = await open(entry)
    if (source === 'none') return
    const { note, reader } = source
    const path = note.files[stream]
    const first = await readNew(entry, stream, path, 0)
    const tailStart = first.sizeBytes - 4 * maxTailChars // 4: the longest UTF-8 sequence
    let isCut = tailStart > endOf(entry.cursors[stream])
    if (isCut) entry.cursors[stream] = reader.jump(tailStart)
    let tail: readonly string[] = []
    for (let isEnd = false; !isEnd; ) {
      const { bytes } = await readNew(entry, stream, path, 4 * chunkBytes)
      isEnd = bytes.length === 0 || endOf(entry.cursors[stream]) + bytes.length >= first.sizeBytes
      const { lines, cursor } = reader.read(entry.cursors[stream], bytes, isEnd)
      entry.cursors[stream] = cursor
      const all = [...tail, ...lines]
      tail = lastOf(all)
      isCut ||= tail.length < all.length
    }
    if (isCut) log.info({ ...entry.of, stream, log: path }, outputTruncatedMessage)
    for (const line of tail) log.info({ ...entry.of, stream }, line)
  }

  return {
    follow(of) {
      entryOf(of)
      stopLooking ??= startInterval(clock, lookIntervalMs, lookAtEach, { isBackground: true })
    },

    async finish(of) {
      const entry = entryOf(of)
      await inTurn(entry, async () => {
        const before = outputStreams.map((stream) => entry.cursors[stream].offset)
        for (const stream of outputStreams) await printRest(entry, stream)
        for (const stream of outputStreams) await limit(entry, stream)
        if (outputStreams.some((stream, index) => entry.cursors[stream].offset !== before[index])) await save(entry)
      })
    },

    stepOf: (id) => followed.get(id)?.of,

    forget(id) {
      followed.delete(id)
      if (followed.size > 0) return
      stopLooking?.()
      stopLooking = undefined
    },

    async close() {
      stopLooking?.()
      stopLooking = undefined
      await Promise.allSettled([...followed.values()].map(({ work }) => work))
    },
  }
}

type Source = { readonly note: StepLogNote; readonly reader: OutputReader }

/** The last lines within the limits. */
function lastOf(lines: readonly string[]): readonly string[] {
  let start = lines.length
  for (let chars = 0; start > 0 && lines.length - start < maxTailLines; start--) {
    chars += (lines[start - 1]?.length ?? 0) + 1
    if (chars > maxTailChars) break
  }
  return lines.slice(start)
}

/** How much of a step's output is in the log, as an agent stores it for the next one. */

const outputStreams: readonly OutputStream[] = ['stdout', 'stderr']

/** Output that was read and not printed is read again. */
function formatPrinted(cursors: Readonly<Record<OutputStream, OutputCursor>>): string {
  return JSON.stringify(
    Object.fromEntries(
      outputStreams.map((stream) => [stream, { offset: cursors[stream].offset, dropUntil: cursors[stream].dropUntil }]),
    ),
  )
}

/** The cursors of a note. A stream whose cursor is missing or damaged is printed from the start. */
function parsePrinted(text: string | undefined): Partial<Record<OutputStream, OutputCursor>> {
  const saved = text === undefined ? undefined : parseJson(text)
  if (!isObject(saved)) return {}
  return Object.fromEntries(
    outputStreams.flatMap((stream) => {
      const { offset, dropUntil } = isObject(saved[stream]) ? saved[stream] : {}
      if (typeof offset !== 'number') return []
      return [[stream, { ...initialCursor(offset), ...(typeof dropUntil === 'number' && { dropUntil }) }]]
    }),
  )
}
