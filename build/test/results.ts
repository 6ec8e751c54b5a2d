/** Runs the parts of `make test` and counts what they found. */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

type Report = {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly assertionResults: readonly {
      readonly fullName: string
      readonly status: string
      readonly failureMessages?: readonly string[]
    }[]
  }[]
}

export type Command = readonly [string, ...string[]]

export type Environment = Readonly<Record<string, string>>

/** Of the message of each failed test, at the end. */
const messageLines = 6

/** Each part prints what it does when it ends, or at once if it `isForeground`. None throws. */
export type Parts = {
  /** A program that says by its exit code alone whether it passed; its output is shown only if it did not. */
  readonly check: (name: string, command: Command, env?: Environment) => Promise<void>
  /**
   * One project of vitest, or what the parameters choose of it. A run without a report counts as one failure. Resolves
   * with the files that have passed.
   */
  readonly tests: (project: string, env?: Environment, parameters?: readonly string[]) => Promise<readonly string[]>
  /** A program whose last line is `N passed, N failed`. */
  readonly campaign: (path: string, ...parameters: readonly string[]) => Promise<void>
}

export type Results = {
  readonly foreground: Parts
  /** With the processor time that nothing else wants, and without a line between those of the foreground. */
  readonly background: Parts
  readonly fail: (name: string) => void
  /** What failed and why, then the counts: whoever has only the last lines of a log must know. */
  readonly summary: () => { readonly text: string; readonly isGood: boolean }
}

/** `folder`: for reports. */
export function collectResults(folder: string): Results {
  let passed = 0
  let failed = 0
  const failures: string[] = []

  const fail = (name: string): void => {
    failed++
    failures.push(name)
  }

  const parts = (isForeground: boolean): Parts => {
    const run = ([program, ...parameters]: Command, env: Environment, isShown: boolean): Promise<Ended> =>
      isForeground
        ? runProgram([program, ...parameters], env, isShown)
        : runProgram(['nice', '-n', '19', program, ...parameters], env, false)
    const show = (output: string): void => {
      if (!isForeground && output !== '') process.stdout.write(output)
    }
    return {
      async check(name, command, env = {}) {
        const { isGood, output, seconds } = await run(command, env, false)
        if (isGood) passed++
        else {
          fail(name)
          process.stdout.write(output)
        }
        console.log(`${isGood ? 'ok' : 'failed'}: ${name} (${seconds} s)`)
      },
      async tests(project, env = {}, parameters = []) {
        const file = join(folder, `${project}.json`)
        const options = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`]
        const command: Command = ['vitest', 'run', '--project', project, ...parameters, ...options]
        const { isGood, output, seconds } = await run(command, env, true)
        show(output)
        const report = readReport(file)
        if (report === undefined) {
          fail(`${project} tests gave no report`)
          return []
        }
        passed += report.numPassedTests
        failed += report.numFailedTests
        failures.push(...failuresOf(report))
        if (!isGood && report.numFailedTests === 0) fail(`${project} tests: a file could not be loaded`)
        console.log(`ended: ${project} tests (${seconds} s)`)
        return passedFiles(report)
      },
      async campaign(path, ...parameters) {
        const command: Command = [process.execPath, join(import.meta.dirname, '../..', path), ...parameters]
        const { output, seconds } = await run(command, {}, true)
        show(output)
        const [, good, bad] = /^(\d+) passed, (\d+) failed$/m.exec(output) ?? []
        passed += Number(good ?? 0)
        failed += Number(bad ?? 1) // it ended early
        if (bad !== '0') failures.push([`${path} ${parameters.join(' ')}`, ...repeating(output)].join('\n    '))
        console.log(`ended: ${path} (${seconds} s)`)
      },
    }
  }

  return {
    foreground: parts(true),
    background: parts(false),
    fail,
    summary: () => ({
      text: [...failures.map((failure) => `failed: ${failure}`), `${passed} passed, ${failed} failed`].join('\n'),
      isGood: failed === 0,
    }),
  }
}

/** Commands that repeat single failures; a campaign names each on a line of its own. */
export const repeating = (output: string): string[] => [
  ...new Set([...output.matchAll(/^again: (.*)$/gm)].map(([, command = '']) => command)),
]

type Ended = { readonly isGood: boolean; readonly output: string; readonly seconds: string }

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
        seconds: ((Date.now() - startedMs) / 1_000).toFixed(1),
      })
    child.once('error', (error) => {
      chunks.push(Buffer.from(`${error.message}\n`))
      end(false)
    })
    child.once('close', (code) => end(code === 0))
  })
}

function readReport(file: string): Report | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Report
  } catch {
    return undefined
  }
}

const passedFiles = ({ testResults }: Report): string[] =>
  testResults.filter(({ status }) => status === 'passed').map(({ name }) => relative(process.cwd(), name))

const failuresOf = ({ testResults }: Report): string[] =>
  testResults.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => status === 'failed')
      .map(({ fullName, failureMessages }) => {
        const why = (failureMessages?.[0] ?? '').split('\n').slice(0, messageLines)
        return [`${relative(process.cwd(), name)}: ${fullName}`, ...why].join('\n    ')
      }),
  )
