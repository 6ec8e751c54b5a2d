import { pino } from 'pino'
import { clip, harmlessJson } from '../../schemas/plain-text.ts'

export type Log = {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Container runtimes do not split lines of up to 16 KiB. */
const maxFieldLength = 4_096

/**
 * JSON lines on stdout, written synchronously: a worker thread would cost 17 MB of memory in every agent. Their content
 * has no effect on a reader's terminal, and keeps its text.
 */
export function createLog(level: string, base: Readonly<Record<string, string>>): Log {
  const destination = pino.destination({ dest: 1, sync: true })
  return createLogTo((line) => void destination.write(line), level, base)
}

export const createLogTo = (
  write: (line: string) => void,
  level: string,
  base: Readonly<Record<string, string>>,
): Log =>
  pino(
    {
      level,
      base,
      timestamp: pino.stdTimeFunctions.isoTime,
      messageKey: 'message',
      // a word, for readers of kubectl logs; pino's default is a number
      formatters: { log: bounded, level: (label) => ({ level: label }) },
    },
    { write: (line) => write(harmlessJson(line)) },
  )

const bounded = (fields: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      typeof value === 'string' ? clip(value, maxFieldLength) : value,
    ]),
  )

/** An error as a log field: its message and those of its causes. */
export function errorField(error: unknown): { readonly error: string } {
  const messages: string[] = []
  for (
    let current: unknown = error;
    current !== undefined && messages.length < 5;
    current = current instanceof Error ? current.cause : undefined
  ) {
    messages.push(current instanceof Error ? current.message : JSON.stringify(current))
  }
  return { error: clip(messages.map((message) => clip(message, maxFieldLength)).join(': '), maxFieldLength) }
}
