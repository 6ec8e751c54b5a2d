/**
 * `make release` of the working tree as it is, committed or not: it is copied into a folder of its own and is a commit
 * there. `node test/kit/pages/working-tree.ts FOLDER` writes FOLDER/release.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { readVersion } from '../../../build/bundle.ts'
import { workingTree } from '../../../build/checks/working-tree.ts'

const repository = join(import.meta.dirname, '..', '..', '..')

/** Where the archives of the tool would be downloaded from. */
const url = 'https://downloads.example.com/skyhook'

type Surroundings = {
  readonly umask?: number
  readonly env?: NodeJS.ProcessEnv
  /** Registry and path to which everything is pushed. */
  readonly push?: string
  /** Root of the sources. */
  readonly from?: string
}

/** Where those of a release are that was written with `releaseWorkingTree`. */
export const sourcesOf = (release: string): string => join(dirname(release), 'sources')

/** Writes and returns `folder`/release. @throws Error if the release fails; its output is on standard error */
export function releaseWorkingTree(
  folder: string,
  { umask = 0o022, env = process.env, push, from = repository }: Surroundings,
): string {
  const out = join(folder, 'release')
  const sources = sourcesOf(out)
  const before = process.umask(umask)
  try {
    for (const path of workingTree(from).paths) {
      if (path === 'node_modules') continue // a link, in some worktrees
      mkdirSync(dirname(join(sources, path)), { recursive: true })
      cpSync(join(from, path), join(sources, path))
    }
    symlinkSync(join(repository, 'node_modules'), join(sources, 'node_modules'))
    commitAll(sources)
    const parameters = ['--version', readVersion(), '--out', out, '--url', url, '--newest']
    execFileSync(
      process.execPath,
      ['build/release.ts', ...parameters, ...(push === undefined ? [] : ['--push', push])],
      {
        cwd: sources,
        env,
        stdio: ['ignore', 'ignore', 'inherit'],
      },
    )
    return out
  } finally {
    process.umask(before)
  }
}

/** The same commit wherever and whenever. */
function commitAll(folder: string): void {
  const who = { NAME: 'Release', EMAIL: 'release@example.com', DATE: '2026-01-01T00:00:00Z' }
  const identity = Object.entries(who).flatMap(([key, value]) => [
    [`GIT_AUTHOR_${key}`, value],
    [`GIT_COMMITTER_${key}`, value],
  ])
  const env = { ...process.env, ...(Object.fromEntries(identity) as Record<string, string>) }
  const git = (...parameters: readonly string[]) =>
    execFileSync('git', ['-c', 'commit.gpgsign=false', ...parameters], {
      cwd: folder,
      env,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  git('init', '-q')
  git('add', '-A')
  git('commit', '-q', '-m', 'Everything')
}

if (import.meta.main) {
  const [folder] = process.argv.slice(2)
  if (folder === undefined) throw new Error('usage: node test/kit/pages/working-tree.ts FOLDER')
  console.log(releaseWorkingTree(resolve(folder), {}))
}
