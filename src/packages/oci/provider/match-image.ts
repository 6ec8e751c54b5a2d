/** A pattern of a CredentialProviderConfig's `matchImages`, or a key of a plugin's answer. */
export type ImagePattern = { readonly labels: readonly RegExp[]; readonly port: string; readonly path: string }

/**
 * Reads `host[:port][/path]` with `*` in labels of the host. Undefined where the kubelet could not read it as an
 * address either.
 */
export function parseImagePattern(text: string): ImagePattern | undefined {
  const { host, port, path } = splitImage(text.replace(/^https?:\/\//, ''))
  if (host === '' || /[\s?#@%\\]/.test(text)) return undefined
  return { labels: host.split('.').map(labelPattern), port, path }
}

/**
 * Whether the kubelet takes the pattern for the image (`host[:port]/repository`): each `*` stands within one label of
 * the host, the port is the same, and the path is the start of the image's path, even in the middle of a name.
 */
export function matchesImage(pattern: ImagePattern, image: string): boolean {
  const { host, port, path } = splitImage(image)
  const labels = host.split('.')
  return (
    pattern.port === port &&
    pattern.labels.length === labels.length &&
    path.startsWith(pattern.path) &&
    pattern.labels.every((label, index) => label.test(labels[index] ?? ''))
  )
}

/** `host[:port]` of an image. */
export function registryOf(image: string): string {
  return image.split('/', 1)[0] ?? ''
}

function splitImage(text: string): { host: string; port: string; path: string } {
  const address = registryOf(text)
  const port = /:(\d+)$/.exec(address)?.[1] ?? ''
  const host = port === '' ? address : address.slice(0, -port.length - 1)
  return { host, port, path: text.slice(address.length) }
}

function labelPattern(label: string): RegExp {
  const literals = label.split('*').map((literal) => RegExp.escape(literal))
  return new RegExp(`^${literals.join('.*')}$`)
}
