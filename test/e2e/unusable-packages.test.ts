/**
 * Mistakes that keep work from beginning: each shows its reason on the Node within ten seconds, holds no slot, leaves
 * nothing on the host, and ends when it is corrected.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { EnvVar, PackageSpec } from '../../src/schemas/skyhook.ts'
import { fixturePackages, nodeNames, uniqueName, useCluster, type NodeName } from '../kit/cluster/cluster.ts'
import { failureScene, packagesIn, type Scene, startUnit } from './failure-scene.ts'
import { ignoreNotFound, patch } from '../kit/cluster/kube.ts'
import type { View } from '../kit/cluster/moments.ts'
import { isCompleteOn } from '../kit/cluster/node-availability.ts'
import { type OnTestFinished, claimNodes } from '../kit/cluster/node-locks.ts'
import { refuseLogin } from './registry-login.ts'
import { manifest, publishedState, selectorLabel } from '../kit/cluster/skyhooks.ts'

const cluster = useCluster()
const { script, valid, image, push } = packagesIn(cluster)
const host = (node: NodeName) => cluster.host(node)
const scene = async (node: NodeName, onTestFinished: OnTestFinished): Promise<Scene> =>
  await failureScene(cluster, node, onTestFinished)
const objects = '/api/v1/namespaces/skyhook'
const copyDirRoot = '/var/lib/skyhook'
/** For how long the agent waits for an answer of a registry. */
const silenceMs = 30_000

/** What makes the package usable: an edit of it, or an act elsewhere. */
type Remedy = () => Promise<void>
type Unusable = {
  readonly title: string
  readonly reason: 'ImagePull' | 'InvalidPackage'
  readonly message: readonly string[]
  readonly spoil: (work: Scene, onTestFinished: OnTestFinished) => Promise<readonly [PackageSpec, Remedy]>
}

/** Corrected by an edit of the package. */
const edited =
  (wrong: () => PackageSpec, right: () => object = valid): Unusable['spoil'] =>
  async (work) =>
    await Promise.resolve([wrong(), async () => await work.edit(right())])

const unusable: readonly Unusable[] = [
  {
    title: 'a version that is not a tag of the image',
    reason: 'ImagePull',
    message: ['package work: ', 'shellscript:9.9.9', 'manifest unknown', 'Check that the version is a tag of this'],
    spoil: edited(
      () => script({}, { version: '9.9.9' }),
      () => ({ version: '1.1.0' }),
    ),
  },
  {
    title: 'a digest that the registry lacks',
    reason: 'ImagePull',
    message: [`shellscript@sha256:${'0'.repeat(64)}`, 'manifest unknown', 'Check that containerSHA is the digest'],
    spoil: edited(
      () => script({}, { containerSHA: `sha256:${'0'.repeat(64)}` }),
      () => ({ containerSHA: null }),
    ),
  },
  {
    title: 'a registry that does not answer',
    reason: 'ImagePull',
    message: ['127.0.0.1:1', 'ECONNREFUSED'],
    spoil: edited(() => ({ version: '1.0.0', image: '127.0.0.1:1/none' })),
  },
  {
    title: 'credentials that do not open the image',
    reason: 'ImagePull',
    message: ['UNAUTHORIZED'],
    async spoil({ name }, onTestFinished) {
      await push('shellscript', `test/${name}:1.0.0`)
      const correct = await refuseLogin(cluster, `${cluster.registry}/test/${name}`)
      onTestFinished(correct)
      return [image(`test/${name}`), correct]
    },
  },
  {
    title: 'an invalid config.json',
    reason: 'InvalidPackage',
    message: ['test/broken-config:1.0.0', 'config.json', '/modes/apply/0/returncodes'],
    spoil: edited(() => image('test/broken-config')),
  },
  {
    title: 'a step that is not in the image',
    reason: 'InvalidPackage',
    message: ['test/missing-step:1.0.0', 'forgotten.sh'],
    spoil: edited(() => image('test/missing-step')),
  },
  {
    title: 'a step without an interpreter, until it is pushed again under its version',
    reason: 'InvalidPackage',
    message: [':1.0.0: config.json /modes/apply/0/path = "apply.sh": starts with neither #! nor an ELF header'],
    async spoil({ name }) {
      await push('missing-first-line', `test/${name}:1.0.0`)
      return [image(`test/${name}`), async () => void (await push('shellscript', `test/${name}:1.0.0`))]
    },
  },
  {
    title: 'a layer that the registry has altered',
    reason: 'ImagePull',
    message: ['package work: ', ':1.0.0', 'serves content that does not match the digest'],
    async spoil({ name }) {
      const folder = mkdtempSync(join(tmpdir(), 'altered-'))
      cpSync(join(fixturePackages, 'shellscript'), folder, { recursive: true })
      writeFileSync(join(folder, 'unlike-any-other'), name) // registries store equal layers once
      const reference = (await cluster.sandbox.must(['push', folder, `test/${name}:1.0.0`])).trim()
      rmSync(folder, { recursive: true })
      const { layers } = JSON.parse(readFileSync(blobFile(reference.split('@')[1]), 'utf8')) as {
        readonly layers: readonly [{ readonly digest: string }]
      }
      const layer = blobFile(layers[0].digest)
      const right = readFileSync(layer)
      writeFileSync(layer, Buffer.alloc(right.length, 'x'))
      return [image(`test/${name}`), async () => await Promise.resolve(writeFileSync(layer, right))]
    },
  },
]

/** The registry's file of a blob. */
function blobFile(digest = ''): string {
  const hex = digest.replace('sha256:', '')
  const blobs = join(cluster.sandbox.folder, 'control-plane/registry/data/docker/registry/v2/blobs/sha256')
  return join(blobs, hex.slice(0, 2), hex, 'data')
}

describe.concurrent('work that cannot begin', () => {
  test.for(unusable)(
    '$title is shown, takes no slot, leaves nothing on the host, and ends once corrected',
    async ({ reason, message, spoil }, { onTestFinished, expect }) => {
      const work = await scene('node-1', onTestFinished)
      const [wrong, correct] = await spoil(work, onTestFinished)
      await work.apply(wrong)
      const { status } = await work.shows(reason, ...message)
      expect(status).toBe(reason === 'ImagePull' ? 'waiting' : 'erroring')
      await work.heldNoSlot()
      expect(await host(work.node).exists(join(copyDirRoot, work.name))).toBe(false)
      await correct()
      expect(await work.ends()).toEqual([reason])
    },
  )

  test('a registry that accepts connections and stays silent is shown with its address and takes no slot', async ({
    onTestFinished,
  }) => {
    const work = await scene('node-3', onTestFinished)
    const listen = ['socat', '-u', 'TCP-LISTEN:5998,fork', 'OPEN:/dev/null']
    await startUnit(cluster, work.node, `${work.name}-registry`, onTestFinished, ...listen)
    await work.apply({ version: '1.0.0', image: '127.0.0.1:5998/silent' })
    await work.shows('Preparing')
    const isNamed = ({ nodes }: View): boolean => {
      const { reason } = publishedState(nodes.get(work.node), work.name)
      return reason?.reason === 'ImagePull' && reason.message.includes('127.0.0.1:5998')
    }
    await cluster.history.eventually('the silence is the reason', isNamed, 3 * silenceMs)
    await work.heldNoSlot()
    await work.edit(script({}))
    expect(await work.ends()).toEqual(['ImagePull'])
  })

  const withEnv = (valueFrom: EnvVar['valueFrom']): PackageSpec =>
    script({ apply: 'test "$WORD" = right' }, { env: [{ name: 'WORD', valueFrom }] as EnvVar[] })
  const create = async (path: string, name: string, content: object, onTestFinished: OnTestFinished) => {
    onTestFinished(async () => void (await ignoreNotFound(cluster.api, 'DELETE', `${path}/${name}`)))
    await cluster.api.json('POST', path, { body: { metadata: { name }, ...content } })
  }

  test('a value from a missing Secret, then from a missing key, is named and retried until it exists', async ({
    onTestFinished,
  }) => {
    const work = await scene('node-3', onTestFinished)
    const secrets = `${objects}/secrets`
    await work.apply(withEnv({ secretKeyRef: { name: work.name, key: 'word' } }))
    const { status, message } = await work.shows('ReferenceMissing')
    expect(status).toBe('waiting')
    expect(message).toBe(
      `package work: env WORD needs Secret skyhook/${work.name}, which does not exist: create what is missing, or ` +
        "mark the reference optional in the package's env",
    )
    await work.heldNoSlot()
    await create(secrets, work.name, { stringData: { other: 'x' } }, onTestFinished)
    const missing = `env WORD needs key "word" of Secret skyhook/${work.name}, which has no such key`
    await cluster.history.eventually(
      'the key is named',
      ({ nodes }) => publishedState(nodes.get(work.node), work.name).reason?.message.includes(missing) === true,
    )
    await patch(cluster.api, `${secrets}/${work.name}`, { stringData: { word: 'right' } })
    expect(await work.ends()).toEqual(['ReferenceMissing'])
  })

  test('a value from a missing ConfigMap is named and retried until it exists', async ({ onTestFinished }) => {
    const work = await scene('node-2', onTestFinished)
    await work.apply(withEnv({ configMapKeyRef: { name: work.name, key: 'word' } }))
    await work.shows('ReferenceMissing', `env WORD needs ConfigMap skyhook/${work.name}, which does not exist`)
    await create(`${objects}/configmaps`, work.name, { data: { word: 'right' } }, onTestFinished)
    expect(await work.ends()).toEqual(['ReferenceMissing'])
  })

  test('a package that lacks a variable and a file names both before a slot is asked for', async ({
    onTestFinished,
  }) => {
    const work = await scene('node-2', onTestFinished)
    await work.apply(image('test/wants-settings'))
    const lacksFile = 'package work: its configMap lacks settings.conf, which the package expects'
    const { message } = await work.shows('InvalidSpec')
    expect(message).toBe(`${lacksFile}; its env lacks SITE, which arguments of its steps name`)
    await work.heldNoSlot()
    await work.edit({ env: [{ name: 'SITE', value: 'north' }] })
    await cluster.history.eventually(
      'the reason names the file alone',
      ({ nodes }) => publishedState(nodes.get(work.node), work.name).reason?.message === lacksFile,
    )
    await work.edit({ configMap: { 'settings.conf': 'yes' } })
    expect(await work.ends()).toEqual(['InvalidSpec'])
  })

  test('a dependency cycle blocks only its Skyhook, before anything is fetched', async ({ onTestFinished }) => {
    const work = await scene('node-2', onTestFinished)
    const from = (dependency: string): PackageSpec => script({}, { dependsOn: { [dependency]: '1.1.0' } })
    await cluster.apply(
      manifest(work.name, { packages: { one: from('three'), two: from('one'), three: from('two') } }),
      work.node,
    )
    const { status, message } = await work.shows('InvalidSpec')
    expect(status).toBe('blocked')
    expect(message).toBe('packages.one.dependsOn: cycle one -> three -> two -> one; remove one of these dependencies')
    const other = uniqueName('beside')
    onTestFinished(async () => await cluster.remove(other))
    await cluster.apply(manifest(other, { packages: { work: valid() } }), work.node)
    await cluster.history.eventually('the other is complete', (view) => isCompleteOn(view, other, [work.node]))
    const labels = { [selectorLabel]: work.name }
    await patch(cluster.api, `/api/v1/nodes/${work.node}`, { metadata: { labels } })
    await cluster.edit(work.name, { packages: { one: { dependsOn: null } } })
    expect(await work.ends()).toEqual(['InvalidSpec'])
  })
})

test('a wrong version takes no node out of service: all three wait, and continue once it is corrected', async ({
  onTestFinished,
}) => {
  const name = await claimNodes(cluster, onTestFinished, 'typo', ...nodeNames)
  const packages = { work: script({}, { version: '1.1.9' }) }
  await cluster.apply(manifest(name, { interruptionBudget: { count: 1 }, packages }), ...nodeNames)
  const isOnAll = (status: string, reason: string | undefined) => (view: View) =>
    nodeNames.every((node) => {
      const published = publishedState(view.nodes.get(node), name)
      return published.status === status && published.reason?.reason === reason
    })
  await cluster.history.eventually('all wait', isOnAll('waiting', 'ImagePull'))
  await cluster.edit(name, { packages: { work: { version: '1.1.0' } } })
  await cluster.history.eventually('all are complete', isOnAll('complete', undefined))
})
