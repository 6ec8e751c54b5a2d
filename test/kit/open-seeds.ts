/**
 * Seeds that fail on the sources before a change, too: defects to find, but none that the change made. `make prove`
 * begins with them. One that passes again is removed by hand.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export type OpenSeed = {
  readonly seed: number
  /** What lives by it: the simulated fleets, or the file of a search. */
  readonly of: 'fleets' | `test/model/${string}.test.ts`
  /** Which it fails by: a rule of fleets, or the title of a test and its violation. */
  readonly rule: string
  /** For people. */
  readonly about: string
}

/** From the root. */
export const openSeedsPath = 'test/open-seeds.json'

const listFile = join(import.meta.dirname, '../..', openSeedsPath)

export const readOpenSeeds = (file = listFile): OpenSeed[] => JSON.parse(readFileSync(file, 'utf8')) as OpenSeed[]

/** In order; what is there stays as it is. */
export function addOpenSeed(open: OpenSeed, file = listFile): void {
  const list = readOpenSeeds(file)
  if (list.some(({ seed, of }) => seed === open.seed && of === open.of)) return
  const all = [...list, open].toSorted((a, b) => a.of.localeCompare(b.of) || a.seed - b.seed)
  writeFileSync(file, `${JSON.stringify(all, undefined, 2)}\n`)
}

/** Rules of the simulation: a process that died or never ended says nothing about why. */
const unexplained: readonly string[] = ['simulation-lives', 'ends']

/**
 * Whether the change is not to blame: the same seed breaks the same rule without it.
 * @param before on the sources without the change; undefined if the seed passes there
 */
export const isOpen = (rule: string, before: string | undefined): boolean =>
  rule === before && !unexplained.includes(rule)
