/** Runs fleets in a process of their own: one that dies, or never ends, counts as failed. */
import { type ChildProcess, fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { Plan } from '../../kit/fleet/plan.ts'
import type { RunResult } from '../../kit/fleet/run-plan.ts'

/** The unit of /proc/pid/stat on every machine that Node runs on. */
const clockTickMs = 10
const maxWaits = 10
/** What a run makes dies young, mostly: so the garbage collector has less to copy. */
const execArgv = ['--max-semi-space-size=64', '--min-semi-space-size=64']

export type Runner = {
  /** One at a time. */
  run(job: number | Plan): Promise<RunResult>
  close(): void
}

export type RunnerOptions = {
  /** Of processor time, so that a busy machine changes nothing; one that only waits is ended much later. */
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
      child ??= fork(worker, { env, execArgv, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
      const current = child
      return new Promise((resolve) => {
        const settle = (result: RunResult): void => {
          clearInterval(timer)
          current.removeAllListeners()
          resolve(result)
        }
        const fail = (rule: string, message: string): void => {
          current.kill('SIGKILL')
          child = undefined
          settle(withoutResult(rule, message))
        }
        const startedMs = performance.now()
        const startedCpuMs = cpuMs(current)
        const timer = setInterval(() => {
          const isOver = cpuMs(current) - startedCpuMs > maxRunMs || performance.now() - startedMs > maxWaits * maxRunMs
          if (isOver) fail('ends', `no end within ${maxRunMs / 1_000} s`)
        }, 500)
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

/** Processor time of the process so far; 0 once it has ended. */
function cpuMs({ pid }: ChildProcess): number {
  try {
    const [, fields = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')
    const [user = 0, system = 0] = fields.split(' ').slice(11, 13).map(Number)
    return (user + system) * clockTickMs
  } catch {
    return 0
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
