/** What a fake registry says and how its clients find it; no sockets. */
import type { EndpointSources, RegistryRule } from '../../../src/packages/oci/read/endpoints.ts'
import { ociIndexType, ociManifestType } from '../../../src/packages/oci/manifest.ts'
import type { Digest } from '../../../src/packages/oci/reference.ts'

/** Sources that ignore the machine of the test. */
export function fakeSources(
  rules: readonly RegistryRule[],
  files: Readonly<Record<string, string>> = {},
): EndpointSources {
  const list = async (path: string) => {
    const names = Object.keys(files)
      .filter((name) => name.startsWith(`${path}/`))
      .map((name) => name.slice(path.length + 1))
    return names.length > 0 ? names : undefined
  }
  return { rules, certsDirectory: '/etc/containerd/certs.d', files: { readText: async (path) => files[path], list } }
}

/** An index of manifests of the fake. */
export function fakeIndex(
  entries: readonly { digest: Digest; size: number; architecture: string; os?: string; variant?: string }[],
): object {
  const manifests = entries.map(({ digest, size, architecture, os = 'linux', variant }) => ({
    mediaType: ociManifestType,
    digest,
    size,
    platform: { os, architecture, ...(variant !== undefined && { variant }) },
  }))
  return { schemaVersion: 2, mediaType: ociIndexType, manifests }
}
