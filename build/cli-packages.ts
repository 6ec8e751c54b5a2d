/** The installable forms of kubectl skyhook. See `--help`. */
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { type LayerEntry, readFolder, writeLayer } from '../src/packages/oci/write/layer.ts'
import { type CliBundle, bundleCli } from './bundle.ts'
import type { Architecture } from './debian-packages.ts'
import { goProgramFor } from './go-program.ts'
import { readPins } from './image.ts'
import { type KrewArchive, krewManifest } from './krew-manifest.ts'
import { fetchRuntime, fileOf, readLibraries, textOf } from './runtime-layer.ts'

const usage = `usage: node build/cli-packages.ts [--out FOLDER] [--arch ARCH]... [--locked] [--url URL]

  --out FOLDER   where the files go (default: dist/cli-packages)
  --arch ARCH    amd64 or arm64 (default: both)
  --locked       fails where a pinned Debian package is gone from the mirrors, instead of taking its successor
  --url URL      folder from which the archives will be downloaded; without it there is no manifest for krew
`

const repository = join(import.meta.dirname, '..')

export type CliPackages = {
  /** For `npm install --global`. */
  readonly npm: string
  readonly archives: readonly (KrewArchive & { readonly file: string })[]
  readonly krew: string | undefined
}

export type CliPackageOptions = {
  readonly out: string
  readonly architectures: readonly Architecture[]
  readonly isLocked: boolean
  readonly url: string | undefined
}

/** Writes them. The same sources, pins, Node and Go give the same bytes. */
export async function buildCliPackages({ out, architectures, isLocked, url }: CliPackageOptions): Promise<CliPackages> {
  mkdirSync(out, { recursive: true })
  const work = mkdtempSync(join(tmpdir(), 'cli-packages-'))
  try {
    const bundle = await bundleCli(join(work, 'cli'))
    const npm = join(out, `kubectl-skyhook-${bundle.version}.tgz`)
    await writeLayer(await npmEntries(join(work, 'cli')), npm)
    const archives: (KrewArchive & { file: string })[] = []
    for (const architecture of [...new Set(architectures)].sort())
      archives.push(await writeArchive(bundle, architecture, isLocked, out, work))
    if (url === undefined) return { npm, archives, krew: undefined }
    const krew = join(out, 'skyhook.yaml') // krew requires the name of the plugin
    writeFileSync(krew, krewManifest(bundle.version, url.replace(/\/+$/, ''), archives))
    return { npm, archives, krew }
  } finally {
    rmSync(work, { recursive: true })
  }
}

/** As `npm pack` would pack the folder. */
async function npmEntries(folder: string): Promise<LayerEntry[]> {
  const { files } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { files: string[] }
  const entries = (await readFolder(folder, 'package')).map(withoutUmask)
  return [
    fileOf('package/package.json', join(folder, 'package.json'), 0o644),
    ...entries.filter(({ path }) => files.some((name) => `${path}/`.startsWith(`package/${name}/`))),
    fileOf('package/LICENSE', join(repository, 'LICENSE'), 0o644),
  ]
}

/** The modes that an ordinary checkout has. */
const withoutUmask = (entry: LayerEntry): LayerEntry =>
  entry.kind === 'link' ? entry : { ...entry, mode: (entry.mode & 0o100) === 0 ? 0o644 : 0o755 }

/** Node's library search takes names without folders: what a link leads to is stored under the name of the link. */
async function writeArchive(
  { file, starter, notices, version }: CliBundle,
  architecture: Architecture,
  isLocked: boolean,
  out: string,
  work: string,
): Promise<KrewArchive & { readonly file: string }> {
  const { packages, node } = fetchRuntime(architecture, readPins(), isLocked)
  const launcher = await goProgramFor(join(import.meta.dirname, 'launcher'), architecture)
  const folder = `kubectl-skyhook-${version}-linux-${architecture}`
  const root = join(work, architecture)
  const libraries = (await readLibraries(packages, root)).flatMap(({ path }) => {
    const name = basename(path)
    if (name === 'copyright') return [fileOf(`${folder}/licenses/${path.split('/').at(-2)}`, join(root, path), 0o644)]
    const isAsked = /^ld-linux-|\.so\.\d+$/.test(name)
    return isAsked && path.includes('-linux-gnu/') ? [fileOf(`${folder}/lib/${name}`, join(root, path), 0o755)] : []
  })
  const fileName = `${folder}.tar.gz`
  await writeLayer(
    [
      fileOf(`${folder}/kubectl-skyhook`, launcher, 0o755),
      fileOf(`${folder}/kubectl_complete-skyhook`, launcher, 0o755), // no link: krew refuses archives with links
      fileOf(`${folder}/lib/start.cjs`, starter, 0o644),
      fileOf(`${folder}/lib/kubectl-skyhook.cjs`, file, 0o644),
      fileOf(`${folder}/lib/node`, node.program, 0o755),
      textOf(`${folder}/lib/package.json`, '{"type":"commonjs"}\n'),
      ...libraries,
      ...(await readFolder(join(work, 'cli/schemas'), `${folder}/schemas`)).map(withoutUmask),
      fileOf(`${folder}/licenses/node`, node.licence, 0o644),
      fileOf(`${folder}/licenses/THIRD-PARTY-LICENSES`, notices, 0o644),
      fileOf(`${folder}/LICENSE`, join(repository, 'LICENSE'), 0o644),
    ],
    join(out, fileName),
  )
  const sha256 = createHash('sha256')
    .update(readFileSync(join(out, fileName)))
    .digest('hex')
  return { architecture, fileName, sha256, folder, file: join(out, fileName) }
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      out: { type: 'string', default: join(repository, 'dist/cli-packages') },
      arch: { type: 'string', multiple: true, default: ['amd64', 'arm64'] },
      url: { type: 'string' },
      locked: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  const isKnown = (one: string): one is Architecture => one === 'amd64' || one === 'arm64'
  const { out, arch, locked, url } = values
  if (values.help || !arch.every(isKnown)) {
    process.stderr.write(usage)
    return values.help ? 0 : 2
  }
  const { npm, archives, krew } = await buildCliPackages({ out, architectures: arch, isLocked: locked, url })
  console.log([npm, ...archives.map(({ file, sha256 }) => `${file} sha256:${sha256}`)].join('\n'))
  console.log(krew ?? 'no manifest for krew: --url says where the archives will be')
  return 0
}

if (import.meta.main) {
  process.exitCode = await main().catch((error: unknown) => {
    console.error(`cli-packages: ${error instanceof Error ? error.message : String(error)}`)
    return 1
  })
}
