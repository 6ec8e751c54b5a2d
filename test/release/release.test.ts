/**
 * `make release` as a whole, twice: from two folders, into two folders. `SKYHOOKD_RELEASE=FOLDER` is the
 * first one, if it was made of this working tree already.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { readVersion } from '../../build/bundle.ts'
import { cacheFolder } from '../../build/cache.ts'
import { filesBelow, sha256OfFile } from '../../build/release/checksums.ts'
import { blocksOf } from '../support/page-commands.ts'
import { releaseWorkingTree } from './working-tree.ts'

const repository = join(import.meta.dirname, '..', '..')
const version = readVersion()
const work = mkdtempSync(join(tmpdir(), 'release-test-'))
let first = ''

/** The first one fetches Node and Debian packages for arm64. */
const firstBuildMs = 900_000

beforeAll(() => {
  first = process.env['SKYHOOKD_RELEASE'] ?? releaseWorkingTree(join(work, 'one'), {})
}, firstBuildMs)
afterAll(() => rmSync(work, { recursive: true, force: true }))

/** Downloads alone: layers and the launcher are made again. */
function cacheOfDownloads(): string {
  const cache = join(work, 'cache')
  mkdirSync(cache)
  for (const name of ['debian', 'node']) symlinkSync(cacheFolder(name), join(cache, name))
  return cache
}

test('two builds in two folders are equal byte by byte', () => {
  const env = { ...process.env, SKYHOOKD_CACHE: cacheOfDownloads() }
  const second = releaseWorkingTree(join(work, 'two'), { umask: 0o077, env })
  const content = (folder: string) => filesBelow(folder).map((path) => `${path} ${sha256OfFile(join(folder, path))}`)
  expect(content(second)).toEqual(content(first))
}, 600_000)

test('sha256sum finds every file of the release as it was', () => {
  execFileSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: first })
  const listed = readFileSync(join(first, 'SHA256SUMS'), 'utf8').trim().split('\n')
  expect(listed).toHaveLength(filesBelow(first).length - 1)
})

test('the commands that the page on security prints for a release end well in its folder', () => {
  const blocks = blocksOf('security.md').filter(({ place }) => place === 'release')
  expect(blocks.length).toBeGreaterThan(0)
  for (const { script } of blocks) execFileSync('bash', ['-euo', 'pipefail', '-c', script], { cwd: first })
})

type Statement = {
  readonly subject: readonly { readonly name: string; readonly digest: { readonly sha256: string } }[]
}
type Materials = { readonly metadata: { readonly component: { readonly name: string } } }

test('every artifact has a bill of materials, and a provenance with its digest', () => {
  const read = <T>(path: string, as: (value: unknown) => T): T =>
    as(JSON.parse(readFileSync(join(first, path), 'utf8')))
  const names = filesBelow(join(first, 'provenance')).map((path) => path.replace(/\.intoto\.json$/, ''))
  const subjects = new Map(
    names
      .flatMap((name) => read(`provenance/${name}.intoto.json`, (value) => value as Statement).subject)
      .map(({ name, digest }) => [name, digest.sha256]),
  )
  expect(filesBelow(join(first, 'sbom'))).toEqual(names.map((name) => `${name}.cdx.json`))
  for (const name of names)
    expect(read(`sbom/${name}.cdx.json`, (value) => value as Materials).metadata.component.name).toBe(name)
  const described = filesBelow(first).filter((path) => /^(?:cli|crds|daemonset|samples)\/|\.tgz$/.test(path))
  for (const path of described) expect([path, subjects.get(path)]).toEqual([path, sha256OfFile(join(first, path))])
  const { manifests } = read('oci/index.json', (value) => value as { manifests: { digest: string }[] })
  expect([...subjects.values()]).toEqual(
    expect.arrayContaining(manifests.map(({ digest }) => digest.slice('sha256:'.length))),
  )
})

test('the image is for both architectures, each at most 60 MB', () => {
  const blob = (digest: string): unknown =>
    JSON.parse(readFileSync(join(first, 'oci/blobs/sha256', digest.slice('sha256:'.length)), 'utf8'))
  const { manifests } = blob(pinnedDigest()) as { manifests: { digest: string; platform: object }[] }
  expect(manifests.map(({ platform }) => platform)).toEqual([
    { architecture: 'amd64', os: 'linux' },
    { architecture: 'arm64', os: 'linux' },
  ])
  for (const { digest } of manifests) {
    const { layers } = blob(digest) as { layers: { size: number }[] }
    expect(layers.reduce((sum, { size }) => sum + size, 0)).toBeLessThanOrEqual(60_000_000)
  }
})

const agentsFile = 'daemonset/skyhookd.yaml'
const agentImages = (manifests: string): string[] =>
  parseAllDocuments(manifests)
    .map((document) => document.toJS() as { kind: string; spec: AgentSpec } | null)
    .flatMap((object) => (object?.kind === 'DaemonSet' ? object.spec.template.spec.containers : []))
    .map(({ image }) => image)
type AgentSpec = { readonly template: { readonly spec: { readonly containers: readonly { image: string }[] } } }

/** Of the agent's image. */
function pinnedDigest(): string {
  const [image = ''] = agentImages(readFileSync(join(first, agentsFile), 'utf8'))
  return image.slice(image.indexOf('@') + 1)
}

test('helm renders the chart with the image that the plain manifests name', () => {
  const binaries = execFileSync(join(repository, 'test/sandbox/build-binaries.sh'), ['--path'], { encoding: 'utf8' })
  const helm = join(binaries.trim(), 'helm')
  if (!existsSync(helm)) throw new Error(`${helm} is missing: run test/sandbox/build-binaries.sh`)
  const chart = join(first, `skyhookd-${version}.tgz`)
  const run = (...parameters: readonly string[]) => execFileSync(helm, parameters, { encoding: 'utf8' })
  expect(parse(run('show', 'chart', chart))).toMatchObject({ name: 'skyhookd', version, appVersion: version })
  const rendered = run('template', 'skyhookd', chart, '--namespace', 'skyhook')
  const images = [`registry.example.com/infra/skyhookd@${pinnedDigest()}`]
  expect(agentImages(rendered)).toEqual(images)
  expect(agentImages(readFileSync(join(first, agentsFile), 'utf8'))).toEqual(images)
})
