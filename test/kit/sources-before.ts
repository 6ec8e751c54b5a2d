/** The sources without the change that is tested, in a folder of their own. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { git } from '../../build/test/git.ts'
import { openSeedsPath } from './open-seeds.ts'

export const repository = join(import.meta.dirname, '../..')

/** What simulated fleets and searches are made of. The list of open seeds is written by these themselves. */
const parts = ['src', 'crds', 'test', `:(exclude)${openSeedsPath}`]

export type SourcesBefore = {
  readonly commit: string
  readonly path: string
  remove(): void
}

/**
 * Of HEAD if the working tree differs from it, else of its parent. Undefined if the repository does not have that
 * commit, as a clone of one commit or an archive.
 */
export function copySourcesBefore(): SourcesBefore | undefined {
  const isDirty = git('status', '--porcelain', '--', ...parts) !== ''
  const commit = git('rev-parse', '--verify', '--quiet', isDirty ? 'HEAD' : 'HEAD~1')
  if (commit === undefined) return undefined
  const path = mkdtempSync(join(tmpdir(), 'sources-before-'))
  const remove = (): void => rmSync(path, { recursive: true, force: true })
  process.once('exit', remove) // however it ends
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))
  const { status } = spawnSync('sh', ['-c', 'git archive "$0" | tar -x -C "$1"', commit, path], { cwd: repository })
  symlinkSync(join(repository, 'node_modules'), join(path, 'node_modules'))
  return status === 0 ? { commit, path, remove } : undefined
}
