/**
 * The unit tests on the Node of the image for arm64, under emulation. This process transforms the sources and collects
 * results; emulated workers run the tests. The last line is `N passed, N failed`, which counts files. See `--help`.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { createVitest, type TestModule } from 'vitest/node'
import { openPassed } from './campaigns.ts'
import { emulated } from './emulator.ts'
import { readPins } from './image.ts'
import { runtimeLayer } from './runtime-layer.ts'

const repository = join(import.meta.dirname, '..')

const usage = `usage: node build/unit-tests-arm64.ts [--rest] [--minutes N] [FILTER...]

  FILTER       a part of the path of files, such as src/schemas
  --rest       leaves out files that have passed on these sources
  --minutes N  starts no test after this time
`

/** Emulation takes ten times as long, on a busy machine more. */
const testTimeoutMs = 600_000

/** They test tools of this repository, which load programs of the machine's architecture. */
const withNativeTools = ['build/checks/unit-tests.test.ts']

/** The emulated Node makes it: a vitest that starts its workers otherwise would pass without a test on arm64. */
const usedFile = 'used'

/** A script in the place of the Node that runs this: vitest starts its workers with it. */
async function emulatedNode(work: string): Promise<string> {
  const root = join(work, 'root')
  mkdirSync(root)
  execFileSync('tar', ['-C', root, '-xzf', (await runtimeLayer('arm64', readPins(), false)).file])
  const script = join(work, 'node')
  const command = [...emulated(root), join(root, 'usr/bin/node')].join("' '")
  writeFileSync(script, `#!/bin/sh\n: >'${join(work, usedFile)}'\nexec '${command}' "$@"\n`, { mode: 0o755 })
  return script
}

type Choice = { readonly filters: string[]; readonly isRest: boolean; readonly minutes: number | undefined }

/** How many files passed and failed; an error outside of tests counts as a file. @throws Error where the workers were not emulated */
async function runTests({ filters, isRest, minutes }: Choice, work: string): Promise<Record<'good' | 'bad', number>> {
  const passed = await openPassed('arm64')
  const count = { good: 0, bad: 0 }
  let isStopped = false
  process.execPath = await emulatedNode(work)
  const vitest = await createVitest('test', {
    project: ['unit'],
    testTimeout: testTimeoutMs,
    maxWorkers: availableParallelism(),
    watch: false,
    reporters: [
      'default',
      {
        onTestModuleEnd(file) {
          if (file.state() === 'failed') count.bad++
          if (file.state() !== 'passed' || (isStopped && isCut(file))) return
          count.good++
          passed.add(nameOf(file))
        },
      },
    ],
  })
  function stop(): void {
    isStopped = true
    void vitest.cancelCurrentRun('keyboard-input')
  }
  const end = minutes === undefined ? undefined : setTimeout(stop, minutes * 60_000)
  try {
    await vitest.standalone() // shows the reporters where they are
    const found = await vitest.globTestSpecifications(filters)
    const files = found.filter((file) => !withNativeTools.includes(nameOf(file)))
    if (filters.length === 0) passed.setTotal(files.length)
    const chosen = isRest ? files.filter((file) => !passed.has(nameOf(file))) : files
    if (chosen.length === 0 || isStopped) return count
    const { unhandledErrors } = await vitest.runTestSpecifications(chosen)
    count.bad += unhandledErrors.length
    if (!existsSync(join(work, usedFile))) throw new Error('vitest did not start its workers with process.execPath')
  } finally {
    clearTimeout(end)
    await vitest.close()
  }
  return count
}

/** Some of its tests did not run: vitest skips what is left of a file when it is told to stop. */
const isCut = (file: TestModule): boolean => [...file.children.allTests('skipped')].length > 0

const nameOf = ({ moduleId }: { readonly moduleId: string }): string => relative(repository, moduleId)

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    options: {
      rest: { type: 'boolean', default: false },
      minutes: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
    allowPositionals: true,
  })
  if (values.help) {
    process.stderr.write(usage)
    return 0
  }
  const minutes = values.minutes === undefined ? undefined : Number(values.minutes)
  const work = mkdtempSync(join(tmpdir(), 'unit-tests-arm64-'))
  try {
    const { good, bad } = await runTests({ filters: positionals, isRest: values.rest, minutes }, work)
    console.log(`${good} passed, ${bad} failed`)
    return bad === 0 ? 0 : 1
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

process.exitCode = await main().catch((error: unknown) => {
  console.error(`unit-tests-arm64: ${error instanceof Error ? error.message : String(error)}`)
  return 1
})
