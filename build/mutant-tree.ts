/** Deliberate bugs: texts of the sources, replaced in a copy of the tree, one bug at a time. */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A text that the file contains exactly once, and what stands there instead. `file` is relative to the repository. */
export type Replacement = { readonly file: string; readonly search: string; readonly replace: string }

/** A bug that unit tests must catch. */
export type Mutant = {
  readonly name: string
  /** Below src, as `tests`. */
  readonly file: string
  readonly search: string
  readonly replace: string
  /** One of these files has the test that must catch it. */
  readonly tests: readonly string[]
}

export const repository = fileURLToPath(new URL('..', import.meta.url))

const sourceOf = (folder: string, file: string): string => readFileSync(join(folder, file), 'utf8')

/** The file with the bug; throws when its text is not there exactly once. */
export function replaceText(
  bug: string,
  { file, search, replace }: Replacement,
  source = sourceOf(repository, file),
): string {
  const count = source.split(search).length - 1
  if (count !== 1) throw new Error(`mutant "${bug}": ${file} contains its text ${count} times, not once`)
  return source.replace(search, () => replace)
}

/** What a mutant replaces. */
export const replacementOf = ({ file, search, replace }: Mutant): Replacement => ({
  file: `src/${file}`,
  search,
  replace,
})

/** The file with the bug; throws when the mutant's text is not there exactly once. */
export const mutate = (mutant: Mutant): string => replaceText(mutant.name, replacementOf(mutant))

/** The files with the bug, by path below `folder`; several replacements in one file follow each other. */
export function mutatedFiles(
  bug: string,
  replacements: readonly Replacement[],
  folder = repository,
): ReadonlyMap<string, string> {
  const files = new Map<string, string>()
  for (const one of replacements)
    files.set(one.file, replaceText(bug, one, files.get(one.file) ?? sourceOf(folder, one.file)))
  return files
}

export type MutantTree = {
  readonly path: string
  /** Puts the bug in; returns a function that takes it out again. */
  put(bug: string, replacements: readonly Replacement[]): () => void
  remove(): void
}

/** Copies these paths of the repository to a new folder; dependencies are linked. */
export function copyTree(paths: readonly string[]): MutantTree {
  const path = mkdtempSync(join(tmpdir(), 'mutants-'))
  for (const one of paths) cpSync(join(repository, one), join(path, one), { recursive: true })
  symlinkSync(join(repository, 'node_modules'), join(path, 'node_modules'))
  return {
    path,
    put(bug, replacements) {
      const originals = new Map(replacements.map(({ file }) => [file, sourceOf(path, file)]))
      for (const [file, text] of mutatedFiles(bug, replacements, path)) writeFileSync(join(path, file), text)
      return () => {
        for (const [file, text] of originals) writeFileSync(join(path, file), text)
      }
    },
    remove: () => rmSync(path, { recursive: true, force: true }),
  }
}
