/**
 * Which images a pattern matches. Three kinds of files name images by `host[:port][/path]` with `*` in the host, and
 * each kind has its own rules.
 */

type Dialect = {
  /** Matches each `*` that is a wildcard. */
  readonly wildcard: RegExp
  /** What a wildcard matches, as a regular expression. */
  readonly meaning: string
  /** Whether the path may end within a name: `r.example/team` matches `r.example/team-b`, too. */
  readonly hasOpenPath: boolean
}

const inLabel = { wildcard: /(?<!:.*)\*/, meaning: '[^./:]*' } // one label of the host, no port

const dialects = {
  /** `matchImages` of a CredentialProviderConfig and the keys of a plugin's answer, as the kubelet reads them. */
  matchImages: { ...inLabel, hasOpenPath: true },
  /**
   * Keys of a `.dockerconfigjson`. Stricter than the kubelet: a login is never sent for a repository that only starts
   * with the same letters.
   */
  dockerConfig: { ...inLabel, hasOpenPath: false },
  /** `prefix` of a registry in `registries.conf`: one `*` at its start, for any number of labels. */
  registriesConf: { wildcard: /^\*(?=\.)/, meaning: '[^/]+?', hasOpenPath: false },
} as const satisfies Record<string, Dialect>

/** How many characters of the image (`host[:port]/repository`) the pattern covers; 0 if it does not match. */
export function matchLength(pattern: string, dialect: keyof typeof dialects, image: string): number {
  const { wildcard, meaning, hasOpenPath } = dialects[dialect]
  const name = pattern.replace(/^https?:\/\//, '')
  const host = registryOf(name)
  const path = name.slice(host.length)
  const hostExpression = host
    .split(wildcard)
    .map((literal) => RegExp.escape(literal))
    .join(meaning)
  const end = hasOpenPath && path !== '' ? '' : '(?=/|$)'
  return new RegExp(`^${hostExpression}${RegExp.escape(path)}${end}`).exec(image)?.[0].length ?? 0
}

/** `host[:port]` of an image. */
export function registryOf(image: string): string {
  return image.split('/', 1)[0] ?? ''
}
