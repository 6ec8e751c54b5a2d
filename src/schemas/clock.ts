/**
 * The agent's clock and timers. No other code in `src` reads the machine's clock or starts a timer (lint), so that
 * whole agents run on virtual time.
 */
export type Clock = {
  /** Milliseconds since 1970 by the host's wall clock. It jumps: only for published times, see `toWallMs` (lint). */
  wallMs(): number
  /**
   * Whole milliseconds since the host booted, the same for all its processes: never jumps. For every wait, and for
   * times in the journal (docs/design/decisions/steady-time.md).
   */
  steadyMs(): number
  /** Milliseconds since an arbitrary point in this process; never goes back. For durations. */
  monotonicMs(): number
  /** Calls back once, `delayMs` from now or as soon after it as possible. Returns a function that cancels it. */
  startTimer(delayMs: number, callback: () => void, options?: TimerOptions): () => void
}

/** A point of steady time by the host's current wall clock, in ms: the published form. */
export const toWallMs = (clock: Pick<Clock, 'wallMs' | 'steadyMs'>, steadyMs: number): number =>
  steadyMs + wallOffsetMs(clock)

/** By how much the host's wall clock is ahead of steady time, in ms. */
export const wallOffsetMs = (clock: Pick<Clock, 'wallMs' | 'steadyMs'>): number => clock.wallMs() - clock.steadyMs()

/** `isBackground`: the timer does not keep the process alive. */
export type TimerOptions = { readonly isBackground?: boolean }

/** The agent's source of randomness, for jitter and for unguessable names. */
export type Random = {
  /** At least 0, below 1. */
  number(): number
  /** That many random bytes in hexadecimal digits. */
  hex(bytes: number): string
}

/** Resolves after `delayMs`. Rejects with the signal's reason as soon as it is aborted. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error)
    const onAbort = (): void => {
      cancel()
      reject(signal?.reason as Error)
    }
    const cancel = clock.startTimer(delayMs, () => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    })
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

/** Calls back every `intervalMs` until it is canceled; the next call is timed when the last one returned. */
export function startInterval(
  clock: Clock,
  intervalMs: number,
  callback: () => void,
  options?: TimerOptions,
): () => void {
  let cancel: () => void
  const schedule = (): void => {
    cancel = clock.startTimer(
      intervalMs,
      () => {
        schedule()
        callback()
      },
      options,
    )
  }
  schedule()
  return () => cancel()
}

/** A signal that aborts after `delayMs` with a `TimeoutError`, as `AbortSignal.timeout` does. */
export function timeoutSignal(clock: Clock, delayMs: number): AbortSignal {
  const controller = new AbortController()
  const expire = (): void => controller.abort(new DOMException(`not finished within ${delayMs} ms`, 'TimeoutError'))
  clock.startTimer(delayMs, expire, { isBackground: true })
  return controller.signal
}

/** Calls back once, as soon as it has not been reset for `silenceMs`. */
export type Watchdog = { reset(): void; stop(): void }

export function startWatchdog(
  clock: Clock,
  silenceMs: number,
  onSilence: () => void,
  options?: TimerOptions,
): Watchdog {
  let cancel = clock.startTimer(silenceMs, onSilence, options)
  return {
    reset() {
      cancel()
      cancel = clock.startTimer(silenceMs, onSilence, options)
    },
    stop: () => cancel(),
  }
}
