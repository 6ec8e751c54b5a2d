import { phrasesIn } from '../lint/phrases.ts'
import { proseOf } from './prose.ts'
import type { Repository } from './repository.ts'

/** Folders and files without any of the phrases, where each one is refused. Others follow once they are clean. */
const clean = [
  'docs/',
  'build/',
  'bench/',
  'bin/',
  'demo/',
  'packages/',
  'crds/',
  'test/',
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
]

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
  'build/lint/glossary.ts': 'has words of the same kind',
  'build/lint/dialect.ts': 'lists verbs of titles',
  'build/checks/prose.test.ts': 'has phrases in names',
  'build/checks/wording.test.ts': 'has phrases that are found',
}

type Place = { readonly path: string; readonly line: number; readonly phrase: string; readonly text: string }

function placesOf(repository: Repository, isChecked: (path: string) => boolean): Place[] {
  return repository.paths
    .filter((path) => isChecked(path) && examined.some((one) => one.test(path)))
    .filter((path) => !copied.test(path) && !Object.hasOwn(exceptions, path))
    .flatMap((path) => {
      const text = repository.read(path)
      return phrasesIn(proseOf(path, text)).map(({ phrase, words, instead, at }) => ({
        path,
        line: text.slice(0, at).split('\n').length,
        phrase,
        text: `"${words}": write ${instead} (build/lint/phrases.ts)`,
      }))
    })
}

/** Each phrase of build/lint/phrases.ts in a folder that is clean, as `path:line: problem`. */
export function wordingProblems(repository: Repository, folders: readonly string[] = clean): string[] {
  return placesOf(repository, (path) => folders.some((folder) => path.startsWith(folder))).map(
    ({ path, line, text }) => `${path}:${line}: ${text}`,
  )
}

/** How often each phrase is in each folder, as lines of a table: what is left before a folder is clean. */
export function phraseCounts(repository: Repository): string[] {
  const folderOf = ({ path }: Place): string =>
    path
      .split('/')
      .slice(0, path.startsWith('src/') ? 2 : 1)
      .join('/')
  const folders = Map.groupBy(
    placesOf(repository, () => true),
    folderOf,
  )
  return [...folders].map(([folder, places]) => {
    const counts = [...Map.groupBy(places, ({ phrase }) => phrase)].map(([phrase, all]) => `${phrase} ${all.length}`)
    return `${folder}: ${places.length} (${counts.toSorted().join(', ')})`
  })
}
