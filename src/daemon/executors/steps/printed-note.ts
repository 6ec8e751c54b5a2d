/** How much of a step's output is in the log, as an agent stores it for the next one. */
import { initialCursor, type OutputCursor } from '../../../packages/step/output-reader.ts'
import { isObject, parseJson } from '../../../schemas/json.ts'
import type { OutputStream } from '../../../schemas/step-log.ts'

export const outputStreams: readonly OutputStream[] = ['stdout', 'stderr']

/** Output that was read and not printed is read again. */
export function formatPrinted(cursors: Readonly<Record<OutputStream, OutputCursor>>): string {
  return JSON.stringify(
    Object.fromEntries(
      outputStreams.map((stream) => [stream, { offset: cursors[stream].offset, dropUntil: cursors[stream].dropUntil }]),
    ),
  )
}

/** The cursors of a note. A stream whose cursor is missing or damaged is printed from the start. */
export function parsePrinted(text: string | undefined): Partial<Record<OutputStream, OutputCursor>> {
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
