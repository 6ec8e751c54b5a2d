/** A copy of the tree to put deliberate bugs into, one at a time. */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Edit, Mutant } from './mutant.ts'

export const repository = join(import.meta.dirname, '../..')

/** What tests and simulated fleets need; dependencies are linked. */
const copied = ['src', 'test', 'crds', 'build', 'package.json', 'tsconfig.json', 'vitest.config.ts']

export type Tree = {
  readonly path: string
  /** Puts the bug in; returns a function that takes it out again. */
  put(mutant: Mutant): () => void
  remove(): void
}

export function copyTree(): Tree {
  const path = mkdtempSync(join(tmpdir(), 'mutants-'))
  for (const one of copied) cpSync(join(repository, one), join(path, one), { recursive: true })
  symlinkSync(join(repository, 'node_modules'), join(path, 'node_modules'))
  const write = (texts: ReadonlyMap<string, string>): void => {
    for (const [file, text] of texts) writeFileSync(join(path, file), text)
  }
  return {
    path,
    put(mutant) {
      const originals = new Map(mutant.edits.map(({ file }) => [file, readFileSync(join(path, file), 'utf8')]))
      write(mutatedFiles(mutant, path))
      return () => write(originals)
    },
    remove: () => rmSync(path, { recursive: true, force: true }),
  }
}

/** The files with the bug, by path below `folder`; throws when a text of it is not there exactly once. */
export function mutatedFiles({ name, edits }: Mutant, folder = repository): ReadonlyMap<string, string> {
  const files = new Map<string, string>()
  for (const edit of edits)
    files.set(edit.file, edited(name, edit, files.get(edit.file) ?? readFileSync(join(folder, edit.file), 'utf8')))
  return files
}

function edited(name: string, { file, search, replace }: Edit, source: string): string {
  const count = source.split(search).length - 1
  if (count !== 1) throw new Error(`mutant "${name}": ${file} contains its text ${count} times, not once`)
  return source.replace(search, () => replace)
}
