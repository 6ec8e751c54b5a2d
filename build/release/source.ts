import { execFileSync } from 'node:child_process'

/** git in a repository of any owner. @throws Error if git fails */
export function git(repository: string, ...parameters: readonly string[]): string {
  try {
    return execFileSync('git', ['-c', 'safe.directory=*', ...parameters], {
      cwd: repository,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      maxBuffer: 2 ** 26,
    })
  } catch (error) {
    const why = (error as { stderr?: string }).stderr?.trim() ?? ''
    throw new Error(`git ${parameters[0]} failed in ${repository}: ${why}`, { cause: error })
  }
}

/**
 * The commit that the working tree is.
 * @throws Error where files differ from it: nobody could build the same release again
 */
export function cleanCommit(repository: string): string {
  const commit = git(repository, 'rev-parse', 'HEAD').trim()
  const changed = git(repository, 'status', '--porcelain').split('\n').filter(Boolean)
  if (changed.length === 0) return commit
  throw new Error(
    `the working tree must be a commit, got ${changed.length} changed or new files (${changed[0]?.slice(3)}, …): ` +
      'commit or remove them',
  )
}
