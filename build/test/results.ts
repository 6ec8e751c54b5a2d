/** Runs the parts of `make test` and counts what they found. */
import { spawn } from 'node:child_process'
import { join, relative } from 'node:path'
import { type Failure, failuresOf, readReport, type Report, reportOptions } from './vitest-report.ts'

export type Command = readonly [string, ...string[]]

export type Environment = Readonly<Record<string, string>>

/** Of the message of each failed test, at the end. */
const messageLines = 6
const slowestFiles = 10

/** Parts that run one after another, beside those of other lanes. None throws. */
export type Lane = {
  /** A program that says by its exit code alone whether it passed; its output is shown only if it did not. */
  readonly check: (name: string, command: Command, env?: Environment) => Promise<void>
  /**
   * Projects of vitest, or what the parameters choose of them. A run without a report counts as one failure. Resolves
   * with the files that have passed.
   */
  readonly tests: (projects: string | readonly string[], options?: TestOptions) => Promise<readonly string[]>
  /** A program whose last line is `N passed, N failed`. */
  readonly campaign: (path: string, ...parameters: readonly string[]) => Promise<void>
}

export type TestOptions = {
  readonly env?: Environment
  /** For vitest. */
  readonly parameters?: readonly string[]
}

export type LaneOptions = {
  /** What a part prints is shown at once; otherwise when it ends, in one piece. */
  readonly isFollowed?: boolean
  /** 19: with the processor time that nothing else wants. */
  readonly nice?: number
}

export type Results = {
  readonly lane: (options?: LaneOptions) => Lane
  readonly fail: (name: string) => void
  /**
   * Where the time went, what failed and why, then the counts: the last lines of a log must be enough.
   * `boots`: a line for each sandbox, as `SANDBOX_BOOTS` has it.
   */
  readonly summary: (boots?: string) => { readonly text: string; readonly isGood: boolean }
}

/** `folder`: for reports. */
export function collectResults(folder: string): Results {
  let passed = 0
  let failed = 0
  const failures: string[] = []
  const phases: Phase[] = []
  const files: Phase[] = []

  const fail = (name: string): void => {
    failed++
    failures.push(name)
  }

  const lane = ({ isFollowed = false, nice = 0 }: LaneOptions = {}): Lane => {
    const run = ([program, ...parameters]: Command, env: Environment, isShown: boolean): Promise<Ended> =>
      nice === 0
        ? runProgram([program, ...parameters], env, isShown && isFollowed)
        : runProgram(['nice', '-n', String(nice), program, ...parameters], env, isShown && isFollowed)
    const ended = (name: string, verdict: string, { output, seconds }: Ended, isShown: boolean): void => {
      phases.push({ name, seconds })
      if (isShown && !isFollowed) process.stdout.write(output)
      console.log(`${verdict}: ${name} (${seconds.toFixed(1)} s)`)
    }
    return {
      async check(name, command, env = {}) {
        const end = await run(command, env, false)
        if (end.isGood) passed++
        else {
          fail(name)
          process.stdout.write(end.output)
        }
        ended(name, end.isGood ? 'ok' : 'failed', end, false)
      },
      async tests(projects, { env = {}, parameters = [] } = {}) {
        const names = [projects].flat()
        const name = `${names.join(' and ')} tests`
        const file = join(folder, `${names.join('-')}.json`)
        const options = [...reportOptions(file), ...parameters]
        const chosen = names.flatMap((project) => ['--project', project])
        const end = await run(['vitest', 'run', ...chosen, ...options], env, true)
        ended(name, 'ended', end, true)
        const report = readReport(file)
        if (report === undefined) {
          fail(`${name} gave no report`)
          return []
        }
        passed += report.numPassedTests
        const found = failuresOf(report)
        for (const one of found) fail(failureText(one))
        files.push(...filesOf(report))
        if (!end.isGood && found.length === 0) fail(`${name} ended badly`)
        return passedFiles(report)
      },
      async campaign(path, ...parameters) {
        const command: Command = [process.execPath, join(import.meta.dirname, '../..', path), ...parameters]
        const end = await run(command, {}, true)
        ended(path, 'ended', end, true)
        const [, good, bad] = /^(\d+) passed, (\d+) failed$/m.exec(end.output) ?? []
        passed += Number(good ?? 0)
        failed += Number(bad ?? 1) // it ended early
        if (bad !== '0') failures.push([`${path} ${parameters.join(' ')}`, ...whyFailed(end.output)].join('\n    '))
      },
    }
  }

  return {
    lane,
    fail,
    summary: (boots = '') => ({
      text: [
        ...section('minutes per phase (some run side by side)', slowest(phases, phases.length)),
        ...section('slowest files', slowest(files, slowestFiles)),
        ...section('boots of sandboxes', bootsOf(boots)),
        ...failures.map((failure) => `failed: ${failure}`),
        `${passed} passed, ${failed} failed`,
      ].join('\n'),
      isGood: failed === 0,
    }),
  }
}

/** Commands that repeat single failures, with the reasons; a campaign names each on a line of its own. */
export const repeating = (output: string): string[] => [
  ...new Set([...output.matchAll(/^again: (.*)$/gm)].map(([, command = '']) => command)),
]

/** A campaign that names nothing to repeat ended early: its last lines may say why. */
function whyFailed(output: string): readonly string[] {
  const again = repeating(output)
  return again.length > 0 ? again : output.trimEnd().split('\n').slice(-messageLines)
}

type Phase = { readonly name: string; readonly seconds: number }

const slowest = (phases: readonly Phase[], count: number): readonly string[] =>
  phases
    .toSorted((a, b) => b.seconds - a.seconds)
    .slice(0, count)
    .map(({ name, seconds }) => `${(seconds / 60).toFixed(1).padStart(7)} min  ${name}`)

const section = (title: string, lines: readonly string[]): readonly string[] =>
  lines.length === 0 ? [] : [`${title}:`, ...lines]

function bootsOf(text: string): readonly string[] {
  const seconds = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => Number(line.split(' ')[2]))
  if (seconds.length === 0) return []
  const sum = seconds.reduce((all, one) => all + one, 0)
  return [
    `  ${seconds.length} in ${(sum / 60).toFixed(1)} min, each ${Math.min(...seconds)} to ${Math.max(...seconds)} s`,
  ]
}

const filesOf = ({ testResults }: Report): readonly Phase[] =>
  testResults.map(({ name, startTime, endTime }) => ({
    name: relative(process.cwd(), name),
    seconds: (endTime - startTime) / 1_000,
  }))

type Ended = { readonly isGood: boolean; readonly output: string; readonly seconds: number }

/** Resolves with all that the program printed; with `isShown` it is printed at once, too. */
export function runProgram([program, ...parameters]: Command, env: Environment, isShown: boolean): Promise<Ended> {
  const startedMs = Date.now()
  return new Promise((resolve) => {
    const child = spawn(program, parameters, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } })
    const chunks: Buffer[] = []
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        if (isShown) process.stdout.write(chunk)
      })
    const end = (isGood: boolean): void =>
      resolve({
        isGood,
        output: Buffer.concat(chunks).toString('utf8'),
        seconds: (Date.now() - startedMs) / 1_000,
      })
    child.once('error', (error) => {
      chunks.push(Buffer.from(`${error.message}\n`))
      end(false)
    })
    child.once('close', (code) => end(code === 0))
  })
}

const passedFiles = ({ testResults }: Report): string[] =>
  testResults.filter(({ status }) => status === 'passed').map(({ name }) => relative(process.cwd(), name))

const failureText = ({ file, fullName, message }: Failure): string =>
  [`${file}: ${fullName}`, ...message.split('\n').slice(0, messageLines)].join('\n    ')
