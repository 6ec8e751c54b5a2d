/**
 * Which images a pattern means. Three kinds of files name images by `host[:port][/path]` with `*` in the host, and each
 * has rules of its own.
 */

type Dialect = {
  /** The `*` that stand for other text. */
  readonly wildcard: RegExp
  /** What one stands for, as a regular expression. */
  readonly meaning: string
  /** Whether the path may end within a name: `r.example/team` means `r.example/team-b`, too. */
  readonly hasOpenPath: boolean
}

const inLabel = { wildcard: /(?<!:.*)\*/, meaning: '[^./:]*' } // one label of the host, no port

const dialects = {
  /** `matchImages` of a CredentialProviderConfig and the keys of a plugin's answer, as the kubelet reads them. */
  matchImages: { ...inLabel, hasOpenPath: true },
  /** Keys of a `.dockerconfigjson`. Stricter than the kubelet: no login goes to a neighbor of the same first letters. */
  dockerConfig: { ...inLabel, hasOpenPath: false },
  /** `prefix` of a registry in `registries.conf`: one `*` at its start, for any number of labels. */
  registriesConf: { wildcard: /^\*(?=\.)/, meaning: '[^/]+?', hasOpenPath: false },
} as const satisfies Record<string, Dialect>

/** How many characters of the image (`host[:port]/repository`) the pattern covers; 0 is no match. */
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
