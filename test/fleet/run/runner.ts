/** Runs fleets in a process of their own: one that dies, or never ends, counts as failed. */
import { type ChildProcess, fork } from 'node:child_process'
import type { Plan } from './plan.ts'
import type { RunResult } from './run-plan.ts'

export type Runner = {
  /** One at a time. */
  run(job: number | Plan): Promise<RunResult>
  close(): void
}

export type RunnerOptions = {
  readonly maxRunMs: number
  /** Keeps what Node has compiled, for the next process. */
  readonly cacheFolder?: string
}

/** The process starts with the first run, and again after one that did not end. `worker`: path of its program. */
export function createRunner(worker: string, { maxRunMs, cacheFolder }: RunnerOptions): Runner {
  const env = { ...process.env, ...(cacheFolder !== undefined && { NODE_COMPILE_CACHE: cacheFolder }) }
  let child: ChildProcess | undefined

  return {
    run(job) {
      child ??= fork(worker, { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
      const current = child
      return new Promise((resolve) => {
        const settle = (result: RunResult): void => {
          clearTimeout(timer)
          current.removeAllListeners()
          resolve(result)
        }
        const fail = (rule: string, message: string): void => {
          current.kill('SIGKILL')
          child = undefined
          settle(withoutResult(rule, message))
        }
        const timer = setTimeout(() => fail('ends', `no end within ${maxRunMs / 1_000} s`), maxRunMs)
        current.once('message', (answer) => settle((answer as { readonly result: RunResult }).result))
        current.once('exit', (code) => fail('simulation-lives', `its process ended with ${code}`))
        current.send(job)
      })
    },
    close() {
      child?.disconnect()
      child = undefined
    },
  }
}

const withoutResult = (rule: string, message: string): RunResult => ({
  violation: { rule, message, atMs: 0 },
  met: [],
  checks: {},
  virtualMs: 0,
  steps: 0,
  hash: '',
  trace: [],
})
