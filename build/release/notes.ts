/** The notes of a release, from the subjects of its commits, by what they changed. */
import { compare, lt, valid } from 'semver'
import { git } from './source.ts'

export type Commit = {
  /** Twelve digits: git's own abbreviation grows with a clone. */
  readonly hash: string
  readonly subject: string
  /** What it changed. */
  readonly paths: readonly string[]
}

/** In the order of the notes. A commit belongs to the first area that it touches. */
const areas: readonly (readonly [title: string, path: RegExp])[] = [
  ['Agent', /^src\/(?!cli\/)(?!.*\.test\.ts$)/],
  ['Command-line tool', /^src\/cli\/(?!.*\.test\.ts$)/],
  ['Chart, resource definitions and manifests', /^(?:chart|crds|daemonset|gitops|samples)\//],
  ['Packages', /^packages\//],
  ['Build, tests and documentation', /^/],
]

/** @param previous tag of the release before, if there was one */
export function releaseNotes(version: string, previous: string | undefined, commits: readonly Commit[]): string {
  const since = previous === undefined ? 'The first release.' : `Changes since ${previous}.`
  const groups = Map.groupBy(commits, areaOf)
  const sections = areas.flatMap(([title]) => {
    const lines = (groups.get(title) ?? []).map(({ subject, hash }) => `* ${subject} (${hash})\n`)
    return lines.length === 0 ? [] : [`\n## ${title}\n\n${lines.join('')}`]
  })
  return `# skyhookd ${version}\n\n${since}\n${sections.join('')}`
}

function areaOf({ paths }: Commit): string | undefined {
  const found = areas.find(([, path]) => paths.some((one) => path.test(one)))
  return (found ?? areas.at(-1))?.[0]
}

/**
 * The tag of the release before this one, and the commits since then, newest first, without merges.
 * @throws Error in a clone without the whole history
 */
export function commitsOf(
  repository: string,
  version: string,
): { readonly previous: string | undefined; readonly commits: readonly Commit[] } {
  if (git(repository, 'rev-parse', '--is-shallow-repository').trim() === 'true')
    throw new Error('the notes need the whole history: run "git fetch --unshallow --tags"')
  const previous = git(repository, 'tag', '--merged', 'HEAD')
    .split('\n')
    .filter((tag) => tag.startsWith('v') && valid(tag) !== null && lt(tag, version))
    .sort(compare)
    .at(-1)
  const range = previous === undefined ? 'HEAD' : `${previous}..HEAD`
  // settings of the user must not show: signatures, renames, quoted names
  const settings = ['-c', 'log.showSignature=false', '-c', 'core.quotePath=false']
  const format = ['--topo-order', '--no-merges', '--no-renames', '--name-only', '--format=%x00%H%x09%s']
  const commits = git(repository, ...settings, 'log', ...format, range)
    .split('\0')
    .slice(1)
    .map((entry): Commit => {
      const [first = '', ...paths] = entry.split('\n')
      const [hash = '', ...subject] = first.split('\t')
      return { hash: hash.slice(0, 12), subject: subject.join(' '), paths: paths.filter((path) => path !== '') }
    })
  return { previous, commits }
}
