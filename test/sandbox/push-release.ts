/**
 * Pushes the agent's image of a release: `node test/sandbox/push-release.ts FOLDER NAME:TAG` takes it from the OCI
 * layout in FOLDER and pushes it to $REGISTRY/NAME:TAG. It keeps its digest.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { registryFromEnvironment } from '../../build/registry-login.ts'
import { systemClock, systemRandom } from '../../src/daemon/platform/system-clock.ts'
import type { Descriptor } from '../../src/packages/oci/manifest.ts'
import { createRegistryClient } from '../../src/packages/oci/read/registry.ts'
import { hexOf, parseReference } from '../../src/packages/oci/reference.ts'
import type { BuiltImage } from '../../src/packages/oci/write/layout.ts'
import { pushImages } from '../../src/packages/oci/write/push.ts'

type Named = Descriptor & { readonly annotations: Readonly<Record<string, string>> }
type Platform = Descriptor & { readonly platform: { readonly architecture: string } }

const timeoutMs = 120_000

function agentImages(release: string): BuiltImage[] {
  const layout = join(release, 'oci')
  const file = ({ digest }: Descriptor): string => join(layout, 'blobs/sha256', hexOf(digest))
  const read = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'))
  const { manifests } = read(join(layout, 'index.json')) as { manifests: readonly Named[] }
  const agent = manifests.find((one) => one.annotations['org.opencontainers.image.ref.name']?.startsWith('skyhookd:'))
  if (agent === undefined) throw new Error(`${layout}/index.json has no skyhookd:VERSION: is ${release} a release?`)
  const index = read(file(agent)) as { manifests: readonly Platform[] }
  return index.manifests.map(({ platform: { architecture }, ...descriptor }) => {
    const { config, layers } = read(file(descriptor)) as { config: Descriptor; layers: readonly Descriptor[] }
    const blobs = [config, ...layers].map((one) => ({ descriptor: one, content: { file: file(one) } }))
    return { architecture, manifest: { descriptor, content: readFileSync(file(descriptor)) }, blobs }
  })
}

const [release, name] = process.argv.slice(2)
const registry = process.env['REGISTRY']
if (release === undefined || name === undefined || registry === undefined)
  throw new Error('usage: REGISTRY=HOST[:PORT] node test/sandbox/push-release.ts FOLDER NAME:TAG')
const reference = parseReference(`${registry}/${name}`)
const client = createRegistryClient(registryFromEnvironment(reference.host), {
  clock: systemClock,
  random: systemRandom,
})
try {
  console.log(await pushImages(client, reference, agentImages(release), AbortSignal.timeout(timeoutMs)))
} finally {
  client.close()
}
