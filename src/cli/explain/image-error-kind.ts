/**
 * What is wrong with an image, by what the registry or the network said: a hint for people, and nothing is decided by
 * it. The words are those of the distribution specification, of HTTP, and of the agent's own refusals.
 */
import { ImageError } from '../../packages/oci/errors.ts'
import { parseReference } from '../../packages/oci/reference.ts'

type ImageErrorKind = 'name' | 'authentication' | 'digest' | 'network' | 'other'

const patterns: readonly (readonly [ImageErrorKind, RegExp])[] = [
  ['digest', /digest|\bnot sha256:/i],
  ['authentication', /\b40[13]\b|unauthorized|denied|authentication|credentials/i],
  ['name', /\b404\b|_unknown\b|not[- ]found|neither tag nor|bad-reference/i],
  ['network', /unreachable|refused|timed? ?out|no complete answer|silent for|getaddrinfo|\bE[A-Z]{4,}\b/i],
  ['network', /certificate|tls|unavailable|\b5\d\d\b/i],
]

const imageErrorKindOf = (message: string): ImageErrorKind =>
  patterns.find(([, pattern]) => pattern.test(message))?.[0] ?? 'other'

export type AskedImage = {
  readonly skyhook: string
  /** Of the agents and their pull Secrets. */
  readonly namespace: string
  /** Without the version. */
  readonly image: string
}

/** What opens the gate, and a command that shows or corrects it. */
export function imageRemedyOf(
  message: string,
  asked: AskedImage,
): { readonly unblock: string; readonly command: string } {
  const kind = imageErrorKindOf(message)
  return { unblock: remedies[kind], command: commandOf(kind, asked) }
}

const remedies: Readonly<Record<ImageErrorKind, string>> = {
  name: 'correct image and version of the package: the registry has no such image',
  authentication: 'add credentials for the registry to imagePullSecrets of the chart, or correct them',
  digest: 'correct containerSHA of the package: the registry has another content for it',
  network:
    'the node has to reach the registry: check its name, proxy, certificate and mirrors (registries of the chart)',
  other: 'do what the message says; the registry refuses the image, or cannot serve it',
}

/** The spec is edited only where it may be what is wrong. */
function commandOf(kind: ImageErrorKind, { skyhook, namespace, image }: AskedImage): string {
  const edit = `kubectl edit skyhook ${skyhook}`
  if (kind === 'authentication')
    return `kubectl -n ${namespace} get secrets --field-selector type=kubernetes.io/dockerconfigjson`
  const host = kind === 'network' ? serverOf(image) : undefined
  return host === undefined ? edit : `curl -sS https://${host}/v2/ # on the host`
}

/** Undefined for what is no image. */
function serverOf(image: string): string | undefined {
  try {
    const { host } = parseReference(image)
    return host === 'docker.io' ? 'registry-1.docker.io' : host
  } catch (error) {
    if (error instanceof ImageError) return undefined
    throw error
  }
}
