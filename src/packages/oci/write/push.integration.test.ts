import {
  chmodSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  createReadStream,
} from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { extract } from 'tar-stream'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../../../../test/kit/files/temporary-folder.ts'
import { systemClock, systemRandom } from '../../../daemon/platform/system-clock.ts'
import { unpackPackage } from '../../store/unpack.ts'
import { parseDockerConfig } from '../read/credentials.ts'
import { type FakeLogin, type FakeRegistry, startFakeRegistry } from '../../../../test/kit/registry/fake-registry.ts'
import { fakeSources } from '../../../../test/kit/registry/registry-documents.ts'
import { type BuiltLayer, readFolder, writeLayer } from './layer.ts'
import { buildImage, writeLayoutArchive } from './layout.ts'
import { resolveImage, selectImage } from '../read/pull.ts'
import { downloadLayers } from '../../store/unpack-download.ts'
import { pushImages } from './push.ts'
import { parseReference } from '../reference.ts'
import { createRegistryClient, type RegistryClient } from '../read/registry.ts'

const systemPorts = { clock: systemClock, random: systemRandom }
const fakeLogin: FakeLogin = { kind: 'bearer', username: 'lab', password: 'secret' }
const { signal } = new AbortController()
let tempDir = ''
const opened: { close(): unknown }[] = []

beforeEach(() => {
  tempDir = temporaryFolder()
  makePackage(join(tempDir, 'package'))
})
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close()
})

function makePackage(folder: string): void {
  mkdirSync(join(folder, 'skyhook_dir'), { recursive: true })
  writeFileSync(join(folder, 'config.json'), '{}')
  writeFileSync(join(folder, 'skyhook_dir/apply.sh'), '#!/bin/sh\n')
  chmodSync(join(folder, 'skyhook_dir/apply.sh'), 0o755)
  symlinkSync('apply.sh', join(folder, 'skyhook_dir/link'))
}

async function layerOf(folder: string, name: string): Promise<BuiltLayer> {
  return await writeLayer(await readFolder(folder, 'skyhook-package'), join(tempDir, name))
}

async function registry(
  login?: FakeLogin,
  noProgressMs?: number,
): Promise<{ fake: FakeRegistry; client: RegistryClient }> {
  const fake = await startFakeRegistry(login && { login })
  const { username, password } = fakeLogin
  const credentials = parseDockerConfig(JSON.stringify({ auths: { [fake.host]: { username, password } } }), 'test')
  const client = createRegistryClient(
    {
      credentials,
      sources: fakeSources([{ host: fake.host, plainHTTP: true }]),
      ...(noProgressMs !== undefined && { noProgressMs }),
    },
    systemPorts,
  )
  opened.push(client, fake)
  return { fake, client }
}

describe('a layer', () => {
  test('a layer has the same bytes for the same content, whatever order and time', async () => {
    const first = await layerOf(join(tempDir, 'package'), 'first')
    makePackage(join(tempDir, 'again'))
    utimesSync(join(tempDir, 'again/config.json'), 0, 12345)
    const reversed = (await readFolder(join(tempDir, 'again'), 'skyhook-package')).reverse()
    expect((await writeLayer(reversed, join(tempDir, 'second'))).descriptor).toEqual(first.descriptor)
    writeFileSync(join(tempDir, 'again/config.json'), '{ }')
    expect((await layerOf(join(tempDir, 'again'), 'third')).descriptor.digest).not.toBe(first.descriptor.digest)
  })

  test('a layer unpacks to the folder it was made from', async () => {
    const { file } = await layerOf(join(tempDir, 'package'), 'layer')
    expect(await unpackPackage({ layers: [file], target: join(tempDir, 'target') })).toEqual({
      entries: 5,
      bytes: 2 + 10,
    })
    expect(await readFolder(join(tempDir, 'target'), '')).toMatchObject(
      (await readFolder(join(tempDir, 'package'), '')).map(({ path, kind }) => ({ path, kind })),
    )
  })

  test('a device in the folder of a layer is an error', async () => {
    await expect(readFolder('/dev', '')).rejects.toThrow(/neither file, folder nor link/)
  })

  test('a file that vanishes or changes during the writing is an error', async () => {
    const entries = await readFolder(join(tempDir, 'package'), '')
    writeFileSync(join(tempDir, 'package/config.json'), 'longer than it was')
    await expect(writeLayer(entries, join(tempDir, 'layer'))).rejects.toThrow(/Size mismatch/)
    rmSync(join(tempDir, 'package/config.json'))
    await expect(writeLayer(entries, join(tempDir, 'layer'))).rejects.toThrow(/ENOENT/)
  })
})

describe('a layout', () => {
  const images = async () => [
    buildImage([await layerOf(join(tempDir, 'package'), 'layer')], {
      architecture: 'amd64',
      entrypoint: ['/x'],
      labels: { a: 'b' },
    }),
  ]

  test('an image archive names every blob by its digest and the image by its reference', async () => {
    await writeLayoutArchive(join(tempDir, 'layout.tar'), await images(), 'r.example/team/pkg:1.2')
    const files = await readArchive(join(tempDir, 'layout.tar'))
    const read = (path: string) => JSON.parse(files.get(path) ?? '') as Record<string, never>
    expect([...files.keys()].slice(0, 2)).toEqual(['oci-layout', 'index.json'])
    expect(files.size).toBe(5)
    expect(read('oci-layout')).toEqual({ imageLayoutVersion: '1.0.0' })
    const [root] = read('index.json')['manifests'] as unknown as [{ digest: string; annotations: object }]
    expect(root.annotations).toEqual({
      'io.containerd.image.name': 'r.example/team/pkg:1.2',
      'org.opencontainers.image.ref.name': '1.2',
    })
    const manifest = read(`blobs/sha256/${root.digest.slice(7)}`) as unknown as { config: { digest: string } }
    expect(read(`blobs/sha256/${manifest.config.digest.slice(7)}`)).toMatchObject({
      os: 'linux',
      config: { Entrypoint: ['/x'], Labels: { a: 'b' } },
    })
  })

  async function readArchive(file: string): Promise<Map<string, string>> {
    const archive = extract()
    createReadStream(file).pipe(archive as unknown as NodeJS.WritableStream)
    const files = new Map<string, string>()
    for await (const entry of archive)
      files.set(entry.header.name, await text(entry as unknown as AsyncIterable<Buffer>))
    return files
  }
})

describe('a push', () => {
  test.each([undefined, fakeLogin, { ...fakeLogin, kind: 'basic' as const }])(
    'a pushed image can be pulled (login: $kind)',
    async (login) => {
      const { fake, client } = await registry(login)
      const reference = parseReference(`${fake.host}/team/pkg:1.0`)
      const layer = await layerOf(join(tempDir, 'package'), 'layer')
      const digest = await pushImages(client, reference, [buildImage([layer], { architecture: 'amd64' })], signal)
      const resolved = await resolveImage(client, reference, signal)
      expect(resolved.digest).toBe(digest)
      const image = await selectImage(client, resolved, 'arm64', signal)
      mkdirSync(join(tempDir, 'pulled'))
      const [pulled] = await downloadLayers(client, reference, image.layers, join(tempDir, 'pulled'), signal)
      expect(readFileSync(pulled?.path ?? '')).toEqual(readFileSync(layer.file))
    },
  )

  test('a push sends only missing blobs, and the tag last', async () => {
    const { fake, client } = await registry()
    const reference = parseReference(`${fake.host}/pkg:1`)
    const layer = await layerOf(join(tempDir, 'package'), 'layer')
    await pushImages(client, reference, [buildImage([layer], { architecture: 'amd64' })], signal)
    fake.requests.length = 0
    await pushImages(
      client,
      reference,
      [buildImage([layer], { architecture: 'amd64', labels: { version: '2' } })],
      signal,
    )
    const puts = fake.requests.map(({ line }) => line.replace(/sha256.*/, '…')).filter((line) => line.startsWith('PUT'))
    expect(puts).toEqual(['PUT /v2/pkg/blobs/uploads/1?state=abc&digest=…', 'PUT /v2/pkg/manifests/1'])
  })

  test('a registry may be silent while it stores a blob that it has received', async () => {
    const { fake, client } = await registry(undefined, 200)
    let stored = 0
    fake.intercept = ({ method, url = '' }, response) => {
      if (method !== 'PUT' || !url.includes('/blobs/uploads/')) return false
      stored++
      setTimeout(() => response.writeHead(201).end(), stored === 2 ? 1_000 : 0)
      return true
    }
    const layer = await layerOf(join(tempDir, 'package'), 'layer')
    const reference = parseReference(`${fake.host}/pkg:1`)
    await pushImages(client, reference, [buildImage([layer], { architecture: 'amd64' })], signal)
    expect(stored).toBe(2) // the configuration and the layer, each sent once
  })

  test('a push logs in once for reading and once for writing', async () => {
    const { fake, client } = await registry(fakeLogin)
    const reference = parseReference(`${fake.host}/pkg:1`)
    await pushImages(
      client,
      reference,
      [buildImage([await layerOf(join(tempDir, 'package'), 'layer')], { architecture: 'amd64' })],
      signal,
    )
    expect(fake.requests.filter(({ line }) => line.startsWith('GET /token'))).toHaveLength(2)
  })

  test('a push of several architectures creates an index over them', async () => {
    const { fake, client } = await registry()
    const reference = parseReference(`${fake.host}/pkg:1`)
    const layer = await layerOf(join(tempDir, 'package'), 'layer')
    const images = ['amd64', 'arm64'].map((architecture) => buildImage([layer], { architecture }))
    const digest = await pushImages(client, reference, images, signal)
    const resolved = await resolveImage(client, reference, signal)
    expect(resolved).toMatchObject({ digest, manifest: { kind: 'index' } })
    expect((await selectImage(client, resolved, 'arm64', signal)).manifestDigest).toBe(
      images[1]?.manifest.descriptor.digest,
    )
  })

  test('a push without a tag or refused by the registry is an error', async () => {
    const { fake, client } = await registry()
    const images = [buildImage([await layerOf(join(tempDir, 'package'), 'layer')], { architecture: 'amd64' })]
    await expect(pushImages(client, parseReference(`${fake.host}/pkg`), images, signal)).rejects.toMatchObject({
      code: 'bad-reference',
    })
    fake.intercept = (request, response) => {
      if (request.method !== 'POST') return false
      response.writeHead(403).end('{"errors":[{"code":"DENIED","message":"read only"}]}')
      return true
    }
    await expect(pushImages(client, parseReference(`${fake.host}/pkg:1`), images, signal)).rejects.toMatchObject({
      code: 'denied',
      message: expect.stringMatching(/DENIED: read only/),
    })
  })

  test('a push does not show the login to another upload host', async () => {
    const { fake, client } = await registry(fakeLogin)
    const storage = await registry()
    fake.intercept = (request, response) => {
      if (request.method !== 'POST' || request.headers.authorization === undefined) return false
      response.writeHead(202, { location: `http://${storage.fake.host}/elsewhere?x=1` }).end()
      return true
    }
    storage.fake.intercept = (_request, response) => {
      response.writeHead(201).end()
      return true
    }
    await pushImages(
      client,
      parseReference(`${fake.host}/pkg:1`),
      [buildImage([await layerOf(join(tempDir, 'package'), 'layer')], { architecture: 'amd64' })],
      signal,
    )
    expect(storage.fake.requests.map(({ line, headers }) => [line.split('?')[0], headers.authorization])).toEqual([
      ['PUT /elsewhere', undefined],
      ['PUT /elsewhere', undefined],
    ])
  })
})
