/**
 * The agent's image, without a container engine. See `--help`.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { systemClock, systemRandom } from '../src/daemon/platform/system-clock.ts'
import { writeLayer } from '../src/packages/oci/write/layer.ts'
import { buildImage, type BuiltImage, rootBlob, writeLayoutArchive } from '../src/packages/oci/write/layout.ts'
import { ociArchitecture } from '../src/packages/oci/manifest.ts'
import { pushImages } from '../src/packages/oci/write/push.ts'
import { formatReference, parseReference } from '../src/packages/oci/reference.ts'
import { createRegistryClient } from '../src/packages/oci/read/registry.ts'
import { bundle, readVersion } from './bundle.ts'
import { type Architecture, fetchNewest } from './debian-packages.ts'
import { nodeVersion, npmIntegrity } from './node-binary.ts'
import { registryFromEnvironment } from './registry-login.ts'
import { fileOf, type ImagePins, runtimeLayer } from './runtime-layer.ts'

const usage = `usage: node build/image.ts [--arch ARCH]... [--locked] [--entry FILE] [--out FILE.tar]
                            [--push REGISTRY/NAME:TAG]
       node build/image.ts --update-pins

  --arch ARCH         amd64 or arm64; several make an index (default: this machine's)
  --out FILE.tar      writes an OCI archive: ctr -n k8s.io images import FILE.tar
  --push REFERENCE    pushes; login from REGISTRY_USER, REGISTRY_PASSWORD and REGISTRY_CA, or from docker's config.json
  --entry FILE        another main module than src/daemon/main.ts, for tests of what a fault in the agent would do
  --locked            fails where a pinned Debian package is gone from the mirrors, instead of taking its successor
  --update-pins       records the newest Debian packages and the Node version of package.json in build/image-pins.json
`

const repository = join(import.meta.dirname, '..')
const pinsFile = join(import.meta.dirname, 'image-pins.json')

/**
 * What keeps the agent small without making V8 refuse the compiled code that Node ships, as most other flags do;
 * measured in docs/design/decisions/small-process.md. Not all of them are allowed in NODE_OPTIONS.
 */
export const entrypoint = ['/usr/bin/node', '--max-semi-space-size=1', '--max-old-space-size=96', '/skyhookd.cjs']

/**
 * malloc: one arena for all threads, since each further one keeps an unused megabyte; and a fixed limit to the free
 * memory that it keeps.
 */
const env = ['PATH=/usr/bin', 'MALLOC_ARENA_MAX=1', 'MALLOC_TRIM_THRESHOLD_=131072']

export type ImageOptions = {
  readonly architectures: readonly Architecture[]
  readonly isLocked: boolean
  /** Contains the small layer while the images are in use. */
  readonly workFolder: string
  readonly entry?: string
}

/** The images of the working tree: the same sources and pins give the same digests. */
export async function buildAgentImages({
  architectures,
  isLocked,
  workFolder,
  entry,
}: ImageOptions): Promise<BuiltImage[]> {
  const { file, notices, version } = await bundle({
    folder: join(workFolder, 'dist'),
    ...(entry !== undefined && { entry }),
  })
  const program = [
    fileOf('skyhookd.cjs', file, 0o644),
    fileOf('usr/share/doc/skyhookd/LICENSE', join(repository, 'LICENSE'), 0o644),
    fileOf('usr/share/doc/skyhookd/THIRD-PARTY-LICENSES', notices, 0o644),
  ]
  const layer = await writeLayer(program, join(workFolder, 'skyhookd.tar.gz'))
  const images: BuiltImage[] = []
  for (const architecture of architectures) {
    const runtime = await runtimeLayer(architecture, readPins(), isLocked)
    images.push(
      buildImage([runtime, layer], {
        architecture,
        entrypoint,
        user: '0:0',
        env,
        labels: labelsOf(version),
      }),
    )
  }
  return images
}

function labelsOf(version: string): Record<string, string> {
  const {
    description,
    license,
    repository: source,
  } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as {
    description: string
    license: string
    repository?: { url: string }
  }
  return {
    'org.opencontainers.image.title': 'skyhookd',
    'org.opencontainers.image.description': description,
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.licenses': license,
    ...(source && { 'org.opencontainers.image.source': source.url.replace(/^git\+/, '').replace(/\.git$/, '') }),
  }
}

/** What image-pins.json has. */
export function readPins(): ImagePins {
  return JSON.parse(readFileSync(pinsFile, 'utf8')) as ImagePins
}

function updatePins(): void {
  const { debian } = readPins()
  const forBothArchitectures = <T>(of: (architecture: Architecture) => T) => ({
    amd64: of('amd64'),
    arm64: of('arm64'),
  })
  const packages = Object.keys(debian.packages).map((name) => {
    const found = forBothArchitectures((architecture) => fetchNewest(name, architecture))
    if (found.amd64.version !== found.arm64.version)
      throw new Error(`${name} differs between architectures; retry when the mirror has finished its update`)
    return [
      name,
      { version: found.amd64.version, sha256: { amd64: found.amd64.sha256, arm64: found.arm64.sha256 } },
    ] as const
  })
  const pins: ImagePins = {
    debian: { ...debian, packages: Object.fromEntries(packages) },
    node: { version: nodeVersion(), integrity: forBothArchitectures(npmIntegrity) },
  }
  writeFileSync(pinsFile, `${JSON.stringify(pins, null, 2)}\n`)
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      arch: { type: 'string', multiple: true },
      out: { type: 'string' },
      push: { type: 'string' },
      entry: { type: 'string' },
      locked: { type: 'boolean', default: false },
      'update-pins': { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values['update-pins']) {
    updatePins()
    return 0
  }
  const architectures = values.arch ?? [ociArchitecture()]
  const isKnown = (one: string): one is Architecture => one === 'amd64' || one === 'arm64'
  if (values.help || (values.out === undefined && values.push === undefined) || !architectures.every(isKnown)) {
    process.stderr.write(usage)
    return values.help ? 0 : 2
  }

  const workFolder = mkdtempSync(join(tmpdir(), 'skyhookd-image-'))
  try {
    const images = await buildAgentImages({
      architectures,
      isLocked: values.locked,
      workFolder,
      ...(values.entry !== undefined && { entry: resolve(values.entry) }),
    })
    if (values.out !== undefined) {
      await writeLayoutArchive(
        values.out,
        images,
        formatReference(parseReference(values.push ?? `skyhookd:${readVersion()}`)),
      )
      console.log(`${values.out} ${rootBlob(images).descriptor.digest}`)
    }
    if (values.push !== undefined) {
      const reference = parseReference(values.push)
      const client = createRegistryClient(registryFromEnvironment(reference.host), {
        clock: systemClock,
        random: systemRandom,
      })
      try {
        const digest = await pushImages(client, reference, images, AbortSignal.timeout(pushTimeoutMs))
        console.log(formatReference({ host: reference.host, repository: reference.repository, digest }))
      } finally {
        client.close()
      }
    }
    return 0
  } finally {
    rmSync(workFolder, { recursive: true })
  }
}

const pushTimeoutMs = 15 * 60_000 // 50 MB over a slow line

if (import.meta.main) {
  process.exitCode = await main().catch((error: unknown) => {
    console.error(`image: ${error instanceof Error ? error.message : String(error)}`)
    return 1
  })
}
