/**
 * What the runs of one campaign have shown so far, in a file: 20,000 seeds take hours, and may be run in parts. It is
 * about one state of the sources.
 */
import { readFile, rename, writeFile } from 'node:fs/promises'
import { isObject, parseJson } from '../../../src/schemas/json.ts'
import type { RunResult } from '../../kit/fleet/run-plan.ts'
import { type Counts, createTally } from './tally.ts'

type CampaignRecord = {
  /** Seeds that passed, from the first to the last one of each range; ascending, no two ranges touch. */
  readonly passed: readonly (readonly [number, number])[]
  /** Of these seeds. */
  readonly counts: Counts
}

/** Undefined if there is none. Throws for a file that is something else. */
async function readRecord(file: string): Promise<CampaignRecord | undefined> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  const found = parseJson(text)
  if (!isObject(found) || !Array.isArray(found['passed'])) throw new Error(`${file} is no record of a campaign`)
  return found as CampaignRecord
}

/** The record of a campaign under way. */
type OpenRecord = {
  /** Whether the seed passed. */
  has(seed: number): boolean
  counts(): Counts
  /** A seed that failed is no part of the record: it runs again. */
  add(seed: number, result: RunResult): void
  /** Begins to write, unless that is under way. A cut in the middle leaves what was there. */
  write(): void
  /** Resolves when everything is written; throws if it could not be. */
  end(): Promise<void>
}

export async function openRecord(file: string): Promise<OpenRecord> {
  const before = await readRecord(file)
  const passed = new Set(seedsIn(before?.passed ?? []))
  const tally = createTally(before?.counts)
  let writing: Promise<void> | undefined

  const writeNow = async (): Promise<void> => {
    const record: CampaignRecord = { passed: rangesOf(passed), counts: tally.counts() }
    await writeFile(`${file}.new`, `${JSON.stringify(record, undefined, 1)}\n`)
    await rename(`${file}.new`, file)
  }
  const write = (): void => {
    writing ??= writeNow().finally(() => (writing = undefined))
    writing.catch(() => {}) // told at the end
  }

  return {
    has: (seed) => passed.has(seed),
    counts: () => tally.counts(),
    add(seed, result) {
      if (result.violation !== undefined) return
      passed.add(seed)
      tally.add(seed, result)
    },
    write,
    async end() {
      await writing?.catch(() => {}) // it is written again
      await writeNow()
    },
  }
}

/** Ascending ranges that do not touch, of seeds in any order. */
export function rangesOf(seeds: Iterable<number>): [number, number][] {
  const ranges: [number, number][] = []
  for (const seed of [...seeds].toSorted((a, b) => a - b)) {
    const last = ranges.at(-1)
    if (last !== undefined && seed <= last[1] + 1) last[1] = Math.max(last[1], seed)
    else ranges.push([seed, seed])
  }
  return ranges
}

function* seedsIn(ranges: readonly (readonly [number, number])[]): Generator<number> {
  for (const [first, last] of ranges) for (let seed = first; seed <= last; seed++) yield seed
}
