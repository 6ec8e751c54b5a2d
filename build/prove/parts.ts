/** The parts of `make prove`: what each has proven of these sources so far, and how it gets on. */
import { openRecord } from '../../test/fleet/run/record.ts'
import { suites } from '../../test/machine/machine.ts'
import { mutants, trialId, trialsOf } from '../../test/mutants/catalogue.ts'
import type { Tier } from '../../test/mutants/mutant.ts'
import { openPassed, recordOf } from '../campaigns.ts'
import { type OpenSeed, readOpenSeeds } from '../../test/kit/open-seeds.ts'
import { sampledTests } from '../test/projects.ts'
import { changedSearches, searchFiles, type Searches, thorough } from '../test/searches.ts'
import { chaosRuns } from './chaos-runs.ts'
import { leftOn, type PlannedRun, recordedRuns } from '../../test/kit/files/host-runs.ts'
import { machineText, plannedHere } from '../../test/kit/files/hosts-here.ts'

export type State = { readonly proven: number; readonly of: number | undefined; readonly sources: string }

/** Runs a program that ends with `N passed, N failed`, or says by its exit code alone whether it passed. */
export type Run = (command: readonly [string, ...string[]], env?: Readonly<Record<string, string>>) => Promise<boolean>

export type Part = {
  readonly name: string
  /** Minutes, not hours. */
  readonly isShort: boolean
  readonly needsRoot: boolean
  /** As its record says now. */
  state(): Promise<State>
  /** @param minutes undefined: until all is proven */
  run(run: Run, minutes: number | undefined): Promise<void>
}

const seedsToProve = 20_000
const chaosMinutes = { all: 30, atOnce: 10 }

const { execPath: node } = process
const limit = (minutes: number | undefined): string[] => (minutes === undefined ? [] : ['--minutes', String(minutes)])
const fleets = 'test/fleet/run/campaign.ts'
const movingSearches = 'test/model/campaign.ts'

/** Runs nothing more once the minutes are over. */
async function eachWithin<T>(
  list: Iterable<T>,
  minutes: number | undefined,
  run: (one: T) => Promise<unknown>,
): Promise<void> {
  const startedMs = performance.now()
  for (const one of list) {
    if (minutes !== undefined && performance.now() - startedMs > minutes * 60_000) return
    await run(one)
  }
}

const searchOf = async ({ seed, of }: Pick<OpenSeed, 'seed' | 'of'>): Promise<Searches> =>
  await changedSearches([of], { SEARCH_SEED: String(seed) })

const openSeeds: Part = {
  name: 'open seeds',
  isShort: true,
  needsRoot: false,
  async state() {
    const { sources, file } = await recordOf('fleet')
    const record = await openRecord(file)
    const seeds = readOpenSeeds()
    const isProven = async (open: OpenSeed): Promise<boolean> =>
      open.of === 'fleets' ? record.has(open.seed) : (await searchOf(open)).known.length > 0
    const proven = (await Promise.all(seeds.map(isProven))).filter(Boolean)
    return { proven: proven.length, of: seeds.length, sources }
  },
  run: (run, minutes) =>
    eachWithin(readOpenSeeds(), minutes, async (open) => {
      const seed = String(open.seed)
      if (open.of === 'fleets') return await run([node, fleets, '--seeds', '1', '--first', seed, '--continue'])
      const search = await searchOf(open)
      if (await run([node, movingSearches, '--seed', seed, open.of])) search.markPassed([open.of])
    }),
}

const allSearches = async (): Promise<Searches> => await changedSearches([...searchFiles(), ...sampledTests])

const searches: Part = {
  name: 'searches',
  isShort: true,
  needsRoot: false,
  async state() {
    const { run, known, sources } = await allSearches()
    return { proven: known.length, of: run.length + known.length, sources }
  },
  async run(run, minutes) {
    const changed = await allSearches()
    await eachWithin(changed.run, minutes, async (file) => {
      const projects = ['model', 'search', 'unit'].flatMap((name) => ['--project', name])
      if (await run(['vitest', 'run', ...projects, file], thorough)) changed.markPassed([file])
    })
  },
}

/** Seeds of the search that holds plans against deeds: each has thousands of cases. */
const planSeeds = Array.from({ length: 10 }, (_, at) => at + 1)
const planSearch = 'test/model/plan/plan.test.ts'

const plans: Part = {
  name: 'plans, seeds',
  isShort: false,
  needsRoot: false,
  async state() {
    const searched = await Promise.all(planSeeds.map(async (seed) => await searchOf({ seed, of: planSearch })))
    const proven = searched.filter(({ known }) => known.length > 0).length
    return { proven, of: planSeeds.length, sources: searched[0]?.sources ?? '' }
  },
  run: (run, minutes) =>
    eachWithin(planSeeds, minutes, async (seed) => {
      const search = await searchOf({ seed, of: planSearch })
      if (search.known.length > 0) return
      const command = ['vitest', 'run', '--project', 'model', planSearch] as const
      if (await run(command, { ...thorough, SEARCH_SEED: String(seed) })) search.markPassed([planSearch])
    }),
}

const mutantsOf = (tier: Tier): Part => ({
  name: `mutants, ${tier}`,
  isShort: true,
  needsRoot: false,
  async state() {
    const record = await openPassed(`${tier}-mutants`)
    const trials = trialsOf(mutants).filter(({ by }) => by.tier === tier)
    const caught = trials.filter((trial) => record.has(trialId(trial)))
    return { proven: caught.length, of: trials.length, sources: record.sources }
  },
  async run(run, minutes) {
    const search = tier === 'fleet' ? ['--search', '--shrink', '0'] : []
    await run([node, 'test/mutants/campaign.ts', '--tier', tier, '--rest', ...search, ...limit(minutes)])
  },
})

const simulatedFleets: Part = {
  name: 'fleets, seeds',
  isShort: false,
  needsRoot: false,
  async state() {
    const { sources, file } = await recordOf('fleet')
    const record = await openRecord(file)
    let proven = 0
    for (let seed = 1; seed <= seedsToProve; seed++) if (record.has(seed)) proven++
    return { proven, of: seedsToProve, sources }
  },
  run: async (run, minutes) =>
    void (await run([node, fleets, '--seeds', String(seedsToProve), '--continue', ...limit(minutes)])),
}

const crashPoints: Part = {
  name: 'crash points',
  isShort: false,
  needsRoot: true,
  async state() {
    const record = await openPassed('faults')
    return { proven: record.names().length, of: record.total(), sources: record.sources }
  },
  run: async (run, minutes) => void (await run([node, 'test/faults/campaign.ts', '--rest', ...limit(minutes)])),
}

const chaos: Part = {
  name: 'chaos, minutes',
  isShort: false,
  needsRoot: true,
  async state() {
    const record = await openPassed('chaos')
    return { proven: chaosRuns(record.names()).minutes, of: chaosMinutes.all, sources: record.sources }
  },
  async run(run, minutes = Infinity) {
    const startedMs = performance.now()
    for (;;) {
      const { seeds, minutes: proven } = chaosRuns((await openPassed('chaos')).names())
      const left = minutes - (performance.now() - startedMs) / 60_000
      const next = Math.ceil(Math.min(chaosMinutes.atOnce, chaosMinutes.all - proven, left))
      if (next <= 0) return
      let seed = 1
      while (seeds.has(seed)) seed++
      if (!(await run([node, 'test/chaos/campaign.ts', '--minutes', String(next), '--seed', String(seed)]))) return
    }
  },
}

async function hostsState(planned: readonly PlannedRun[], isMachine: (text: string) => boolean): Promise<State> {
  const record = await openPassed('hosts')
  const left = leftOn(isMachine, planned, recordedRuns(record.names()))
  return { proven: planned.length - left.length, of: planned.length, sources: record.sources }
}

const hosts: Part = {
  name: 'hosts, files',
  isShort: false,
  needsRoot: true,
  state: async () => await hostsState(plannedHere(), (text) => text === machineText()),
  run: async (run, minutes) => void (await run([node, 'test/host/campaign.ts', '--rest', ...limit(minutes)])),
}

/** In a virtual machine, where this one has not shown them. */
const hostsOnCgroupV2: Part = {
  name: 'hosts of Debian 13 on cgroup v2, files',
  isShort: false,
  needsRoot: true,
  state: async () =>
    await hostsState(
      plannedHere().filter(({ os }) => os === 'trixie'),
      (text) => text.includes('cgroup v2'),
    ),
  async run(run, minutes) {
    const { proven, of } = await hostsOnCgroupV2.state()
    if (proven !== of) await run([node, 'test/machine/campaign.ts', '--hosts', 'trixie', ...limit(minutes)])
  },
}

/** An estimate for one whose processor is emulated. */
const machineMinutes = 40

const machines: Part = {
  name: 'virtual machines',
  isShort: false,
  needsRoot: true,
  async state() {
    const record = await openPassed('machine')
    return { proven: record.names().length, of: suites.length, sources: record.sources }
  },
  async run(run, minutes) {
    if (minutes !== undefined && minutes < machineMinutes) return
    const record = await openPassed('machine')
    const left = suites.filter((suite) => !record.has(suite))
    await eachWithin(left, minutes, (suite) => run([node, 'test/machine/campaign.ts', '--suite', suite]))
  },
}

const unitTestsOnArm64: Part = {
  name: 'unit tests on arm64, files',
  isShort: true,
  needsRoot: false,
  async state() {
    const record = await openPassed('arm64')
    return { proven: record.names().length, of: record.total(), sources: record.sources }
  },
  run: async (run, minutes) => void (await run([node, 'build/unit-tests-arm64.ts', '--rest', ...limit(minutes)])),
}

/** In the order in which they run. */
export const parts: readonly Part[] = [
  openSeeds,
  searches,
  mutantsOf('unit'),
  mutantsOf('model'),
  mutantsOf('fleet'),
  unitTestsOnArm64,
  simulatedFleets,
  plans,
  crashPoints,
  chaos,
  hosts,
  hostsOnCgroupV2,
  machines,
]
