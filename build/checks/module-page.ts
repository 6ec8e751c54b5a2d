import { dirname } from 'node:path'
import type { Repository } from './repository.ts'

export const modulePage = 'docs/design/architecture.md'

/**
 * Compares the folders with the rows of the module page: a table row that starts with a path in backticks, such as
 * "| `src/kube` | …". Folders of `src` count to the depth of two below it, those of other roots to one.
 */
export function modulePageProblems(repository: Repository): string[] {
  const row = /^\| `((?:src|test|build|bench|demo)(?:\/[\w./-]+)?)` \| /gm
  const described = new Set([...repository.read(modulePage).matchAll(row)].map(([, folder = '']) => folder))
  const folders = new Set<string>()
  const parents = new Set<string>()
  for (const path of repository.paths) {
    const parts = dirname(path).split('/')
    for (let end = 1; end <= parts.length; end++) parents.add(parts.slice(0, end).join('/'))
    if (/^(src|test|build|bench|demo)\/.*\.(ts|sh)$/.test(path))
      folders.add(parts.slice(0, parts[0] === 'src' ? 3 : 2).join('/'))
  }
  return [
    ...[...folders].filter((folder) => !described.has(folder)).map((folder) => `${modulePage} lacks ${folder}`),
    ...[...described]
      .filter((folder) => !parents.has(folder))
      .map((folder) => `${modulePage}: ${folder} does not exist`),
  ]
}
