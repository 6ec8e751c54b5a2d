import { phrasesIn } from '../lint/phrases.ts'
import { proseOf } from './prose.ts'
import type { Repository } from './repository.ts'

/** Pages, and files with comments or messages. */
const examined = [
  /^(?:src|crds|chart|docs|build|bench|demo)\/.*\.(?:ts|md|yaml|tpl|txt|sh)$/,
  /^bin\/\w+$/,
  /^(?:(?:packages|test)\/.*|\w+)\.md$/,
]
/** Copies of what is examined, and of the operator's texts. */
const copied = /\/generated\/|^docs\/usage\/messages\.txt$|^chart\/crd-files\/|\/goldens\//

/** Files that keep phrases, and why. */
const exceptions: Readonly<Record<string, string>> = {
  'docs/style.md': 'shows what it forbids',
  'build/lint/phrases.ts': 'has the phrases',
  'build/lint/phrases.test.ts': 'has the phrases',
  'build/lint/dialect.ts': 'lists verbs of titles',
  'build/checks/prose.test.ts': 'has phrases in names',
  'build/checks/wording.test.ts': 'has phrases that are found',
}

/** Each phrase of build/lint/phrases.ts in what is examined, as `path:line: problem`. */
export function wordingProblems(repository: Repository): string[] {
  return repository.paths
    .filter((path) => examined.some((one) => one.test(path)))
    .filter((path) => !copied.test(path) && !Object.hasOwn(exceptions, path))
    .flatMap((path) => {
      const text = repository.read(path)
      return phrasesIn(proseOf(path, text)).map(({ words, instead, at }) => {
        const line = text.slice(0, at).split('\n').length
        return `${path}:${line}: "${words}": write ${instead} (build/lint/phrases.ts)`
      })
    })
}
