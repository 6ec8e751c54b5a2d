import { pino } from 'pino'

export type Log = {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** JSON lines on stdout, written synchronously: a worker thread would cost 17 MB of memory in every agent. */
export function createLog(level: string, base: Readonly<Record<string, string>>): Log {
  return pino(
    { level, base, timestamp: pino.stdTimeFunctions.isoTime, messageKey: 'message' },
    pino.destination({ dest: 1, sync: true }),
  )
}

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
  return { error: messages.join(': ') }
}
