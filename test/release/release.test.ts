/**
 * `make release` as a whole, twice: from two folders, into two folders. `SKYHOOKD_RELEASE=FOLDER` is the
 * first one, if it was made of this working tree already.
 */
import { execFile, execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { readVersion } from '../../build/bundle.ts'
import { cacheFolder } from '../../build/cache.ts'
import { emulated } from '../../build/emulator.ts'
import { entrypoint } from '../../build/image.ts'
import { filesBelow, sha256OfFile } from '../../build/release/checksums.ts'
import { blocksOf } from '../kit/pages/page-commands.ts'
import { releaseWorkingTree, sourcesOf } from '../kit/pages/working-tree.ts'

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
  // the working tree may have changed: a test that runs beside this one may have found an open seed
  const second = releaseWorkingTree(join(work, 'two'), { umask: 0o077, env, from: sourcesOf(first) })
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

test('the page of the folder names everything in it', () => {
  const page = readFileSync(join(first, 'README.md'), 'utf8')
  const named = [...page.matchAll(/^\| (`[^|]*`) \| .* \|$/gm)].flatMap(([, names = '']) =>
    names.replaceAll('`', '').split(', '),
  )
  expect(named.toSorted()).toEqual(
    readdirSync(first)
      .filter((name) => name !== 'README.md')
      .toSorted(),
  )
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
  const described = filesBelow(first).filter((path) =>
    /^(?:cli|crds|daemonset|overlay|samples|gitops)\/|\.tgz$/.test(path),
  )
  for (const path of described) expect([path, subjects.get(path)]).toEqual([path, sha256OfFile(join(first, path))])
  const { manifests } = read('oci/index.json', (value) => value as { manifests: { digest: string }[] })
  expect([...subjects.values()]).toEqual(
    expect.arrayContaining(manifests.map(({ digest }) => digest.slice('sha256:'.length))),
  )
})

const blobFile = (digest: string): string => join(first, 'oci/blobs/sha256', digest.slice('sha256:'.length))
const blob = (digest: string): unknown => JSON.parse(readFileSync(blobFile(digest), 'utf8'))
type Index = { readonly manifests: readonly { digest: string; platform: { architecture: string } }[] }
type Manifest = { readonly layers: readonly { digest: string; size: number }[] }

test('the image is for both architectures, each at most 60 MB', () => {
  const { manifests } = blob(pinnedDigest()) as Index
  expect(manifests.map(({ platform }) => platform)).toEqual([
    { architecture: 'amd64', os: 'linux' },
    { architecture: 'arm64', os: 'linux' },
  ])
  for (const { digest } of manifests) {
    const { layers } = blob(digest) as Manifest
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

/** Not `unpack`: the child ends at 144 MiB of memory, and the emulator's count. */
describe('on arm64, which is emulated', () => {
  const packages = join(repository, 'packages')
  const run = promisify(execFile)
  const output = async ([program, ...parameters]: readonly [string, ...string[]]): Promise<string> =>
    (await run(program, parameters)).stdout.trim()

  const root = join(work, 'arm64')
  beforeAll(() => {
    const { manifests } = blob(pinnedDigest()) as Index
    const arm64 = manifests.find(({ platform }) => platform.architecture === 'arm64')
    mkdirSync(root)
    for (const { digest } of (blob(arm64?.digest ?? '') as Manifest).layers)
      execFileSync('tar', ['-C', root, '-xzf', blobFile(digest)])
  })

  /** The command of the agent's image. */
  function skyhookd(...parameters: readonly string[]): readonly [string, ...string[]] {
    const words = entrypoint.map((word) => (word.startsWith('/') ? join(root, word) : word))
    return [...emulated(root), ...words, ...parameters]
  }

  /** Unpacks the archive of the tool. The loader becomes a script that starts the real one under emulation. */
  function unpackedTool(): string {
    const name = `kubectl-skyhook-${version}-linux-arm64`
    execFileSync('tar', ['-C', work, '-xzf', join(first, 'cli', `${name}.tar.gz`)])
    const loader = join(work, name, 'lib/ld-linux-aarch64.so.1')
    renameSync(loader, `${loader}.real`)
    const command = [...emulated('/'), `${loader}.real`].join("' '")
    writeFileSync(loader, `#!/bin/sh\nexec '${command}' "$@"\n`, { mode: 0o755 })
    return join(work, name, 'kubectl-skyhook')
  }

  test('the image starts the agent with every flag of its entrypoint, and finds the shipped packages valid', async () => {
    expect(await output(skyhookd('version'))).toBe(version)
    const folders = readdirSync(packages, { withFileTypes: true }).filter((entry) => entry.isDirectory())
    const paths = folders.map(({ name }) => join(packages, name))
    const verdicts = await Promise.all(paths.map((path) => output(skyhookd('validate', path))))
    expect(verdicts).toEqual(paths.map((path) => `${path}: package is valid`))
    expect(paths.length).toBeGreaterThan(0)
  })

  test('the launcher of the tool starts it with the Node and the libraries of its archive', async () => {
    const tool = unpackedTool()
    const kubectlSkyhook = (...parameters: readonly string[]) => output([...emulated('/'), tool, ...parameters])
    expect(JSON.parse(await kubectlSkyhook('version', '--client-only', '-o', 'json'))).toMatchObject({
      items: [{ version }],
    })
    await expect(kubectlSkyhook('validate', join(packages, 'tuning'))).resolves.toContain('valid')
  })
})
