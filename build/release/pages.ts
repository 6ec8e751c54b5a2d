/** The pages of a release: those for people who install and use it, with links that lead somewhere in its folder. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { filesBelow } from './checksums.ts'

/** For people who change the project; they have its sources. */
const isForAuthors = (path: string): boolean => path.startsWith('design/') || path === 'style.md'

/** Copies the pages to where a checkout has them. Links to what the folder lacks become plain text. */
export function writePages(repository: string, folder: string): void {
  const pages = filesBelow(join(repository, 'docs'))
    .filter((path) => !isForAuthors(path))
    .map((path) => `docs/${path}`)
  const paths = [...pages, 'chart/README.md', 'packages/README.md']
  for (const path of paths) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), readFileSync(join(repository, path)))
  }
  for (const path of paths.filter((name) => name.endsWith('.md'))) {
    const text = readFileSync(join(folder, path), 'utf8')
    writeFileSync(
      join(folder, path),
      withoutDeadLinks(text, path, (target) => existsSync(join(folder, target))),
    )
  }
}

/**
 * The page with its relative links to what does not exist as plain text.
 * @param page its path in the folder
 * @param exists whether the folder has a path
 */
export function withoutDeadLinks(text: string, page: string, exists: (path: string) => boolean): string {
  return text.replaceAll(/!?\[((?:[^\][]|\[[^\]]*\])*)\]\(([^)\s]+)\)/g, (link, words: string, target: string) => {
    const [path = ''] = target.split('#')
    if (path === '' || /^[a-z]+:/.test(path) || exists(normalize(join(dirname(page), path)))) return link
    return words
  })
}
