/** The Dockerfiles of the packages, built by Debian's buildah, beside our own images of the same folders. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { buildPackageImages } from '../../src/cli/package/image.ts'
import { systemRandom } from '../../src/daemon/platform/system-clock.ts'
import { createHostRoot } from '../../src/host/fs/host-root.ts'
import { ociArchitecture } from '../../src/packages/oci/manifest.ts'
import { readFolder } from '../../src/packages/oci/write/layer.ts'
import type { Blob, BuiltImage } from '../../src/packages/oci/write/layout.ts'

const packages = join(import.meta.dirname, '..', '..', 'packages')
const names = readdirSync(packages, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
const work = mkdtempSync(join(tmpdir(), 'dockerfiles-'))
afterAll(() => rmSync(work, { recursive: true, force: true }))

/** Content and labels, which an agent and a scanner see. */
type Content = { readonly files: readonly string[]; readonly labels: Readonly<Record<string, string>> }

const missing = buildahProblem()
if (missing !== undefined) console.warn(`skipped: images from the Dockerfiles of packages: ${missing}`)

describe('a package with a Dockerfile', () => {
  test.skipIf(missing !== undefined).each(names)(
    'the image of %s has the same content from its Dockerfile and from kubectl skyhook',
    async (name) => {
      const fromDockerfile = await builtByBuildah(name)
      const ours = await builtByUs(name)
      expect(fromDockerfile.files).toEqual(ours.files)
      expect(fromDockerfile.labels).toMatchObject(ours.labels)
      expect(ours.files.length).toBeGreaterThan(2)
    },
  )

  test.each(names)('the Dockerfile of %s starts from nothing', (name) => {
    const lines = readFileSync(join(packages, name, 'Dockerfile'), 'utf8').split('\n')
    expect(lines.filter((line) => line.startsWith('FROM '))).toEqual(['FROM scratch'])
  })
})

/** Installs it where it is missing. @returns why it cannot be used */
function buildahProblem(): string | undefined {
  if (process.getuid?.() !== 0) return 'buildah needs root'
  const works = (): boolean => spawnSync('buildah', ['version']).status === 0
  if (works()) return undefined
  const apt = ['-qqy', '-o', 'DPkg::Lock::Timeout=300']
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const install = () => spawnSync('apt-get', [...apt, 'install', '--no-install-recommends', 'buildah'], { env })
  if (install().status !== 0) {
    spawnSync('apt-get', [...apt, 'update'], { env })
    install()
  }
  return works() ? undefined : 'apt-get could not install buildah'
}

async function builtByBuildah(name: string): Promise<Content> {
  const storage = ['--root', join(work, 'storage'), '--runroot', join(work, 'run'), '--storage-driver', 'vfs']
  const buildah = (...parameters: readonly string[]) =>
    execFileSync('buildah', [...storage, ...parameters], { stdio: ['ignore', 'ignore', 'pipe'] })
  buildah('build', '--isolation', 'chroot', '--tag', name, join(packages, name))
  const layout = join(work, name, 'layout')
  mkdirSync(layout, { recursive: true })
  buildah('push', name, `oci:${layout}:${name}`)
  const blobFile = (digest: string) => join(layout, 'blobs/sha256', digest.slice('sha256:'.length))
  const document = (file: string): unknown => JSON.parse(readFileSync(file, 'utf8'))
  const { manifests } = document(join(layout, 'index.json')) as { manifests: [{ digest: string }] }
  const manifest = document(blobFile(manifests[0].digest)) as {
    config: { digest: string }
    layers: { digest: string }[]
  }
  const layers = manifest.layers.map(({ digest }) => blobFile(digest))
  return await contentOf(join(work, name, 'theirs'), layers, document(blobFile(manifest.config.digest)))
}

async function builtByUs(name: string): Promise<Content> {
  const folder = join(work, name, 'built')
  mkdirSync(folder, { recursive: true })
  const root = createHostRoot('/', systemRandom)
  const { images } = await buildPackageImages(root, join(packages, name), [ociArchitecture()], folder)
  const [config, ...layers] = (images[0] as BuiltImage).blobs as readonly [Blob, ...Blob[]]
  const files = layers.map(({ content }) => (content as { file: string }).file)
  return await contentOf(join(work, name, 'ours'), files, JSON.parse((config.content as Buffer).toString()))
}

/** A checkout's umask shows in the modes that buildah keeps: what counts is whether a file may be run. */
async function contentOf(folder: string, layers: readonly string[], config: unknown): Promise<Content> {
  mkdirSync(folder)
  for (const layer of layers) execFileSync('tar', ['-C', folder, '-xzpf', layer])
  const files = (await readFolder(folder, '')).map((entry) => {
    if (entry.kind === 'folder') return `${entry.path}/`
    if (entry.kind === 'link') return `${entry.path} -> ${entry.target}`
    const text = readFileSync(join(folder, entry.path), 'utf8')
    return `${entry.path} ${(entry.mode & 0o111) === 0 ? 'data' : 'program'}\n${text}`
  })
  const { Labels } = (config as { config: { Labels: Record<string, string> } }).config
  return { files: files.sort(), labels: Labels }
}
