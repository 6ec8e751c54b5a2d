/**
 * The tests of the projects `model` and `search`, by the hash of all that each imports: the same sources give the same
 * result, so a file that has passed is left out until one of them changes. `ALL=1` runs all of them.
 */
import { createHash } from 'node:crypto'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { modelTests, searchTests } from './projects.ts'
import { hashesOf, hashOfFiles, recordFile } from '../campaign-record.ts'
import { passedIn } from '../campaigns.ts'

/** Searches of tests end when everything was searched (test/kit/effort.ts). */
export const thorough = { SEARCH: 'all' }

export type Searches = {
  /** Hash of all that all of them import. */
  readonly sources: string
  readonly run: readonly string[]
  /** Unchanged since they passed. */
  readonly known: readonly string[]
  /** With the sources that they had when this was made. */
  markPassed(files: Iterable<string>): void
}

export const searchFiles = (): string[] =>
  globSync([...modelTests, ...searchTests], { cwd: join(import.meta.dirname, '../..') }).toSorted()

/** Of thorough searches. */
export async function changedSearches(files = searchFiles(), env = process.env): Promise<Searches> {
  const passed = passedIn(await recordFile('search'))
  const hashes = await hashesOf(files)
  const others = [hashOfFiles(['crds']), env['SEARCH_RUNS'] ?? '', env['SEARCH_SEED'] ?? '']
  const nameOf = (file: string): string => {
    const hash = createHash('sha256').update([hashes.get(file), ...others].join('\n'))
    return `${file} ${hash.digest('hex').slice(0, 16)}`
  }
  const names = new Map(files.map((file) => [file, nameOf(file)]))
  const isKnown = (file: string): boolean => (env['ALL'] ?? '') === '' && passed.has(names.get(file) ?? '')
  const sources = createHash('sha256').update([...names.values()].join('\n'))
  return {
    sources: sources.digest('hex').slice(0, 16),
    run: files.filter((file) => !isKnown(file)),
    known: files.filter(isKnown),
    markPassed(these) {
      for (const file of these) {
        const name = names.get(file)
        if (name !== undefined) passed.add(name)
      }
    },
  }
}
