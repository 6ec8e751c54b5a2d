/**
 * `make fleet`: runs many seeds of simulated fleets and counts what they met. Ends with `N passed, N failed`, or with
 * the trace of one seed.
 */
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { recordOf } from '../../../build/campaigns.ts'
import { addOpenSeed, isOpen, openSeedsPath } from '../../kit/open-seeds.ts'
import { copySourcesBefore } from '../../kit/sources-before.ts'
import { reportFailure } from './failure-report.ts'
import type { Plan } from '../../kit/fleet/plan.ts'
import { withPolicies, withRenamedPolicies } from '../../kit/fleet/plan-policies.ts'
import { planRun } from './plan-run.ts'
import type { RunResult, Violation } from '../../kit/fleet/run-plan.ts'
import { openRecord } from './record.ts'
import { createRunner } from './runner.ts'
import { createTally } from './tally.ts'

const usage = `usage: node test/fleet/run/campaign.ts [--seeds N] [--first N] [--workers N] [--report N] [--continue]
                                        [--minutes N] [--open] | --seed N [--whole]

  --seeds N     run so many seeds (default 200), from --first on (default 1)
  --workers N   processes (default 2)
  --report N    shrink and print so many failing seeds (default 20)
  --continue    leave out the seeds that have passed on these sources, and keep those that pass now, in a file of the cache
  --minutes N   start no run after N minutes
  --open        run a seed that fails on the sources before the change, too: of HEAD if the working tree differs, else of
                its parent. If it breaks the same rule there, it is added to ${openSeedsPath} and does not count
  --seed N      run one seed; print its plan and, if it fails, the trace of the smallest plan that fails alike
  --whole       with all lines of the trace
  --policies    with a DeploymentPolicy for each Skyhook in place of its budget
  --renames     the same, and each policy gets another name in the middle of the run
`

const repository = join(import.meta.dirname, '../../..')
const worker = 'test/fleet/run/worker.ts'

/** A run takes a tenth of a second, one with fifty nodes some seconds. */
const maxRunMs = 120_000
const shrinkMs = 30_000
/** Each cell of the table is met so often. A shorter campaign shows what fell behind; a cell of zero fails it. */
const [meetings, perSeeds] = [100, 20_000]
/** Fewer seeds say nothing about cells. */
const minJudgedSeeds = 3_000

type PlanOf = (seed: number) => Plan

const unchanged = (plan: Plan): Plan => plan

type Campaign = {
  readonly first: number
  readonly seeds: number
  readonly workers: number
  readonly reports: number
  readonly minutes: number
  readonly isJudgedByChange: boolean
  readonly isContinued: boolean
  readonly planOf: PlanOf
}

/** Calls back with each result. */
async function runSeeds(
  seeds: readonly number[],
  { workers, minutes, planOf }: Campaign,
  onResult: (seed: number, result: RunResult) => void,
): Promise<void> {
  const queue = [...seeds]
  const startedMs = performance.now()
  const isTimeUp = (): boolean => performance.now() - startedMs > minutes * 60_000
  const work = async (): Promise<void> => {
    const runner = createRunner(join(repository, worker), { maxRunMs })
    for (let seed = queue.shift(); seed !== undefined && !isTimeUp(); seed = queue.shift())
      onResult(seed, await runner.run(planOf(seed)))
    runner.close()
  }
  await Promise.all(Array.from({ length: workers }, work))
}

/** Adds those that the change is not to blame for to the list of open seeds; returns them. */
async function openSeedsOf(failures: ReadonlyMap<number, Violation>, planOf: PlanOf): Promise<ReadonlySet<number>> {
  const open = new Set<number>()
  if (failures.size === 0) return open
  const before = copySourcesBefore()
  if (before === undefined) {
    console.log('git does not have the sources before the change: each seed that fails counts')
    return open
  }
  const runner = createRunner(join(before.path, worker), { maxRunMs })
  try {
    for (const [seed, { rule, message }] of failures) {
      if (!isOpen(rule, (await runner.run(planOf(seed))).violation?.rule)) continue
      open.add(seed)
      addOpenSeed({ seed, of: 'fleets', rule, about: message })
      console.log(`open: seed ${seed} (${rule}) fails on ${before.commit.slice(0, 7)}, too: make fleet SEED=${seed}`)
    }
  } finally {
    runner.close()
    before.remove()
  }
  return open
}

async function runCampaign(campaign: Campaign): Promise<boolean> {
  const { first, seeds, reports, isContinued, isJudgedByChange, planOf } = campaign
  const record = isContinued ? await recordOf('fleet') : undefined
  const progress = record && (await openRecord(record.file))
  const pending = Array.from({ length: seeds }, (_, index) => first + index).filter((seed) => !progress?.has(seed))
  if (record) console.log(`sources ${record.sources}: ${seeds - pending.length} seeds passed before (${record.file})`)
  const tally = createTally(progress?.counts())
  const startedMs = performance.now()
  let lastReportMs = startedMs
  let runs = 0
  await runSeeds(pending, campaign, (seed, result) => {
    runs++
    tally.add(seed, result)
    progress?.add(seed, result)
    const failure = tally.failures.get(seed)
    if (failure !== undefined) console.log(`seed ${seed} failed: ${failure.rule}: ${failure.message}`)
    if (performance.now() - lastReportMs < 20_000) return
    lastReportMs = performance.now()
    console.log(`${tally.runs()} runs, ${tally.failures.size} failed`)
    progress?.write()
  })
  await progress?.end()
  const seconds = (performance.now() - startedMs) / 1_000
  console.log(tally.text())
  const open = isJudgedByChange ? await openSeedsOf(tally.failures, planOf) : new Set<number>()
  const failing = [...tally.failures.keys()].filter((seed) => !open.has(seed)).toSorted((a, b) => a - b)
  for (const seed of failing.slice(0, reports)) {
    const { rule = '' } = tally.failures.get(seed) ?? {}
    if (rule === 'ends' || rule === 'simulation-lives') continue // it would not end here either, or end this process
    console.log(
      `\n${(await reportFailure(planOf(seed), { withinMs: shrinkMs })) ?? `seed ${seed} does not fail again`}`,
    )
  }
  for (const seed of failing) {
    const { rule = '', message = '' } = tally.failures.get(seed) ?? {}
    console.log(`again: make fleet SEED=${seed} # ${rule}: ${message}`)
  }
  const isWhole = runs === pending.length
  const missing = !isWhole || seeds < minJudgedSeeds ? [] : tally.below(seeds < perSeeds ? 1 : meetings)
  const rare = tally.below(Math.floor((tally.runs() * meetings) / perSeeds))
  if (rare.length > 0) console.log(`\nmet fewer than ${meetings} times per ${perSeeds} seeds: ${rare.join(', ')}`)
  if (missing.length > 0) console.log(`\nfailed: met too rarely: ${missing.join(', ')}`)
  console.log(`${(runs / seconds).toFixed(1)} seeds per second`)
  const passed = seeds - pending.length + runs - tally.failures.size
  console.log(`${passed} passed, ${failing.length + missing.length} failed`)
  return failing.length + missing.length === 0
}

async function main(): Promise<number> {
  const text = { type: 'string' } as const
  const options = {
    seeds: text,
    first: text,
    workers: text,
    report: text,
    continue: { type: 'boolean' },
    minutes: text,
    open: { type: 'boolean' },
    seed: text,
    whole: { type: 'boolean' },
    policies: { type: 'boolean' },
    renames: { type: 'boolean' },
  } as const
  const { values } = parseArgs({ options: { ...options, help: { type: 'boolean' } } })
  if (values.help === true) {
    console.log(usage)
    return 0
  }
  const changed = values.renames === true ? withRenamedPolicies : values.policies === true ? withPolicies : undefined
  const planOf: PlanOf = (seed) => (changed ?? unchanged)(planRun(seed))
  if (values.seed !== undefined) {
    const seed = Number(values.seed)
    const report = await reportFailure(planOf(seed), { withinMs: shrinkMs, isWhole: values.whole === true })
    console.log(report ?? `${JSON.stringify(planOf(seed), undefined, 1)}\nseed ${seed} passes`)
    return report === undefined ? 0 : 1
  }
  const { seeds = 200, first = 1, workers = 2, report = 20, continue: isContinued = false, minutes = Infinity } = values
  if (isContinued && changed !== undefined) throw new Error('--continue is about the plans as they are')
  const campaign: Campaign = {
    first: Number(first),
    seeds: Number(seeds),
    workers: Number(workers),
    reports: Number(report),
    minutes: Number(minutes),
    isContinued,
    isJudgedByChange: values.open === true,
    planOf,
  }
  return (await runCampaign(campaign)) ? 0 : 1
}

process.exitCode = await main()
