/**
 * The journal package in every version that a row names. Its config.json has the version of its tag, so that upgrades
 * can tell them apart; a tag may omit the last number, config.json may not.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock, systemRandom } from '../../../src/daemon/platform/system-clock.ts'
import { createHostRoot } from '../../../src/host/fs/host-root.ts'
import { parseDockerConfig } from '../../../src/packages/oci/read/credentials.ts'
import { readFolder, writeLayer, type LayerEntry } from '../../../src/packages/oci/write/layer.ts'
import { buildImage } from '../../../src/packages/oci/write/layout.ts'
import { ociArchitecture } from '../../../src/packages/oci/manifest.ts'
import { pushImages } from '../../../src/packages/oci/write/push.ts'
import {
  createRegistryClient,
  type RegistryClient,
  type RegistrySettings,
} from '../../../src/packages/oci/read/registry.ts'
import { packageFolder } from '../../../src/packages/store/layer-paths.ts'
import type { Sandbox } from '../../sandbox/sandbox.ts'

export const repository = 'test/journal'

const versions =
  '1.2 1.2.3 1.2.5 1.2.6 1.3.2 2.0.0 2.0.1 2.1.4 2.3.1-test 2024.7.7-test 3.2.1 3.2.3 3.3 5.4.3 6.2.0'.split(' ')

const folder = join(import.meta.dirname, '..', '..', 'fixtures', 'packages', 'journal')
const pushMs = 60_000

/** Pushes the images once per sandbox and returns their digests by version. */
export async function pushJournalPackages(box: Sandbox): Promise<Readonly<Record<string, string>>> {
  const done = join(box.folder, 'journal-packages.json')
  if (existsSync(done)) return JSON.parse(readFileSync(done, 'utf8')) as Record<string, string>
  const { REGISTRY: host = '' } = box.env()
  const work = mkdtempSync(join(tmpdir(), 'journal-packages-'))
  const client = registryClient(box.env())
  try {
    const digests: Record<string, string> = {}
    for (const version of versions) {
      const layer = await writeLayer(await entriesOf(version), join(work, `${version}.tar.gz`))
      const image = buildImage([layer], { architecture: ociArchitecture() })
      digests[version] = await pushImages(
        client,
        { host, repository, tag: version },
        [image],
        AbortSignal.timeout(pushMs),
      )
    }
    writeFileSync(done, JSON.stringify(digests))
    return digests
  } finally {
    client.close()
    rmSync(work, { recursive: true })
  }
}

function registryClient({
  REGISTRY: host = '',
  REGISTRY_USER,
  REGISTRY_PASSWORD,
  REGISTRY_CA = '',
}: Record<string, string>): RegistryClient {
  const login = { auths: { [host]: { username: REGISTRY_USER, password: REGISTRY_PASSWORD } } }
  const settings: RegistrySettings = {
    credentials: parseDockerConfig(JSON.stringify(login), 'the sandbox'),
    sources: {
      files: createHostRoot('/', systemRandom),
      certsDirectory: undefined,
      rules: [{ host, ca: readFileSync(REGISTRY_CA, 'utf8') }],
    },
    proxy: {},
  }
  return createRegistryClient(settings, { clock: systemClock, random: systemRandom })
}

async function entriesOf(version: string): Promise<LayerEntry[]> {
  const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as object
  const versioned = Buffer.from(
    JSON.stringify({ ...config, package_version: /^\d+\.\d+$/.test(version) ? `${version}.0` : version }),
  )
  const others = (await readFolder(folder, packageFolder)).filter(({ path }) => !path.endsWith('config.json'))
  return [
    { kind: 'folder', path: packageFolder, mode: 0o755 },
    { kind: 'file', path: `${packageFolder}/config.json`, mode: 0o644, content: versioned },
    ...others,
  ]
}
