/** What each campaign depends on, and the names of what has passed in it. `make prove` runs all of them. */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { campaignRecord } from './campaign-record.ts'

/** From the root. The definitions are read by their paths. */
const sourcesOf = {
  fleet: ['test/fleet/run/worker.ts', 'crds'],
  'fleet-mutants': [
    'test/fleet/run/worker.ts',
    'test/mutants/catalogue.ts',
    'test/mutants/judge-fleet.ts',
    'test/mutants/plans',
    'crds',
  ],
  'model-mutants': [
    'test/mutants/catalogue.ts',
    'test/mutants/judge-tests.ts',
    'test/model/corrections.test.ts',
    'test/model/fleet/fleet.test.ts',
    'test/model/random-lives.test.ts',
    'test/model/spec-changes.test.ts',
    'crds',
  ],
  // Unit tests may read any file of these.
  'unit-mutants': [
    'test/mutants/catalogue.ts',
    'test/mutants/judge-tests.ts',
    'src',
    'test/kit',
    'test/fleet',
    'test/promises',
  ],
  // The agent with its failpoints, and what is done to it.
  faults: ['src/daemon/main.ts', 'test/faults/failpoint-preload.ts', 'test/faults/trial.ts', 'crds'],
  // Each file of tests, and the definitions.
  hosts: [
    'bin/sandbox',
    'chart',
    'crds',
    'packages',
    'src',
    'test/e2e/other-hosts.test.ts',
    'test/host',
    'test/sandbox',
  ],
  machine: ['Makefile', 'bin/sandbox', 'build/toolchain.sh', 'crds', 'demo', 'src', 'test/machine', 'test/sandbox'],
  chaos: ['src/daemon/main.ts', 'test/chaos/campaign.ts', 'crds'],
  // Unit tests read files of all these.
  arm64: ['src', 'build', 'bench', 'test', 'crds', 'chart', 'package-lock.json'],
} as const satisfies Record<string, readonly string[]>

export type CampaignName = keyof typeof sourcesOf

/** Of the sources as they are now. */
export const recordOf = (campaign: CampaignName): ReturnType<typeof campaignRecord> =>
  campaignRecord(campaign, sourcesOf[campaign])

/** What has passed on these sources, one name a line of the record. */
export type Passed = {
  readonly sources: string
  has(name: string): boolean
  names(): readonly string[]
  /** Kept at once: a campaign may be killed. */
  add(name: string): void
  /** How many names there are, where only the campaign itself finds out; undefined before it did. */
  total(): number | undefined
  setTotal(total: number): void
}

export async function openPassed(campaign: CampaignName): Promise<Passed> {
  const { sources, file } = await recordOf(campaign)
  return { sources, ...passedIn(file) }
}

export function passedIn(file: string): Omit<Passed, 'sources'> {
  const names = new Set(existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [])
  const totalFile = `${file}.total`
  return {
    has: (name) => names.has(name),
    names: () => [...names],
    add(name) {
      if (!names.has(name)) appendFileSync(file, `${name}\n`)
      names.add(name)
    },
    total: () => (existsSync(totalFile) ? Number(readFileSync(totalFile, 'utf8')) : undefined),
    setTotal: (total) => writeFileSync(totalFile, String(total)),
  }
}
