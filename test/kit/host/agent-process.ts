/**
 * The process of one agent: it can be killed at any moment, and nothing of it acts afterwards. JavaScript cannot stop
 * code, so everything that the agent takes from outside dies instead: no timer calls back, and no answer comes.
 */
import type { Clock } from '../../../src/schemas/clock.ts'

export type AgentProcess = {
  readonly id: number
  readonly isAlive: () => boolean
  /** Time as this process sees it: the host's wall clock, and milliseconds since the process started. */
  readonly clock: Clock
  /** Ends it, with all that it waits for. */
  kill(): void
  /** SIGSTOP: nothing of it acts until the returned function is called, which is SIGCONT. It can be killed meanwhile. */
  hang(): () => void
  readonly isHung: () => boolean
  /** Called once it has ended, with what the kernel does then: sockets and claims go. */
  onEnd(callback: () => void): void
  /** Settles as the promise does, but never after the end. */
  whileAlive<T>(promise: Promise<T>): Promise<T>
}

export function startProcess(ports: {
  readonly id: number
  readonly clock: Clock
  readonly wallMs: () => number
  /** Since its host booted. */
  readonly uptimeMs: () => number
}): AgentProcess {
  const { id, clock } = ports
  const startedAtMs = clock.monotonicMs()
  const timers = new Set<() => void>()
  const endings: (() => void)[] = []
  let isAlive = true
  /** Settles when it no longer hangs. */
  let hung: PromiseWithResolvers<void> | undefined
  const answer = <T>(value: T): T | Promise<T> => {
    if (hung !== undefined) return hung.promise.then(() => answer(value))
    return isAlive ? value : new Promise(() => undefined)
  }
  const refuse = (error: unknown): Promise<never> => {
    if (hung !== undefined) return hung.promise.then(() => refuse(error))
    if (isAlive) throw error as Error
    return new Promise(() => undefined)
  }
  return {
    id,
    isAlive: () => isAlive,
    clock: {
      wallMs: ports.wallMs,
      steadyMs: ports.uptimeMs,
      monotonicMs: () => clock.monotonicMs() - startedAtMs,
      startTimer(delayMs, callback, options) {
        if (!isAlive) return () => undefined
        const stop = (): void => {
          timers.delete(stop)
          cancel()
        }
        const fire = (): void => {
          if (!timers.has(stop)) return
          if (hung !== undefined) return void hung.promise.then(fire)
          timers.delete(stop)
          callback()
        }
        const cancel = clock.startTimer(
          Math.max(1, Math.trunc(delayMs)), // as setTimeout does: a timer never calls back in the same instant
          fire,
          options,
        )
        timers.add(stop)
        return stop
      },
    },
    kill() {
      if (!isAlive) return
      isAlive = false
      for (const stop of timers) stop()
      for (const end of endings) end()
    },
    hang() {
      const current = Promise.withResolvers<void>()
      hung = current
      return () => {
        if (hung !== current) return
        hung = undefined
        current.resolve()
      }
    },
    isHung: () => hung !== undefined,
    onEnd: (callback) => void endings.push(callback),
    whileAlive: <T>(promise: Promise<T>) => promise.then<T>(answer, refuse),
  }
}

/** The same object for one process: what it is asked after the end has no effect, and is never answered. */
export function mortal<T extends object>(process: AgentProcess, target: T): T {
  const wrapped = Object.entries(target).map(([name, member]: [string, unknown]) => {
    if (member instanceof Promise) return [name, process.whileAlive(member)] as const
    if (typeof member !== 'function') return [name, member] as const
    const call = (...args: unknown[]): unknown => {
      if (!process.isAlive()) return new Promise(() => undefined)
      const result: unknown = member.apply(target, args)
      return result instanceof Promise ? process.whileAlive(result) : result
    }
    return [name, call] as const
  })
  return Object.fromEntries(wrapped) as T
}
