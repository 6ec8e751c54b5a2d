/**
 * The main job and the tests of hosts on each base disk of the sandbox (HOST_OS), and the table with what was seen in
 * docs/usage/install.md. Ends with `N passed, N failed`, of files. Needs root.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openPassed } from '../../build/campaigns.ts'
import {
  type HostRun,
  leftOn,
  type PlannedRun,
  recordedRuns,
  recordText,
  skippedOf,
  withRows,
} from '../kit/files/host-runs.ts'
import { machineText, plannedHere } from '../kit/files/hosts-here.ts'
import { headCommit, isTreeChanged } from '../../build/test/git.ts'
import { runProgram } from '../../build/test/results.ts'
import { readReport, reportOptions } from '../../build/test/vitest-report.ts'

const usage = `usage: node test/host/campaign.ts [--os NAME] [--rest] [--minutes N]

  --os NAME    only on this base disk (test/sandbox/README.md lists them)
  --rest       leave out what has passed on these sources before, as a file of the cache says
  --minutes N  start no file after N minutes
`

const page = 'docs/usage/install.md'

/** Undefined if it failed. */
async function runFile({ os, file }: PlannedRun): Promise<HostRun | undefined> {
  const commit = `${headCommit()?.slice(0, 7) ?? 'none'}${isTreeChanged(page) ? '+' : ''}`
  const folder = mkdtempSync(join(tmpdir(), 'hosts-'))
  const report = join(folder, 'report.json')
  try {
    const command = ['vitest', 'run', '--project', 'hosts', file, ...reportOptions(report)] as const
    const { isGood } = await runProgram(command, { HOST_OS: os }, true)
    const result = readReport(report)
    if (!isGood || result === undefined) return undefined
    const tests = result.testResults.flatMap(({ assertionResults }) => assertionResults)
    const passed = tests.filter(({ status }) => status === 'passed').length
    return { os, file, machine: machineText(), commit, passed, skipped: skippedOf(file, tests) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      os: { type: 'string' },
      rest: { type: 'boolean' },
      minutes: { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) {
    console.log(usage)
    return 0
  }
  const planned = plannedHere()
  const chosen = planned.filter(({ os }) => values.os === undefined || os === values.os)
  if (chosen.length === 0)
    throw new Error(`--os ${values.os}: take one of ${[...new Set(planned.map(({ os }) => os))].join(', ')}`)
  const record = await openPassed('hosts')
  const here = machineText()
  const runs = (): readonly HostRun[] => recordedRuns(record.names())
  const left = (): readonly PlannedRun[] => leftOn((machine) => machine === here, chosen, runs())
  const endMs = performance.now() + Number(values.minutes ?? Infinity) * 60_000
  let [passed, failed] = [0, 0]
  for (const one of values.rest ? left() : chosen) {
    if (performance.now() >= endMs) break
    console.log(`\n${one.os}: ${one.file}`)
    const run = await runFile(one)
    if (run === undefined) console.log(`again: HOST_OS=${one.os} npx vitest run --project hosts ${one.file}`)
    else if (left().includes(one)) record.add(recordText(run))
    if (run === undefined) failed++
    else passed++
  }
  writeFileSync(page, withRows(readFileSync(page, 'utf8'), runs(), planned))
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}

process.exitCode = await main()
