/** Whether tests of a tree with a deliberate bug fail as they have to. */
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import type { ModelCatch, UnitCatch } from './mutant.ts'
import type { Judgment } from './judgment.ts'

type TestRun = {
  readonly projects: readonly string[]
  readonly tests: readonly string[]
  readonly parameters?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Of processor time, so that a busy machine looks like no bug. */
  readonly maxCpuSeconds: number
}

type TestResult = { readonly outcome: 'passed' | 'failed' | 'no end'; readonly output: string }

/** Of a machine with many others at work: what only waits fails by the timeout of its test before. */
const maxWaits = 20

/**
 * A bug can make a test spin for ever: its worker is killed, and the test fails. timeout(1) kills the whole process
 * group, workers included.
 */
async function runTests(folder: string, run: TestRun): Promise<TestResult> {
  const { projects, tests, parameters = [], env = {}, maxCpuSeconds } = run
  const vitest = ['node_modules/vitest/vitest.mjs', 'run', ...projects.flatMap((name) => ['--project', name])]
  const command = [process.execPath, ...vitest, '--bail=1', '--maxWorkers=1', ...parameters, ...tests]
  const limits = [`--cpu=${maxCpuSeconds}`, 'timeout', '--signal=KILL', String(maxWaits * maxCpuSeconds)]
  const child = spawn('prlimit', [...limits, ...command], {
    cwd: folder,
    env: { ...process.env, NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const closed = new Promise<number | null>((resolve) => child.once('close', resolve))
  const [status, stdout, stderr] = await Promise.all([closed, text(child.stdout), text(child.stderr)])
  const isKilled = status === null || status === 137
  return { outcome: status === 0 ? 'passed' : isKilled ? 'no end' : 'failed', output: stdout + stderr }
}

const runUnitTests = async (folder: string, tests: readonly string[], maxCpuSeconds: number): Promise<TestResult> =>
  await runTests(folder, { projects: ['unit', 'integration'], tests, maxCpuSeconds })

/** Throws if one of the tests fails without a bug: that would look like a bug that is caught. */
export async function expectPass(folder: string, tests: Iterable<string>): Promise<void> {
  const { outcome, output } = await runUnitTests(folder, [...tests], 600)
  if (outcome !== 'passed') throw new Error(`the tests fail without a mutant: ${outcome}\n${output}`)
}

async function judgeByUnitTests(folder: string, { tests }: UnitCatch): Promise<Judgment> {
  const { outcome, output } = await runUnitTests(folder, tests, 60)
  if (outcome !== 'failed') return { outcome: 'missed', why: `the tests: ${outcome}` }
  const [, how = 'a process that ended'] = /FAIL +(.*)/.exec(output) ?? []
  return { outcome: 'caught', how }
}

/** The smallest life that shows the bug is not asked for. */
const searching = { SEARCH: 'all', SEARCH_RUNS: '3000', SEARCH_SHRINK: '0' }

async function judgeBySearch(folder: string, { test, title, says }: ModelCatch): Promise<Judgment> {
  const parameters = ['-t', title]
  const run = { projects: ['model'], tests: [test], parameters, env: searching, maxCpuSeconds: 300 }
  const { outcome, output } = await runTests(folder, run)
  // from the first error on: before it stand the titles of tests
  const [error = ''] = /Error: [^]*/.exec(output) ?? []
  const [how] = says.exec(error) ?? []
  if (outcome === 'failed' && how !== undefined) return { outcome: 'caught', how }
  return { outcome: 'missed', why: outcome === 'failed' ? `it says ${error.slice(0, 400)}` : `the search: ${outcome}` }
}

/** `folder`: a tree with the bug. */
export const judgeByTests = async (folder: string, by: UnitCatch | ModelCatch): Promise<Judgment> =>
  await (by.tier === 'unit' ? judgeByUnitTests(folder, by) : judgeBySearch(folder, by))
