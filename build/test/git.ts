/** The commit of the working tree, and what differs from it. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const repository = join(import.meta.dirname, '../..')

/** The hash of HEAD; undefined in a tree without git, such as an archive. */
export const headCommit = (): string | undefined => git('rev-parse', '--verify', 'HEAD')

/** Whether files differ from HEAD, beside those that git ignores, and beside `except`, a path from the root. */
export const isTreeChanged = (except?: string): boolean =>
  (git('status', '--porcelain', ...(except === undefined ? [] : ['--', '.', `:!${except}`])) ?? '') !== ''

/** What it prints; undefined if it fails. */
export function git(...parameters: readonly string[]): string | undefined {
  const { status, stdout } = spawnSync('git', parameters, { cwd: repository, encoding: 'utf8' })
  return status === 0 ? stdout.trim() : undefined
}
