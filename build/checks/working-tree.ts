import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Repository } from './repository.ts'

const repository = join(import.meta.dirname, '..', '..')

/** The working tree without what git ignores, of this repository or another one. */
export function workingTree(root = repository): Repository {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  })
  return {
    paths: [...new Set(listed.split('\n'))].filter((path) => path !== '' && existsSync(join(root, path))),
    read: (path) => readFileSync(join(root, path), 'utf8'),
  }
}
