import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock, systemRandom } from '../../src/daemon/platform/system-clock.ts'
import { createHostRoot } from '../../src/host/fs/host-root.ts'
import { parseDockerConfig } from '../../src/packages/oci/read/credentials.ts'
import { readFolder, writeLayer } from '../../src/packages/oci/write/layer.ts'
import { buildImage } from '../../src/packages/oci/write/layout.ts'
import { resolveImage } from '../../src/packages/oci/read/pull.ts'
import { pushImages } from '../../src/packages/oci/write/push.ts'
import { parseReference } from '../../src/packages/oci/reference.ts'
import { createRegistryClient, type RegistrySettings } from '../../src/packages/oci/read/registry.ts'
import { openImageStore, type StoredImage } from '../../src/packages/store/image-store.ts'
import { unpackInChild } from '../../src/packages/store/unpack-child.ts'
import { type DockerRegistry, startDockerRegistry } from './docker-registry.ts'

const run = promisify(execFile)
const repository = join(import.meta.dirname, '../..')
const signal = AbortSignal.timeout(120_000)
let registry: DockerRegistry
let tempFolder = ''

beforeAll(async () => {
  tempFolder = mkdtempSync(join(tmpdir(), 'registry-test-'))
  registry = await startDockerRegistry()
  mkdirSync(join(tempFolder, 'package/skyhook_dir'), { recursive: true })
  writeFileSync(join(tempFolder, 'package/config.json'), '{"schema_version":"v1"}')
  writeFileSync(join(tempFolder, 'package/skyhook_dir/apply.sh'), '#!/bin/sh\n')
  chmodSync(join(tempFolder, 'package/skyhook_dir/apply.sh'), 0o755)
})
afterAll(async () => {
  await registry.stop()
  rmSync(tempFolder, { recursive: true })
})

/** A host whose containerd configuration has only the registry's authority. */
function hostKnowing(ca: string | undefined): RegistrySettings['sources'] {
  const host = mkdtempSync(join(tempFolder, 'host-'))
  if (ca !== undefined) {
    const certs = join(host, 'etc/containerd/certs.d', registry.host)
    mkdirSync(certs, { recursive: true })
    writeFileSync(join(certs, 'own.pem'), ca)
    writeFileSync(
      join(certs, 'hosts.toml'),
      `server = "https://${registry.host}"\nca = "/etc/containerd/certs.d/${registry.host}/own.pem"\n`,
    )
  }
  return { files: createHostRoot(host, systemRandom), certsDirectory: '/etc/containerd/certs.d', rules: [] }
}

function settings(
  login: { username: string; password: string } | undefined = registry,
  ca: string | undefined = registry.ca,
): RegistrySettings {
  const auth = login && Buffer.from(`${login.username}:${login.password}`).toString('base64')
  const credentials =
    auth === undefined ? [] : parseDockerConfig(JSON.stringify({ auths: { [registry.host]: { auth } } }), 'test')
  return { credentials, sources: hostKnowing(ca) }
}

const source = new URL('../../src/packages/store/unpack-child.ts', import.meta.url).href
const clockModule = new URL('../../src/daemon/platform/system-clock.ts', import.meta.url).href
const command: [string, ...string[]] = [
  process.execPath,
  '-e',
  `Promise.all([import(${JSON.stringify(source)}), import(${JSON.stringify(clockModule)})]).then(
    ([child, { systemClock, systemRandom }]) => child.runUnpackChild({ clock: systemClock, random: systemRandom }))`,
]

const systemPorts = { clock: systemClock, random: systemRandom }

async function ensure(
  name: string,
  use: RegistrySettings = settings(),
  folder = mkdtempSync(join(tempFolder, 'images-')),
): Promise<StoredImage> {
  const store = openImageStore(folder, {
    ...systemPorts,
    root: createHostRoot('/', systemRandom),
    unpack: (request, aborted) => unpackInChild(request, { signal: aborted, command }),
  })
  return await store.ensureImage(parseReference(`${registry.host}/${name}`), { registry: use, signal })
}

async function push(name: string, folder = join(tempFolder, 'package')): Promise<string> {
  const env = {
    ...process.env,
    REGISTRY: registry.host,
    REGISTRY_USER: registry.username,
    REGISTRY_PASSWORD: registry.password,
    REGISTRY_CA: registry.caFile,
  }
  const { stdout } = await run(process.execPath, [join(repository, 'test/sandbox/push.ts'), folder, name], { env })
  return stdout.trim()
}

describe('a registry with TLS and login', () => {
  test('a registry with TLS and login accepts a package folder and serves it to a host', async () => {
    const reference = await push('team/shell:1.0')
    expect(reference).toMatch(new RegExp(`^${registry.host}/team/shell@sha256:[0-9a-f]{64}$`))
    expect(await push('team/shell:1.1')).toBe(reference) // the same content has the same digest
    const folder = mkdtempSync(join(tempFolder, 'images-'))
    const image = await ensure('team/shell:1.0', settings(), folder)
    expect(reference.endsWith(`@${image.digest}`)).toBe(true)
    expect(readFileSync(join(image.path, 'config.json'), 'utf8')).toBe('{"schema_version":"v1"}')
    expect(statSync(join(image.path, 'skyhook_dir/apply.sh')).mode & 0o777).toBe(0o755)
    expect(await ensure('team/shell:1.1', settings(), folder)).toEqual({ ...image, isNew: false })
    expect(await ensure(`team/shell@${image.digest}`, settings(undefined, undefined), folder)).toEqual({
      ...image,
      isNew: false,
    })
  })

  test('a registry with TLS and login accepts an index of two architectures', async () => {
    const layer = await writeLayer(
      await readFolder(join(tempFolder, 'package'), 'skyhook-package'),
      join(tempFolder, 'layer'),
    )
    const images = ['amd64', 'arm64'].map((architecture) => buildImage([layer], { architecture }))
    const client = createRegistryClient(settings(), systemPorts)
    try {
      const digest = await pushImages(client, parseReference(`${registry.host}/multi:1`), images, signal)
      expect(await ensure('multi:1')).toMatchObject({ digest, isNew: true })
    } finally {
      client.close()
    }
  })

  test.each<[string, () => Promise<unknown>, string, RegExp]>([
    ['an unknown tag', () => ensure('team/shell:9'), 'not-found', /MANIFEST_UNKNOWN: manifest unknown/],
    ['an unknown repository', () => ensure('nobody/has:1'), 'not-found', /MANIFEST_UNKNOWN/],
    ['an unknown digest', () => ensure(`team/shell@sha256:${'0'.repeat(64)}`), 'not-found', /MANIFEST_UNKNOWN/],
    [
      'missing credentials',
      () => ensure('team/shell:1.0', { ...settings(), credentials: [] }),
      'unauthorized',
      /UNAUTHORIZED: authentication required.*no pull secret matches/,
    ],
    [
      'a wrong password',
      () => ensure('team/shell:1.0', settings({ username: 'tester', password: 'x' })),
      'unauthorized',
      /UNAUTHORIZED.*the login of a pull secret/,
    ],
    [
      'an unknown certificate authority',
      () => ensure('team/shell:1.0', { ...settings(), sources: hostKnowing(undefined) }),
      'tls',
      /self-signed|unable to (?:get|verify)/,
    ],
  ])('the error of the registry describes %s', async (_name, attempt, code, words) => {
    await push('team/shell:1.0')
    await expect(attempt()).rejects.toMatchObject({ code, message: expect.stringMatching(words) })
  })

  test('the digest reveals that the disk of the registry is corrupt', async () => {
    writeFileSync(join(tempFolder, 'package/rot'), 'a file of this test alone')
    await push('rot:1')
    rmSync(join(tempFolder, 'package/rot'))
    const client = createRegistryClient(settings(), systemPorts)
    try {
      const manifest = await resolveImage(client, parseReference(`${registry.host}/rot:1`), signal)
      const [layer] = manifest.manifest.kind === 'image' ? manifest.manifest.layers : []
      const blob = registry.blobFile(layer?.digest ?? '')
      const bytes = readFileSync(blob)
      bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1)
      writeFileSync(blob, bytes)
    } finally {
      client.close()
    }
    await expect(ensure('rot:1')).rejects.toMatchObject({ code: 'digest-mismatch' })
  })
})
