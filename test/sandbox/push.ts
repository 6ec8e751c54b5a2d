/**
 * Pushes a package folder as an image: `node test/sandbox/push.ts FOLDER NAME:TAG` pushes an image with the folder as
 * /skyhook-package in one layer to $REGISTRY/NAME:TAG and prints `$REGISTRY/NAME@sha256:…`. The same folder gives the
 * same digest.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock, systemRandom } from '../../src/daemon/platform/system-clock.ts'
import { registryFromEnvironment } from '../../build/registry-login.ts'
import { type LayerEntry, readFolder, writeLayer } from '../../src/packages/oci/write/layer.ts'
import { buildImage } from '../../src/packages/oci/write/layout.ts'
import { ociArchitecture } from '../../src/packages/oci/manifest.ts'
import { pushImages } from '../../src/packages/oci/write/push.ts'
import { formatReference, parseReference } from '../../src/packages/oci/reference.ts'
import { createRegistryClient } from '../../src/packages/oci/read/registry.ts'
import { packageFolder } from '../../src/packages/store/layer-paths.ts'

const timeoutMs = 60_000

/** @returns the reference by digest */
async function pushPackage(folder: string, name: string): Promise<string> {
  const { tag, ...place } = parseReference(name)
  const work = mkdtempSync(join(tmpdir(), 'push-'))
  const client = createRegistryClient(registryFromEnvironment(place.host), {
    clock: systemClock,
    random: systemRandom,
  })
  try {
    const entries: LayerEntry[] = [
      { kind: 'folder', path: packageFolder, mode: 0o755 },
      ...(await readFolder(folder, packageFolder)),
    ]
    const layer = await writeLayer(entries, join(work, 'layer.tar.gz'))
    const image = buildImage([layer], { architecture: ociArchitecture() })
    const digest = await pushImages(client, { ...place, tag: tag ?? 'latest' }, [image], AbortSignal.timeout(timeoutMs))
    return formatReference({ ...place, digest })
  } finally {
    client.close()
    rmSync(work, { recursive: true })
  }
}

const [folder, name] = process.argv.slice(2)
const registry = process.env['REGISTRY']
if (folder === undefined || name === undefined || registry === undefined) {
  console.error(
    'usage: REGISTRY=HOST[:PORT] node test/sandbox/push.ts FOLDER NAME:TAG ' +
      '(login: REGISTRY_USER, REGISTRY_PASSWORD, REGISTRY_CA)',
  )
  process.exitCode = 2
} else {
  try {
    console.log(await pushPackage(folder, `${registry}/${name}`))
  } catch (error) {
    console.error(`push failed: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 1
  }
}
