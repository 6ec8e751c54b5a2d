/**
 * Limits the total time of a registry's answer: a registry that sends single bytes never reaches the limit for silence.
 */
import type { IncomingMessage } from 'node:http'
import { type Clock, startInterval } from '../../../schemas/clock.ts'
import { ImageError } from '../errors.ts'

/** For one request with its redirects, and with its response unless that can be of any size. */
export const requestTimeoutMs = 30_000
/** The minimum pace of a body of any size. */
export const minBytesPerSecond = 10 * 1024
const paceWindowMs = 60_000
const paceSampleMs = 10_000
/** The connection keeps the process alive while there is something to limit. */
const background = { isBackground: true }

/** Runs a request up to the headers of its response, with a signal that aborts when the request takes too long. */
export async function withinRequestTimeout<T>(
  clock: Clock,
  host: string,
  signal: AbortSignal,
  request: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController()
  const cancel = clock.startTimer(requestTimeoutMs, () => late.abort(tooLate(host)), background)
  try {
    return await request(AbortSignal.any([signal, late.signal]))
  } finally {
    cancel()
  }
}

/** Destroys a body that is incomplete when the time of its request is over. */
export function limitBodyTime(clock: Clock, body: IncomingMessage, host: string, deadlineMs: number): void {
  const cancel = clock.startTimer(deadlineMs - clock.monotonicMs(), () => body.destroy(tooLate(host)), background)
  body.once('close', cancel)
}

/** Destroys a body that arrives at less than 10 KiB/s for a minute. */
export function limitBodyPace(clock: Clock, body: IncomingMessage, host: string): void {
  const received = [body.socket.bytesRead]
  const stop = startInterval(
    clock,
    paceSampleMs,
    () => {
      received.push(body.socket.bytesRead)
      if (received.length <= paceWindowMs / paceSampleMs) return
      const [oldest = 0] = received.splice(0, 1)
      const bytes = body.socket.bytesRead - oldest
      if (bytes < (minBytesPerSecond * paceWindowMs) / 1000)
        body.destroy(new ImageError('unreachable', `${host}: only ${bytes} bytes in ${paceWindowMs / 1000} s`))
    },
    background,
  )
  body.once('close', stop)
}

const tooLate = (host: string): ImageError =>
  new ImageError('unreachable', `${host}: no complete answer within ${requestTimeoutMs / 1000} s`)
