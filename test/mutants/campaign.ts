/**
 * `make mutants`: puts deliberate bugs into a copy of the tree, one at a time, each of which its tiers of tests must
 * catch. Ends with `N passed, N failed`: what a tier misses has failed.
 */
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openPassed } from '../../build/campaigns.ts'
import { everyNth, mutants, type Trial, trialId, trialsOf } from './catalogue.ts'
import { openRunner } from './fleet-runs.ts'
import { judgeByFleet, type SeedSearch } from './judge-fleet.ts'
import { expectPass, judgeByTests } from './judge-tests.ts'
import type { Judgment } from './judgment.ts'
import { copyTree, repository } from './tree.ts'

const usage = `usage: node test/mutants/campaign.ts [--tier unit|model|fleet] [--only NAME] [--in FOLDER]
                                     [--every N [--shift N]] [--rest] [--minutes N] [--workers N]
                                     [--search [--seeds N] [--first N] [--shrink S] [--keep]]

  --tier T      what this tier must catch
  --only NAME   one bug
  --in FOLDER   those of the files in a folder of src, such as lease/
  --every N     the first one and each N-th from there on; --shift N adds each N-th from another one on
  --rest        leave out what was caught on these sources before, as a file of the cache says
  --minutes N   start with none after N minutes
  --workers N   copies of the tree at work (default 2)
  --search      find a seed that shows the bug to a fleet; without it, and where none does, the kept plan has to
    --seeds N   run at most so many for each bug (default 100), from --first on (default 1)
    --shrink S  make the plan smaller for so many seconds (default 45)
    --keep      keep it instead of the present one
`

type Work = {
  readonly workers: number
  readonly search: SeedSearch | undefined
  readonly isTimeUp: () => boolean
  readonly onJudgment: (trial: Trial, judgment: Judgment) => void
}

/** Each worker takes the next one, with a tree of its own. */
async function judgeAll(trials: readonly Trial[], { workers, search, isTimeUp, onJudgment }: Work): Promise<void> {
  const queue = [...trials]
  const unitTests = new Set(trials.flatMap(({ by }) => (by.tier === 'unit' ? by.tests : [])))
  let checked: Promise<void> | undefined
  const work = async (): Promise<void> => {
    const tree = copyTree()
    const cacheFolder = join(tree.path, '.cache')
    const withoutBug = openRunner(repository, cacheFolder)
    const judge = async ({ by }: Trial): Promise<Judgment> => {
      if (by.tier !== 'fleet') return await judgeByTests(tree.path, by)
      const withBug = openRunner(tree.path, cacheFolder)
      return await judgeByFleet({ withBug, withoutBug }, by, search).finally(() => withBug.close())
    }
    try {
      if (unitTests.size > 0) await (checked ??= expectPass(tree.path, unitTests))
      for (let trial = queue.shift(); trial !== undefined && !isTimeUp(); trial = queue.shift()) {
        const takeOut = tree.put(trial.mutant)
        onJudgment(trial, await judge(trial).catch((error: unknown) => ({ outcome: 'missed', why: String(error) })))
        takeOut()
      }
    } finally {
      withoutBug.close()
      tree.remove()
    }
  }
  await Promise.all(Array.from({ length: workers }, work))
}

async function main(): Promise<number> {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean' } as const
  const selection = { tier: text, only: text, in: text, every: text, shift: text, rest: flag } as const
  const searching = { search: flag, seeds: text, first: text, shrink: text, keep: flag } as const
  const { values } = parseArgs({ options: { ...selection, ...searching, minutes: text, workers: text, help: flag } })
  if (values.help === true) {
    console.log(usage)
    return 0
  }
  const { tier, only, in: folder = '', every = 1, shift = 0, rest = false, minutes = Infinity, workers = 2 } = values
  const { seeds = 100, first = 1, shrink = 45, keep: isKeeping = false } = values
  const startedMs = performance.now()
  const isTimeUp = (): boolean => performance.now() - startedMs > Number(minutes) * 60_000
  const bounds = { first: Number(first), seeds: Number(seeds), shrinkMs: 1_000 * Number(shrink), isTimeUp, isKeeping }

  const trials = trialsOf(mutants).filter(
    ({ mutant: { name, edits }, by }) =>
      (only === undefined || name === only) &&
      (tier === undefined || by.tier === tier) &&
      edits.some(({ file }) => file.startsWith(`src/${folder}`)),
  )
  const selected = everyNth(trials, Number(every), Number(shift))
  const tiers = [...new Set(selected.map(({ by }) => by.tier))]
  const records = new Map(await Promise.all(tiers.map(async (of) => [of, await openPassed(`${of}-mutants`)] as const)))
  const isKnown = (trial: Trial): boolean => records.get(trial.by.tier)?.has(trialId(trial)) === true
  const left = selected.filter((trial) => !(rest && isKnown(trial)))
  const count = { caught: selected.length - left.length, missed: 0, undecided: 0 }
  const onJudgment = (trial: Trial, judgment: Judgment): void => {
    count[judgment.outcome]++
    const { by, mutant } = trial
    if (judgment.outcome === 'caught') {
      records.get(by.tier)?.add(trialId(trial))
      console.log(`caught ${trialId(trial)} (${judgment.how})`)
    }
    if (judgment.outcome === 'missed') {
      console.log(`MISSED ${trialId(trial)}: ${judgment.why}`)
      console.log(`again: node test/mutants/campaign.ts --tier ${by.tier} --only ${JSON.stringify(mutant.name)}`)
    }
  }
  const search = values.search === true ? bounds : undefined
  if (left.length > 0) await judgeAll(left, { workers: Number(workers), search, isTimeUp, onJudgment })
  console.log(`${count.caught} passed, ${count.missed} failed`)
  return count.missed > 0 || selected.length === 0 ? 1 : 0
}

process.exitCode = await main()
