/** Unusable packages are detected before anything is disrupted: each says why on the Node, and none takes a slot. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { PackageSpec } from '../../src/schemas/skyhook.ts'
import { fixturePackages, nodeNames, uniqueName, useCluster } from './cluster.ts'
import { patch, ignoreNotFound } from './kube.ts'
import { manifest, shellscript, publishedState } from './skyhooks.ts'
import { slotsOf } from './slots.ts'

const cluster = useCluster()
const node = 'node-3'
const pullSecret = '/api/v1/namespaces/skyhook/secrets/registry'
const absentDigest = `sha256:${'0'.repeat(64)}`
let name: string

const validPackage = (more: Partial<PackageSpec> = {}): PackageSpec =>
  shellscript(cluster.registry, { apply: 'true' }, more)
const from = (image: string): PackageSpec => ({ version: '1.0.0', image: `${cluster.registry}/${image}` })

/**
 * Applies the package and returns the reason on the Node, after checking that no slot was held and nothing reached the
 * host.
 */
async function reasonFor(work: PackageSpec): Promise<{ reason: string; message: string; status: string | undefined }> {
  name = uniqueName('unusable')
  await cluster.apply(manifest(name, { interruptionBudget: { count: 1 }, packages: { work } }), node)
  await cluster.history.eventually('the node shows a reason', ({ nodes }) => {
    const { reason } = publishedState(nodes.get(node), name)
    return reason !== undefined && reason.reason !== 'Preparing'
  })
  await cluster.history.never('a slot without work', (view) =>
    slotsOf(view, name).length > 0 ? 'a slot is held' : undefined,
  )
  expect(await cluster.host(node).exists(`/var/lib/skyhook/${name}`)).toBe(false)
  const { reason, status } = publishedState(cluster.history.now.nodes.get(node), name)
  return { reason: reason?.reason ?? '', message: reason?.message ?? '', status }
}

const completes = async (): Promise<void> => {
  await cluster.history.eventually(
    'it is complete',
    ({ nodes }) => publishedState(nodes.get(node), name).status === 'complete',
    30_000,
  )
}

/** An edit of the package is enough. */
async function recoversAfter(edit: object): Promise<void> {
  await cluster.edit(name, { packages: { work: edit } })
  await completes()
}

const push = async (folder: string, image: string): Promise<unknown> =>
  await cluster.sandbox.must(['push', join(fixturePackages, folder), image])

/** The registry's file of a blob. */
const blob = (digest: string): string => {
  const hex = digest.replace('sha256:', '')
  return join(
    cluster.sandbox.folder,
    'control-plane/registry/data/docker/registry/v2/blobs/sha256',
    hex.slice(0, 2),
    hex,
    'data',
  )
}

afterEach(async () => await cluster.remove(name))

describe('a package', () => {
  test('a package whose version is not a tag of the image says so and completes once corrected', async () => {
    expect(await reasonFor(validPackage({ version: '9.9.9' }))).toEqual({
      reason: 'ImagePull',
      message: expect.stringMatching(
        /^package work: .*skyhook-packages\/shellscript:9\.9\.9.*manifest unknown.*Check that the version is a tag of this repository/is,
      ) as string,
      status: 'waiting',
    })
    await recoversAfter({ version: '1.1.0' })
  })

  test('a package whose digest the registry lacks says so and completes once corrected', async () => {
    expect(await reasonFor(validPackage({ containerSHA: absentDigest }))).toEqual({
      reason: 'ImagePull',
      message: expect.stringMatching(
        /shellscript@sha256:0{64}.*manifest unknown.*Check that containerSHA is the digest/is,
      ) as string,
      status: 'waiting',
    })
    await recoversAfter({ containerSHA: null })
  })

  test('a package whose registry does not answer says so and completes once corrected', async () => {
    expect(await reasonFor(validPackage({ image: '127.0.0.1:1/none' }))).toEqual({
      reason: 'ImagePull',
      message: expect.stringMatching(/127\.0\.0\.1:1.*(refused|ECONNREFUSED)/is) as string,
      status: 'waiting',
    })
    await recoversAfter(validPackage())
  })

  test('a package without credentials says so and completes once they exist', async () => {
    const secret = await ignoreNotFound<{ data: Record<string, string> }>(cluster.api, 'GET', pullSecret)
    const nobody = { auths: { 'registry.example.com': { auth: Buffer.from('nobody:nothing').toString('base64') } } }
    const put = async (text: string): Promise<unknown> =>
      await patch(cluster.api, pullSecret, { data: { '.dockerconfigjson': text } })
    await put(Buffer.from(JSON.stringify(nobody)).toString('base64'))
    try {
      expect(await reasonFor(validPackage({ version: '9.9.8' }))).toEqual({
        reason: 'ImagePull',
        message: expect.stringMatching(/unauthorized|authentication required/i) as string,
        status: 'waiting',
      })
    } finally {
      await put(secret?.data['.dockerconfigjson'] ?? '')
    }
    await recoversAfter({ version: '1.1.0' })
  })

  test('a package whose config.json is invalid says so and completes once corrected', async () => {
    expect(await reasonFor(from('test/broken-config'))).toEqual({
      reason: 'InvalidPackage',
      message: expect.stringMatching(
        /test\/broken-config:1\.0\.0.*config\.json.*\/modes\/apply\/0\/returncodes/s,
      ) as string,
      status: 'erroring',
    })
    await recoversAfter(validPackage())
  })

  test('a package with a missing step file says so and completes once corrected', async () => {
    expect(await reasonFor(from('test/missing-step'))).toEqual({
      reason: 'InvalidPackage',
      message: expect.stringMatching(/test\/missing-step:1\.0\.0.*forgotten\.sh/s) as string,
      status: 'erroring',
    })
    await recoversAfter(validPackage())
  })

  test('a package with a step without an interpreter says so and completes once it is pushed again under its version', async () => {
    const image = `test/${uniqueName('pushed-twice')}`
    await push('missing-first-line', `${image}:1.0.0`)
    expect(await reasonFor(from(image))).toEqual({
      reason: 'InvalidPackage',
      message: expect.stringMatching(
        /^package work: .*:1\.0\.0: config\.json \/modes\/apply\/0\/path = "apply\.sh": begins with neither #! nor an ELF header; .*#!\/bin\/bash$/s,
      ) as string,
      status: 'erroring',
    })
    await push('shellscript', `${image}:1.0.0`)
    await completes()
  })

  test('a package whose layer is corrupt in the registry says so and completes once it is restored', async () => {
    const image = `test/${uniqueName('altered')}`
    const folder = mkdtempSync(join(tmpdir(), 'altered-'))
    cpSync(join(fixturePackages, 'shellscript'), folder, { recursive: true })
    writeFileSync(join(folder, 'unlike-any-other'), image) // registries store equal layers once
    const manifestDigest = (await cluster.sandbox.must(['push', folder, `${image}:1.0.0`])).trim().split('@')[1] ?? ''
    rmSync(folder, { recursive: true })
    const { layers } = JSON.parse(readFileSync(blob(manifestDigest), 'utf8')) as {
      layers: { digest: string; size: number }[]
    }
    const layer = blob(layers[0]?.digest ?? '')
    const right = readFileSync(layer)
    writeFileSync(layer, Buffer.alloc(right.length, 'x'))
    expect(await reasonFor(from(image))).toEqual({
      reason: 'ImagePull',
      message: expect.stringMatching(
        /package work: .*:1\.0\.0.*sha256:[0-9a-f]{64}.*serves content that does not match the digest/s,
      ) as string,
      status: 'waiting',
    })
    writeFileSync(layer, right)
    await completes()
  })
})

describe('a wrong version', () => {
  test('a wrong version takes no node out of service: all three wait, and continue once it is corrected', async () => {
    name = uniqueName('typo')
    await cluster.apply(
      manifest(name, { interruptionBudget: { count: 1 }, packages: { work: validPackage({ version: '1.1.9' }) } }),
      ...nodeNames,
    )
    const all =
      (status: string) =>
      ({ nodes }: { nodes: typeof cluster.history.now.nodes }) =>
        nodeNames.every((one) => publishedState(nodes.get(one), name).status === status)
    await cluster.history.eventually('all wait', ({ nodes }) =>
      nodeNames.every((one) => publishedState(nodes.get(one), name).reason?.reason === 'ImagePull'),
    )
    expect(all('waiting')(cluster.history.now)).toBe(true)
    await cluster.edit(name, { packages: { work: { version: '1.1.0' } } })
    await cluster.history.eventually('all are complete', all('complete'))
  })
})
