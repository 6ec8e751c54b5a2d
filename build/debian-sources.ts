/** The package sources of the image: its own Debian, on the mirrors of whatever Debian this machine has. */

/** The format of `apt-get indextargets` that `debianSources` reads. */
export const targetFormat = '$(ORIGIN) $(COMPONENT) $(RELEASE) $(REPO_URI)'

const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg'

/**
 * A sources.list for that Debian. `targets`: a line for each source of this machine's apt; `mirror`: instead of these.
 * Undefined where none of them is Debian's.
 */
export function debianSources(codename: string, targets: string, mirror: string | undefined): string | undefined {
  const sources = targets.split('\n').flatMap((line) => {
    const [origin, component, release = '', uri = ''] = line.split(' ')
    return origin === 'Debian' && component === 'main' ? [{ release, uri }] : []
  })
  const archive = mirror ?? sources.find(({ release }) => !release.includes('-'))?.uri
  if (archive === undefined) return undefined
  const security = mirror === undefined ? sources.find(({ release }) => release.endsWith('-security'))?.uri : undefined
  const lines = [
    [archive, codename],
    [archive, `${codename}-updates`],
    ...(security === undefined ? [] : [[security, `${codename}-security`]]),
  ]
  return lines.map(([uri, suite]) => `deb [signed-by=${keyring}] ${uri} ${suite} main\n`).join('')
}
