import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { temporaryFolder } from '../../test/kit/files/temporary-folder.ts'
import { systemClock, systemRandom } from '../../src/daemon/platform/system-clock.ts'
import { createRegistryClient } from '../../src/packages/oci/read/registry.ts'
import { writeLayer } from '../../src/packages/oci/write/layer.ts'
import { buildImage, rootBlob } from '../../src/packages/oci/write/layout.ts'
import { startFakeRegistry } from '../../test/kit/registry/fake-registry.ts'
import { fakeSources } from '../../test/kit/registry/registry-documents.ts'
import { textOf } from '../runtime-layer.ts'
import { pinnedValues, writeChartPackage } from './chart-package.ts'
import { checksums, filesBelow, sha256OfFile } from './checksums.ts'
import { buildRelease, checkPrefix } from './folder.ts'
import { type NamedImage, writeLayoutFolder } from './layout-folder.ts'
import { pinnedAgents, sampleRegistry, writeManifests } from './manifests.ts'
import { withoutDeadLinks, writePages } from './pages.ts'
import { pushRelease } from './push.ts'
import { releaseReadme } from './readme.ts'
import { checkVersion, statedVersions } from './version.ts'

const repository = join(import.meta.dirname, '..', '..')
const image = { repository: 'r.example.com/team/skyhookd', digest: `sha256:${'a'.repeat(64)}` }
const pinned = `${image.repository}@${image.digest}`
let work = ''
beforeEach(() => (work = temporaryFolder()))

describe('the version of a release', () => {
  const stated = { 'version in package.json': '0.1.0', 'appVersion in chart/Chart.yaml': '0.1.0' }

  test('the version that every file states is accepted', () => {
    expect(() => checkVersion('0.1.0', stated)).not.toThrow()
    const { version } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as { version: string }
    expect(() => checkVersion(version, statedVersions(repository))).not.toThrow()
  })

  test('another version is refused with the files that state another, and what to do', () => {
    const all = { ...stated, 'version in chart/Chart.yaml': '0.2.0' }
    expect(() => checkVersion('0.2.0', all)).toThrow(
      'VERSION is 0.2.0, but version in package.json is 0.1.0, appVersion in chart/Chart.yaml is 0.1.0: ' +
        'set 0.2.0 in these files, run "make generate" and commit',
    )
  })

  test.each(['v0.1.0', '0.1', 'latest', '', '0.1.0+build'])('"%s" is not the version of a release', (version) => {
    expect(() => checkVersion(version, { place: version })).toThrow(/^VERSION must/)
  })
})

describe('the chart of a release', () => {
  const packed = async (name: string) => {
    const file = join(work, name)
    return { file, artifact: await writeChartPackage(join(repository, 'chart'), image, file) }
  }

  test('the chart names the image by digest in its values and in its table of values, and is the same otherwise', async () => {
    const { file } = await packed('chart.tgz')
    execFileSync('tar', ['-C', work, '-xzf', file])
    const text = (name: string) => readFileSync(join(work, 'skyhookd', name), 'utf8')
    expect((parse(text('values.yaml')) as { image: object }).image).toMatchObject(image)
    expect(text('README.md')).toContain(`| \`image.digest\` | \`"${image.digest}"\` |`)
    const differing = filesBelow(join(repository, 'chart')).filter(
      (name) => text(name) !== readFileSync(join(repository, 'chart', name), 'utf8'),
    )
    expect(differing).toEqual(['README.md', 'values.yaml'])
  })

  test('the chart names the address of the release as its home where there is one', async () => {
    const home = 'https://example.com/releases'
    await writeChartPackage(join(repository, 'chart'), image, join(work, 'home.tgz'), home)
    execFileSync('tar', ['-C', work, '-xzf', join(work, 'home.tgz')])
    expect(parse(readFileSync(join(work, 'skyhookd/Chart.yaml'), 'utf8'))).toMatchObject({ name: 'skyhookd', home })
  })

  test('the chart has the same bytes each time, whatever the umask', async () => {
    const before = process.umask(0o077)
    try {
      expect(sha256OfFile((await packed('one.tgz')).file)).toBe(sha256OfFile((await packed('two.tgz')).file))
    } finally {
      process.umask(before)
    }
  })

  test('the chart leaves out what .helmignore names', async () => {
    const chart = join(work, 'chart')
    execFileSync('cp', ['-r', join(repository, 'chart'), chart])
    writeFileSync(join(chart, 'templates/rbac.yaml~'), 'left by an editor')
    await writeChartPackage(chart, image, join(work, 'copy.tgz'))
    expect(sha256OfFile(join(work, 'copy.tgz'))).toBe(sha256OfFile((await packed('chart.tgz')).file))
  })

  test('the chart is an artifact that helm pulls from a registry', async () => {
    const { artifact, file } = await packed('chart.tgz')
    const manifest = JSON.parse((artifact.manifest.content as Buffer).toString()) as {
      config: { mediaType: string }
      layers: { mediaType: string; digest: string }[]
    }
    expect(manifest.config.mediaType).toBe('application/vnd.cncf.helm.config.v1+json')
    expect(manifest.layers).toMatchObject([
      { mediaType: 'application/vnd.cncf.helm.chart.content.v1.tar+gzip', digest: `sha256:${sha256OfFile(file)}` },
    ])
  })

  test('values without a place for the digest are an error', () => {
    expect(() => pinnedValues('image:\n  repository: a\n', image)).toThrow('chart/values.yaml lacks image.digest')
  })
})

describe('the manifests of a release', () => {
  test('definitions, agents and samples lie where a checkout has them, with the images of the release', () => {
    writeManifests(repository, work, image, 'r.example.com/team')
    for (const folder of ['crds', 'overlay', 'samples', 'gitops', 'daemonset'])
      expect(filesBelow(join(work, folder))).toEqual(filesBelow(join(repository, folder)))
    const agents = readFileSync(join(work, 'daemonset/skyhookd.yaml'), 'utf8')
    expect(agents.match(/^ +image: .*$/gm)).toEqual([`          image: ${pinned}`])
    expect(agents.replace(pinned, '').match(/^---$/gm)).toEqual(
      readFileSync(join(repository, 'daemonset/skyhookd.yaml'), 'utf8').match(/^---$/gm),
    )
    expect(parse(readFileSync(join(work, 'daemonset/kustomization.yaml'), 'utf8'))).toMatchObject({
      resources: ['skyhookd.yaml'],
      images: [{ name: image.repository, newName: image.repository, digest: image.digest }],
    })
    expect(parse(readFileSync(join(work, 'samples/registry.yaml'), 'utf8'))).toMatchObject({
      data: { registry: 'r.example.com/team' },
    })
  })

  test.each(['---\nkind: DaemonSet\n', `---\n${'  image: skyhookd:1\n'.repeat(2)}`])(
    'agents without exactly one image are an error: %j',
    (manifests) => {
      expect(() => pinnedAgents(manifests, image)).toThrow('must have one image')
    },
  )

  test('samples without a registry are an error', () => {
    expect(() => sampleRegistry('data: {}\n', 'r.example.com')).toThrow('must have one registry')
  })
})

async function twoImages(): Promise<NamedImage[]> {
  const layer = await writeLayer([textOf('a', 'a')], join(work, 'layer'))
  const built = ['amd64', 'arm64'].map((architecture) => buildImage([layer], { architecture }))
  return [
    { name: 'charts/skyhookd', tag: '1.0.0', images: built.slice(0, 1) },
    { name: 'skyhookd', tag: '1.0.0', images: built },
  ]
}

describe('the images of a release', () => {
  test('the layout has each blob under its digest, and names each image', async () => {
    const named = await twoImages()
    const stored = writeLayoutFolder(join(work, 'oci'), named, 'r.example.com/team')
    for (const name of filesBelow(join(work, 'oci/blobs/sha256')))
      expect(sha256OfFile(join(work, 'oci/blobs/sha256', name))).toBe(name)
    const { manifests } = JSON.parse(readFileSync(join(work, 'oci/index.json'), 'utf8')) as {
      manifests: { digest: string; annotations: Record<string, string> }[]
    }
    expect(manifests.map(({ digest }) => digest)).toEqual(named.map(({ images }) => rootBlob(images).descriptor.digest))
    expect(manifests[1]?.annotations).toEqual({
      'io.containerd.image.name': 'r.example.com/team/skyhookd:1.0.0',
      'org.opencontainers.image.ref.name': 'skyhookd:1.0.0',
    })
    for (const { content } of stored.flatMap(({ images }) => images.flatMap(({ blobs }) => blobs)))
      if (!Buffer.isBuffer(content)) expect(content.file).toContain(join(work, 'oci/'))
  })

  test('a push stores all images below the prefix, the chart last', async () => {
    const registry = await startFakeRegistry()
    const client = createRegistryClient(
      { credentials: [], sources: fakeSources([{ host: registry.host, plainHTTP: true }]) },
      { clock: systemClock, random: systemRandom },
    )
    try {
      const prefix = `${registry.host}/team`
      const named = await twoImages()
      const pushed = await pushRelease(client, prefix, named, new AbortController().signal)
      const digests = named.map(({ images }) => rootBlob(images).descriptor.digest)
      expect(pushed).toEqual([
        `${prefix}/skyhookd:1.0.0@${digests[1]}`,
        `${prefix}/charts/skyhookd:1.0.0@${digests[0]}`,
      ])
      expect(registry.manifest('team/charts/skyhookd', '1.0.0')).toBeDefined()
      const tags = registry.requests.flatMap(({ line }) => /^PUT (\S+\/manifests\/1\.0\.0)/.exec(line)?.[1] ?? [])
      expect(tags).toEqual(['/v2/team/skyhookd/manifests/1.0.0', '/v2/team/charts/skyhookd/manifests/1.0.0'])
    } finally {
      client.close()
      await registry.close()
    }
  })

  test.each([
    ['registry.example.com/infra/', 'registry.example.com/infra'],
    ['localhost:5000/a/b', 'localhost:5000/a/b'],
  ])('images of a release may be below %s', (prefix, expected) => {
    expect(checkPrefix(prefix)).toBe(expected)
  })

  test.each(['registry.example.com/infra:1', 'registry.example.com/Infra', 'localhost:5000'])(
    'images of a release may not be below %s',
    (prefix) => {
      expect(() => checkPrefix(prefix)).toThrow(prefix)
    },
  )
})

describe('the pages of a release', () => {
  test('each link of the pages leads to something in the folder', () => {
    writeManifests(repository, work, image, 'r.example.com/team')
    writePages(repository, work)
    writeFileSync(join(work, 'README.md'), releaseReadme('0.1.0', 'r.example.com/team'))
    const pages = filesBelow(work).filter((path) => path.endsWith('.md'))
    expect(pages).toContain('docs/usage/operations.md')
    const dead = pages.flatMap((page) =>
      [...readFileSync(join(work, page), 'utf8').matchAll(/\]\(([^)\s#]+)[^)\s]*\)/g)]
        .map(([, target = '']) => target)
        .filter((target) => !/^[a-z]+:/.test(target) && !existsSync(join(work, dirname(page), target)))
        .map((target) => `${page}: ${target}`),
    )
    expect(dead).toEqual([])
  })

  test.each([
    ['[a\nlink](design/architecture.md#y) and [one](usage/install.md#z)', 'a\nlink and [one](usage/install.md#z)'],
    ['![a picture](gone.svg), [`code`](style.md)', 'a picture, `code`'],
    ['[here](#there), [the web](https://example.com/x)', '[here](#there), [the web](https://example.com/x)'],
  ])('a link to what the folder lacks becomes plain text: %j', (text, expected) => {
    expect(withoutDeadLinks(text, 'docs/README.md', (path) => path === 'docs/usage/install.md')).toBe(expected)
  })
})

describe('the folder of a release', () => {
  test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('%s leaves nothing of an unfinished release', async (signal) => {
    const folder = join(work, 'partial')
    mkdirSync(folder)
    const module = JSON.stringify(join(import.meta.dirname, 'interruption.ts'))
    const script = `(await import(${module})).removeWhenInterrupted([${JSON.stringify(folder)}])
      setInterval(() => {}, 1000)
      process.send('started')`
    const child = fork('-', [], { execArgv: ['--input-type=module', '--eval', script] })
    const ended = once(child, 'exit')
    await once(child, 'message')
    child.kill(signal)
    expect(await ended).toEqual([{ SIGHUP: 129, SIGINT: 130, SIGTERM: 143 }[signal], null])
    expect(existsSync(folder)).toBe(false)
  })

  test('every file has a line that sha256sum checks', () => {
    mkdirSync(join(work, 'a'))
    writeFileSync(join(work, 'a/b'), 'b')
    writeFileSync(join(work, 'c'), 'c')
    const sums = checksums(work)
    expect(sums.split('\n').map((line) => line.slice(66))).toEqual(['a/b', 'c', ''])
    const check = () => execFileSync('sha256sum', ['--check', '--status', '-'], { cwd: work, input: sums })
    expect(check).not.toThrow()
    writeFileSync(join(work, 'c'), 'd')
    expect(check).toThrow('sha256sum')
  })

  test('a folder with other files is not replaced by a release', async () => {
    const out = join(work, 'home')
    mkdirSync(out)
    writeFileSync(join(out, 'letter'), 'keep me')
    const options = {
      repository,
      version: '0.1.0',
      out,
      prefix: 'r.example.com/a',
      url: undefined,
      commit: '',
      notes: '',
      isLocked: true,
    }
    await expect(buildRelease(options)).rejects.toThrow('has files but no SHA256SUMS')
    expect(existsSync(join(out, 'letter'))).toBe(true)
  })
})
