/**
 * Seeds that fail on the sources before a change, too: defects to find, but none that the change made. `make prove`
 * begins with them. One that passes again is removed by hand.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Violation } from './run-plan.ts'

export type OpenSeed = {
  readonly seed: number
  /** Which it fails by. */
  readonly rule: string
  /** For people. */
  readonly about: string
}

/** From the root. */
export const openSeedsPath = 'test/fleet/open-seeds.json'

const listFile = join(import.meta.dirname, '../../..', openSeedsPath)

export const readOpenSeeds = (file = listFile): OpenSeed[] => JSON.parse(readFileSync(file, 'utf8')) as OpenSeed[]

/** Ascending; a seed that is there stays as it is. */
export function addOpenSeed(open: OpenSeed, file = listFile): void {
  const list = readOpenSeeds(file)
  if (list.some(({ seed }) => seed === open.seed)) return
  const all = [...list, open].toSorted((a, b) => a.seed - b.seed)
  writeFileSync(file, `${JSON.stringify(all, undefined, 2)}\n`)
}

/** Rules of the simulation: a process that died or never ended says nothing about why. */
const unexplained: readonly string[] = ['simulation-lives', 'ends']

/**
 * Whether the change is not to blame: the same plan breaks the same rule without it.
 * @param before of the sources without the change; undefined if the plan passes there
 */
export const isOpen = (now: Violation, before: Violation | undefined): boolean =>
  now.rule === before?.rule && !unexplained.includes(now.rule)
