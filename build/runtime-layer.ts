/**
 * The image's lower layer: Node and the libraries it links, nothing else. No shell, no package manager, no executable
 * file except Node. It changes only with Node or Debian, so a new agent pushes only its own half megabyte.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type BuiltLayer, type LayerEntry, readFolder, writeLayer } from '../src/packages/oci/write/layer.ts'
import { cacheFolder } from './cache.ts'
import {
  type Architecture,
  controlOf,
  type DebianPackage,
  extractPackage,
  fetchPackage,
  type PackagePin,
} from './debian-packages.ts'
import { fetchNode, type NodeBinary, nodeVersion } from './node-binary.ts'

export type ImagePins = {
  readonly debian: {
    readonly codename: string
    readonly versionId: string
    readonly packages: Readonly<Record<string, PackagePin>>
  }
  readonly node: { readonly version: string; readonly integrity: Readonly<Record<Architecture, string>> }
}

const layerFormat = 1 // raise it when the same inputs should give another layer

/**
 * The files that Node needs from the packages: its libraries and the loader that its header names. `test/host` checks
 * this by running it.
 */
const neededFiles = [
  /^lib64\/ld-linux-[^/]+$/,
  /^lib\/ld-linux-[^/]+$/,
  /^lib\/[^/]+-linux-gnu\/(?:ld-linux-[^/]+|libc\.so\.6|libm\.so\.6|libdl\.so\.2|libpthread\.so\.0|libgcc_s\.so\.1)$/,
  /^usr\/lib\/[^/]+-linux-gnu\/(?:libstdc\+\+\.so\.6|libatomic\.so\.1)[^/]*$/,
  // gcc-12-base is pinned for this file alone: it holds the license of the libraries made from gcc
  /^usr\/share\/doc\/[^/]+\/copyright$/,
]

export type Runtime = { readonly packages: readonly DebianPackage[]; readonly node: NodeBinary }

/** Node and the Debian packages with its libraries. @throws Error where a pin does not fit */
export function fetchRuntime(architecture: Architecture, pins: ImagePins, isLocked: boolean): Runtime {
  if (pins.node.version !== nodeVersion()) {
    throw new Error(
      `package.json has Node ${nodeVersion()}, image-pins.json ${pins.node.version}: ` +
        'run "node build/image.ts --update-pins"',
    )
  }
  const packages = Object.entries(pins.debian.packages).map(([name, pin]) =>
    fetchPackage(name, pin, architecture, isLocked),
  )
  return { packages, node: fetchNode(architecture, pins.node.integrity[architecture]) }
}

const libraries = ['libc.so.6', 'libm.so.6', 'libgcc_s.so.1', 'libstdc++.so.6', 'libatomic.so.1']

/**
 * Unpacks the packages into a new folder, and returns what Node needs of them: libraries, loader and licenses.
 * @throws Error where a library is not at its place, as in packages of another Debian
 */
export async function readLibraries(packages: readonly DebianPackage[], root: string): Promise<LayerEntry[]> {
  for (const one of packages) extractPackage(one, root)
  const found = (await readFolder(root, '')).filter(
    ({ kind, path }) => kind !== 'folder' && neededFiles.some((pattern) => pattern.test(path)),
  )
  const missing = libraries.filter((name) => !found.some(({ path }) => path.endsWith(`/${name}`)))
  if (missing.length === 0) return found
  const names = packages.map(({ name, version }) => `${name} ${version}`).join(', ')
  throw new Error(`the image would lack ${missing.join(', ')}, which ${names} do not have where the image expects them`)
}

/** The layer, built once per content of its inputs and kept in the cache. */
export async function runtimeLayer(
  architecture: Architecture,
  pins: ImagePins,
  isLocked: boolean,
): Promise<BuiltLayer> {
  const { packages, node } = fetchRuntime(architecture, pins, isLocked)
  const key = inputsKey(architecture, packages, node)
  const file = cacheFolder('image', `runtime-${architecture}-${key}.tar.gz`)
  const record = `${file}.json`
  if (existsSync(record)) return { ...(JSON.parse(readFileSync(record, 'utf8')) as Omit<BuiltLayer, 'file'>), file }

  console.error(`image: packing Node ${node.version} and its libraries for ${architecture}, once`)
  mkdirSync(cacheFolder('image'), { recursive: true })
  const work = mkdtempSync(cacheFolder('image', '.work-'))
  try {
    const layer = await writeLayer(await entries(work, packages, node, pins), join(work, 'layer'))
    renameSync(layer.file, file)
    writeFileSync(`${record}.new`, JSON.stringify({ descriptor: layer.descriptor, diffId: layer.diffId }))
    renameSync(`${record}.new`, record)
    return { ...layer, file }
  } finally {
    rmSync(work, { recursive: true })
  }
}

async function entries(
  work: string,
  packages: readonly DebianPackage[],
  node: NodeBinary,
  pins: ImagePins,
): Promise<LayerEntry[]> {
  return [
    ...(await readLibraries(packages, join(work, 'root'))),
    fileOf('usr/bin/node', node.program, 0o755),
    fileOf('usr/share/doc/node/LICENSE', node.licence, 0o644),
    // vulnerability scanners look there
    ...packages.map((one) => textOf(`var/lib/dpkg/status.d/${one.name}`, controlOf(one))),
    textOf(
      'etc/os-release',
      `ID=debian\nVERSION_ID="${pins.debian.versionId}"\nVERSION_CODENAME=${pins.debian.codename}\n`,
    ),
    textOf('etc/passwd', 'root:x:0:0:root:/root:/sbin/nologin\n'),
    textOf('etc/group', 'root:x:0:\n'),
    textOf('etc/nsswitch.conf', 'hosts: files dns\n'), // without it glibc asks DNS for localhost first
    { kind: 'folder', path: 'root', mode: 0o700 },
    { kind: 'folder', path: 'tmp', mode: 0o1777 },
  ]
}

function inputsKey(architecture: Architecture, packages: readonly DebianPackage[], node: NodeBinary): string {
  const inputs = [
    layerFormat,
    architecture,
    node.version,
    process.versions.zlib,
    packages.map(({ name, sha256 }) => [name, sha256]),
  ]
  return createHash('sha256').update(JSON.stringify(inputs)).digest('hex').slice(0, 16)
}

export function fileOf(path: string, from: string, mode: number): LayerEntry {
  return { kind: 'file', path, mode, content: { file: from, sizeBytes: statSync(from).size } }
}

export function textOf(path: string, text: string, mode = 0o644): LayerEntry {
  return { kind: 'file', path, mode, content: Buffer.from(text) }
}
