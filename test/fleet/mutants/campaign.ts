/**
 * `make fleet MUTANTS=1`: puts deliberate bugs into the product, one at a time, and looks for seeds that show them.
 * `--replay` runs the plan that was kept for each bug: it must fail by its rule with the bug and pass without it. Ends
 * with `N passed, N failed`.
 */
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { openPassed } from '../../../build/campaigns.ts'
import type { Plan } from '../../kit/fleet/plan.ts'
import { mutants } from './all.ts'
import { keptPlan, planFile } from './kept-plans.ts'
import type { FleetMutant } from './mutant.ts'
import { type MutantRuns, openMutantRuns } from './mutant-runs.ts'
import { findSeed, type SearchBounds } from './search.ts'

const usage = `usage: node test/fleet/mutants/campaign.ts [--replay] [--only NAME] [--seeds N] [--first N] [--workers N]
                                              [--shrink S] [--keep] [--rest] [--minutes N]

  --replay     run the kept plans only
  --only NAME  one mutant
  --seeds N    run at most so many seeds for each mutant (default 100), from --first on (default 1)
  --workers N  processes (default 2)
  --shrink S   make each plan smaller for so many seconds (default 45)
  --keep       keep the plans that were found instead of the present ones
  --rest       leave out the bugs that were shown on these sources before, as a file of the cache says; not of --replay
  --minutes N  start with none after N minutes
`

type Options = SearchBounds & { readonly isKeeping: boolean }

type Judgment =
  | { readonly outcome: 'shown' }
  /** The time was up. */
  | { readonly outcome: 'undecided' }
  | { readonly outcome: 'missed'; readonly why: string }

type Judge = (mutant: FleetMutant, runs: MutantRuns) => Promise<Judgment>

const missedBecause = (why: string): Judgment => ({ outcome: 'missed', why })

const row = ({ name, rule }: FleetMutant, seed: string, rest: string): string =>
  `${name.padEnd(42)} ${rule.padEnd(16)} ${seed.padStart(7)}  ${rest}`

function sizeOf({ nodes, skyhooks, actions }: Plan): string {
  const kinds = actions.map(({ kind }) => kind).join(' + ') || 'no fault, no edit'
  return `${nodes.length} nodes, ${skyhooks.length} Skyhooks, ${kinds}`
}

/** Where no seed shows the bug, the plan that was kept for it has to. */
const searchBy =
  ({ isKeeping, ...bounds }: Options): Judge =>
  async (mutant, runs) => {
    const { find, others } = await findSeed(mutant, runs, bounds)
    if (find !== undefined) {
      console.log(row(mutant, String(find.seed), sizeOf(find.plan)))
      console.log(`    ${find.violation.message}`)
      if (isKeeping) writeFileSync(planFile(mutant), `${JSON.stringify(find.plan, undefined, 1)}\n`)
      return { outcome: 'shown' }
    }
    if (bounds.isTimeUp()) return { outcome: 'undecided' }
    const noSeed = [`no seed of ${bounds.seeds} shows it`, ...others.slice(0, 5)].join('\n    ')
    const replayed = await replay(mutant, runs)
    if (replayed.outcome === 'missed') return missedBecause(`${noSeed}, and ${replayed.why}`)
    console.log(`    ${noSeed}`)
    return replayed
  }

const replay: Judge = async (mutant, runs) => {
  const plan = keptPlan(mutant)
  if (plan === undefined) return missedBecause('no plan is kept for it')
  const good = await runs.withoutBug(plan)
  if (good !== undefined) return missedBecause(`its plan fails without the bug: ${good.rule}: ${good.message}`)
  const bad = await runs.withBug(mutant, plan)
  if (bad?.rule !== mutant.rule) {
    const outcome = bad === undefined ? 'passes' : `fails by ${bad.rule}: ${bad.message}`
    return missedBecause(`its plan ${outcome} with the bug`)
  }
  console.log(row(mutant, 'kept', sizeOf(plan)))
  return { outcome: 'shown' }
}

type Work = {
  readonly judge: Judge
  readonly workers: number
  readonly isTimeUp: () => boolean
  readonly onJudgment: (mutant: FleetMutant, judgment: Judgment) => void
}

async function judgeAll(
  selected: readonly FleetMutant[],
  { judge, workers, isTimeUp, onJudgment }: Work,
): Promise<void> {
  const queue = [...selected]
  const work = async (): Promise<void> => {
    const runs = openMutantRuns()
    try {
      for (let mutant = queue.shift(); mutant !== undefined && !isTimeUp(); mutant = queue.shift())
        onJudgment(mutant, await judge(mutant, runs).catch((error: unknown) => missedBecause(String(error))))
    } finally {
      runs.close()
    }
  }
  await Promise.all(Array.from({ length: workers }, work))
}

async function main(): Promise<number> {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean' } as const
  const options = {
    replay: flag,
    only: text,
    shrink: text,
    seeds: text,
    first: text,
    workers: text,
    keep: flag,
    rest: flag,
    minutes: text,
    help: flag,
  } as const
  const { values } = parseArgs({ options })
  if (values.help === true) {
    console.log(usage)
    return 0
  }
  const { only, shrink = 45, seeds = 100, first = 1, workers = 2, keep = false } = values
  const selected = mutants.filter(({ name }) => only === undefined || name === only)
  const isReplay = values.replay === true
  const startedMs = performance.now()
  const isTimeUp = (): boolean => performance.now() - startedMs > Number(values.minutes ?? Infinity) * 60_000
  const bounds = { first: Number(first), seeds: Number(seeds), shrinkMs: 1_000 * Number(shrink), isTimeUp }
  const judge = isReplay ? replay : searchBy({ ...bounds, isKeeping: keep })
  const record = isReplay ? undefined : await openPassed('fleet-mutants')
  const rest = selected.filter(({ name }) => values.rest !== true || record?.has(name) !== true)
  const count = { shown: selected.length - rest.length, missed: 0, undecided: 0 }
  const onJudgment = (mutant: FleetMutant, judgment: Judgment): void => {
    count[judgment.outcome]++
    if (judgment.outcome === 'shown') record?.add(mutant.name)
    if (judgment.outcome !== 'missed') return
    console.log(`${row(mutant, '', 'MISSED')}: ${judgment.why}`)
    console.log(`again: node test/fleet/mutants/campaign.ts${isReplay ? ' --replay' : ''} --only ${mutant.name}`)
  }
  await judgeAll(rest, { judge, workers: Number(workers), isTimeUp, onJudgment })
  console.log(`${count.shown} passed, ${count.missed} failed`)
  return count.missed > 0 || selected.length === 0 ? 1 : 0
}

process.exitCode = await main()
