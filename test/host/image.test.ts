import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readVersion } from '../../build/bundle.ts'
import { buildAgentImages, entrypoint } from '../../build/image.ts'
import type { BuiltImage } from '../../src/packages/oci/write/layout.ts'
import { readEndpoints } from '../../src/packages/oci/read/endpoints.ts'
import { fakeCaCert, startFakeRegistry } from '../kit/registry/fake-registry.ts'
import { fakeSources } from '../kit/registry/registry-documents.ts'
import { writeLayer } from '../../src/packages/oci/write/layer.ts'
import { ociArchitecture } from '../../src/packages/oci/manifest.ts'
import { unpackInChild } from '../../src/packages/store/unpack-child.ts'
import type { UnpackJob } from '../../src/packages/store/unpack-job.ts'

const run = promisify(execFile)
let tempFolder = ''
let root = ''
let image: BuiltImage

beforeAll(async () => {
  tempFolder = mkdtempSync(join(tmpdir(), 'image-test-'))
  image = await build('first')
  root = join(tempFolder, 'root')
  mkdirSync(root)
  for (const { content } of image.blobs.slice(1)) {
    if (!Buffer.isBuffer(content)) await run('tar', ['-C', root, '-xzpf', content.file])
  }
})
afterAll(() => rmSync(tempFolder, { recursive: true }))

async function build(name: string): Promise<BuiltImage> {
  const workFolder = join(tempFolder, name)
  mkdirSync(workFolder)
  const [built] = await buildAgentImages({
    architectures: [ociArchitecture() as 'amd64' | 'arm64'],
    isLocked: false,
    workFolder,
  })
  if (built === undefined) throw new Error('no image was built')
  return built
}

/** Runs a program with only the image's files: it cannot find a library of this machine. */
async function inImage(...command: readonly string[]): Promise<string> {
  const { stdout } = await run('/usr/sbin/chroot', [root, ...command], { env: { PATH: '/usr/bin' } })
  return stdout.trim()
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? filesBelow(path) : entry.isFile() ? [path] : []
  })
}

describe("the agent's image", () => {
  test('two builds of the image are identical', async () => {
    expect((await build('second')).manifest.descriptor).toEqual(image.manifest.descriptor)
  })

  test('the image starts the agent with every flag of its entrypoint', async () => {
    expect(await inImage(...entrypoint, 'version')).toBe(readVersion())
    const [config] = image.blobs
    expect(JSON.parse(Buffer.isBuffer(config?.content) ? config.content.toString() : '').config).toMatchObject({
      Entrypoint: entrypoint,
      User: '0:0',
      Labels: { 'org.opencontainers.image.version': readVersion() },
    })
  })

  test('the image has what Node needs: its loader and libraries, names from the hosts file, TLS, zstd', async () => {
    writeFileSync(join(root, 'etc/hosts'), '10.1.2.3 registry.test\n')
    const program = `
      const { address } = await (await import('node:dns/promises')).lookup('registry.test')
      const zlib = await import('node:zlib')
      const tls = await import('node:tls')
      tls.createSecureContext()
      console.log(address, zlib.zstdDecompressSync(zlib.zstdCompressSync('zstd')).toString(), tls.rootCertificates.length > 100)`
    expect(await inImage('/usr/bin/node', '--input-type=module', '-e', program)).toBe('10.1.2.3 zstd true')
  })

  test('the image has no shell, no program but Node, and nothing that raises privileges', () => {
    const programs = filesBelow(root).filter((path) => (statSync(path).mode & 0o111) !== 0)
    expect(programs.map((path) => path.slice(root.length)).filter((path) => !path.startsWith('/lib/'))).toEqual([
      '/usr/bin/node',
    ])
    expect(filesBelow(root).filter((path) => (statSync(path).mode & 0o7000) !== 0)).toEqual([])
  })

  test('the image lists its Debian packages where scanners look, with their licences', () => {
    const packages = readdirSync(join(root, 'var/lib/dpkg/status.d'))
    expect(packages).toEqual(expect.arrayContaining(['libc6', 'libgcc-s1', 'libstdc++6']))
    expect(readFileSync(join(root, 'var/lib/dpkg/status.d/libc6'), 'utf8')).toMatch(/^Package: libc6\n.*^Version: /ms)
    expect(readFileSync(join(root, 'usr/share/doc/gcc-12-base/copyright'), 'utf8')).toMatch(
      /GCC RUNTIME LIBRARY EXCEPTION/i,
    )
    expect(readFileSync(join(root, 'usr/share/doc/skyhookd/THIRD-PARTY-LICENSES'), 'utf8')).toMatch(/^tar-stream /m)
  })

  test('the agent fetches and unpacks packages in its own child process', async () => {
    const registry = await startFakeRegistry({ tls: true })
    try {
      const { descriptor, file } = await writeLayer(
        [{ kind: 'file', path: 'skyhook-package/config.json', mode: 0o644, content: Buffer.from('{}') }],
        join(tempFolder, 'layer'),
      )
      registry.addBlob('pkg', readFileSync(file))
      mkdirSync(join(root, 'tmp/work'))
      const resolvedEndpoints = await readEndpoints(
        registry.host,
        fakeSources([{ host: registry.host, ca: fakeCaCert }]),
      )
      const job: UnpackJob = {
        registry: { credentials: [], sources: { resolvedEndpoints } },
        reference: { host: registry.host, repository: 'pkg', tag: '1' },
        layers: [descriptor],
        workFolder: '/tmp/work',
        target: '/tmp/unpacked',
      }
      const signal = AbortSignal.timeout(20_000)
      expect(
        await unpackInChild(job, { signal, command: ['/usr/sbin/chroot', root, ...entrypoint, 'unpack'] }),
      ).toEqual({
        entries: 2,
        bytes: 2,
      })
      expect(readFileSync(join(root, 'tmp/unpacked/config.json'), 'utf8')).toBe('{}')
    } finally {
      await registry.close()
    }
  })
})
