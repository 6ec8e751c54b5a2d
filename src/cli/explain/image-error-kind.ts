/**
 * What is wrong with an image, by what the registry or the network said: a hint for people, and nothing is decided by
 * it. The words are those of the distribution specification, of HTTP, and of the agent's own refusals.
 */
export type ImageErrorKind = 'name' | 'authentication' | 'digest' | 'network' | 'other'

const patterns: readonly (readonly [ImageErrorKind, RegExp])[] = [
  ['digest', /digest|\bnot sha256:/i],
  ['authentication', /\b40[13]\b|unauthorized|denied|authentication|credentials/i],
  ['name', /\b404\b|_unknown\b|not[- ]found|neither tag nor|bad-reference/i],
  ['network', /unreachable|refused|timed? ?out|no complete answer|silent for|getaddrinfo|\bE[A-Z]{4,}\b/i],
  ['network', /certificate|tls|unavailable|\b5\d\d\b/i],
]

export const imageErrorKindOf = (message: string): ImageErrorKind =>
  patterns.find(([, pattern]) => pattern.test(message))?.[0] ?? 'other'

/** What opens the gate. */
export const imageRemedies: Readonly<Record<ImageErrorKind, string>> = {
  name: 'correct image and version of the package: the registry has no such image',
  authentication: 'add credentials for the registry to imagePullSecrets of the chart, or correct them',
  digest: 'correct containerSHA of the package: the registry has another content for it',
  network:
    'the node has to reach the registry: check its name, proxy, certificate and mirrors (registries of the chart)',
  other: 'do what the message says; the registry refuses the image, or cannot serve it',
}
