/** The manifest by which krew, the package manager of kubectl plugins, installs the archives. */
import { stringify } from 'yaml'

export type KrewArchive = {
  /** As Go and krew name it. */
  readonly architecture: 'amd64' | 'arm64'
  readonly fileName: string
  /** In hex. */
  readonly sha256: string
  /** The folder in the archive. */
  readonly folder: string
}

/** @param url folder from which the archives are downloaded, without a slash at its end */
export function krewManifest(version: string, url: string, archives: readonly KrewArchive[]): string {
  return stringify(
    {
      apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
      kind: 'Plugin',
      metadata: { name: 'skyhook' },
      spec: {
        version: `v${version}`,
        homepage: url,
        shortDescription: 'See, plan and change what skyhookd does on nodes',
        description:
          'Shows the rollouts of Skyhooks, explains why a node waits, plans what an edit would do, pauses and ' +
          'resets, and builds, validates and runs packages. It brings its own Node and libraries.\n',
        caveats:
          'For completion, put kubectl_complete-skyhook on PATH as well:\n' +
          '  ln -s ~/.krew/store/skyhook/*/kubectl_complete-skyhook ~/.krew/bin/\n',
        platforms: archives.map(({ architecture, fileName, sha256, folder }) => ({
          selector: { matchLabels: { os: 'linux', arch: architecture } },
          uri: `${url}/${fileName}`,
          sha256,
          files: [{ from: `${folder}/*`, to: '.' }],
          bin: 'kubectl-skyhook',
        })),
      },
    },
    { lineWidth: 0 },
  )
}
