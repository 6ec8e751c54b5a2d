/**
 * Mistakes in a Skyhook that appear only at work: the Node names each with its place and remedy, and correcting it is
 * enough.
 */
import { release } from 'node:os'
import { describe, expect, onTestFinished, test } from 'vitest'
import { hostKey } from '../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import type { EnvVar, PackageSpec } from '../../src/schemas/skyhook.ts'
import { uniqueName, useCluster, type NodeName } from './cluster.ts'
import { patch, ignoreNotFound } from './kube.ts'
import type { View } from './moments.ts'
import { lockNodes, type OnTestFinished } from './node-locks.ts'
import { isCompleteOn } from './node-availability.ts'
import { manifest, shellscript, publishedState, type PublishedState } from './skyhooks.ts'
import { slotsOf } from './slots.ts'

const cluster = useCluster()
const secrets = '/api/v1/namespaces/skyhook/secrets'
const configMaps = '/api/v1/namespaces/skyhook/configmaps'
/** Longer than the first two pauses between attempts. */
const retriedMs = 30_000

async function apply(
  packages: Record<string, PackageSpec>,
  node: NodeName,
  onTestFinished: OnTestFinished,
): Promise<string> {
  const name = uniqueName('mistake')
  onTestFinished(async () => await cluster.remove(name))
  await cluster.apply(manifest(name, { interruptionBudget: { count: 1 }, packages }), node)
  return name
}

/** The published state once it has this reason. */
async function expectReported(
  node: NodeName,
  name: string,
  reason: string,
  ...fragments: readonly string[]
): Promise<PublishedState> {
  const now = (): PublishedState => publishedState(cluster.history.now.nodes.get(node), name)
  await cluster.history.eventually(`the reason of ${name} is ${reason} with ${fragments.join(', ')}`, () => {
    const published = now().reason
    return published?.reason === reason && fragments.every((word) => published.message.includes(word))
  })
  return now()
}

const completes = async (node: NodeName, name: string): Promise<void> => {
  await cluster.history.eventually('it is complete', (view) => isCompleteOn(view, name, [node]), retriedMs)
}

/** Creates an object in the agents' namespace and deletes it with the test. */
async function create(path: string, name: string, content: object, onTestFinished: OnTestFinished): Promise<void> {
  onTestFinished(async () => void (await ignoreNotFound(cluster.api, 'DELETE', `${path}/${name}`)))
  await cluster.api.json('POST', path, { body: { metadata: { name }, ...content } })
}

const withEnv = (env: readonly EnvVar[]): PackageSpec =>
  shellscript(cluster.registry, { apply: 'test "$WORD" = right' }, { env })

describe.concurrent('a value', () => {
  test('a value from a missing Secret, then from a missing key, is named and retried until it exists', async ({
    onTestFinished,
  }) => {
    const node = 'node-1'
    await lockNodes(onTestFinished, node)
    const secret = uniqueName('words')
    const work = withEnv([{ name: 'WORD', valueFrom: { secretKeyRef: { name: secret, key: 'word' } } }])
    const name = await apply({ work }, node, onTestFinished)
    expect(await expectReported(node, name, 'ReferenceMissing')).toMatchObject({
      status: 'waiting',
      reason: {
        message:
          `package work: env WORD needs Secret skyhook/${secret}, which does not exist: create what is ` +
          `missing, or mark the reference optional in the package's env`,
      },
    })
    await cluster.history.never('a slot without work', (view) =>
      slotsOf(view, name).length > 0 ? 'a slot is held' : undefined,
    )
    await create(secrets, secret, { stringData: { other: 'x' } }, onTestFinished)
    await expectReported(
      node,
      name,
      'ReferenceMissing',
      `env WORD needs key "word" of Secret skyhook/${secret}, which has no such key`,
    )
    await patch(cluster.api, `${secrets}/${secret}`, { stringData: { word: 'right' } })
    await completes(node, name)
  })

  test('a value from a missing ConfigMap is named and retried until it exists', async ({ onTestFinished }) => {
    const node = 'node-2'
    await lockNodes(onTestFinished, node)
    const configMap = uniqueName('words')
    const work = withEnv([{ name: 'WORD', valueFrom: { configMapKeyRef: { name: configMap, key: 'word' } } }])
    const name = await apply({ work }, node, onTestFinished)
    const { reason } = await expectReported(node, name, 'ReferenceMissing')
    expect(reason?.message).toContain(
      `env WORD needs ConfigMap skyhook/${configMap}, which does not exist: create what is missing`,
    )
    await create(configMaps, configMap, { data: { word: 'right' } }, onTestFinished)
    await completes(node, name)
  })
})

describe.concurrent('a package', () => {
  const wanting = (more: Partial<PackageSpec>): PackageSpec => ({
    version: '1.0.0',
    image: `${cluster.registry}/test/wants-settings`,
    ...more,
  })

  test('a package that lacks a variable and a file names both before a slot is asked for', async ({
    onTestFinished,
  }) => {
    const node = 'node-3'
    await lockNodes(onTestFinished, node)
    const name = await apply({ work: wanting({}) }, node, onTestFinished)
    const { reason } = await expectReported(node, name, 'InvalidSpec')
    expect(reason?.message).toBe(
      'package work: its configMap lacks settings.conf, which the package expects; its env lacks SITE, which ' +
        'arguments of its steps name',
    )
    await cluster.history.never('a slot without work', (view) =>
      slotsOf(view, name).length > 0 ? 'a slot is held' : undefined,
    )
    await cluster.edit(name, { packages: { work: { env: [{ name: 'SITE', value: 'north' }] } } })
    await cluster.history.eventually('the reason names the file alone', () => {
      const message = publishedState(cluster.history.now.nodes.get(node), name).reason?.message
      return message === 'package work: its configMap lacks settings.conf, which the package expects'
    })
    await cluster.edit(name, { packages: { work: { configMap: { 'settings.conf': 'yes' } } } })
    await completes(node, name)
  })

  test('a dependency cycle blocks only its Skyhook, before anything is fetched', async ({ onTestFinished }) => {
    const node = 'node-1'
    await lockNodes(onTestFinished, node)
    const from = (more: Partial<PackageSpec>): PackageSpec => shellscript(cluster.registry, { apply: 'true' }, more)
    const packages = {
      one: from({ dependsOn: { three: '1.1.0' } }),
      two: from({ dependsOn: { one: '1.1.0' } }),
      three: from({ dependsOn: { two: '1.1.0' } }),
    }
    const name = await apply(packages, node, onTestFinished)
    expect(await expectReported(node, name, 'InvalidSpec')).toMatchObject({
      status: 'blocked',
      reason: { message: 'packages.one.dependsOn: cycle one -> three -> two -> one; remove one of these dependencies' },
    })
    const other = await apply({ work: from({}) }, node, onTestFinished)
    await patch(cluster.api, `/api/v1/nodes/${node}`, {
      metadata: { labels: { 'skyhook.nvidia.com/test-node': other } },
    })
    await completes(node, other)
    await patch(cluster.api, `/api/v1/nodes/${node}`, {
      metadata: { labels: { 'skyhook.nvidia.com/test-node': name } },
    })
    await cluster.edit(name, { packages: { one: { dependsOn: null } } })
    await completes(node, name)
  })
})

/** Ids of what the agent found on its host. */
function findingsOn(node: KubernetesNode | undefined): readonly string[] {
  const report = JSON.parse(node?.metadata.annotations?.[hostKey] ?? '{}') as { findings?: { id: string }[] }
  return (report.findings ?? []).map(({ id }) => id)
}

describe('a host', () => {
  const folder = '/var/lib/skyhook'
  const remount = (flag: string) => ({
    spoil: ['mount', '--options', `bind,${flag}`, folder, folder],
    mend: ['umount', '--lazy', folder],
  })

  test('a host is described on its Node, and control groups of the first version are a warning', async () => {
    const reportOf = ({ nodes }: View): string => nodes.get('node-1')?.metadata.annotations?.[hostKey] ?? '{}'
    await cluster.history.eventually('the report', (view) => reportOf(view) !== '{}')
    const report = JSON.parse(reportOf(cluster.history.now)) as { readonly cgroup: string }
    expect(report).toEqual({
      systemd: expect.stringMatching(/^\d{3}/) as string,
      bus: 'dbus.service',
      cgroup: expect.stringMatching(/^(hybrid|v1|v2)$/) as string,
      kernel: release(),
      container: 'systemd-nspawn',
      os: expect.stringContaining('Debian') as string,
      selinux: 'disabled',
      copyDirRoot: { fileSystem: expect.any(String) as string, flags: expect.stringContaining('rw') as string },
      findings: report.cgroup === 'v2' ? [] : [expect.objectContaining({ id: 'cgroup-v1', severity: 'warning' })],
    })
  })

  test.each<[string, string, { spoil: string[]; mend: string[] }, string]>([
    [
      'mounts the copy dir noexec',
      'noexec',
      remount('noexec'),
      `${folder} is on ${folder}, which the host mounts noexec: no step can be executed there. Mount it with ` +
        `exec, or set the chart's copyDirRoot to a folder where programs may run`,
    ],
    [
      'mounts the copy dir read-only',
      'read-only',
      remount('ro'),
      `files cannot be created in ${folder}, ${folder}/.agent (EROFS). Mount it read-write, or set copyDirRoot and ` +
        'agentLogRoot of the chart elsewhere',
    ],
    [
      'made the copy dir immutable',
      'immutable',
      { spoil: ['chattr', '+i', folder], mend: ['chattr', '-i', folder] },
      `files cannot be created in ${folder} (EPERM). Look for an immutable or append-only flag with lsattr -d, and ` +
        'remove it with chattr',
    ],
  ])('a host that %s says so before it takes a slot, and continues once that is mended', async (...row) => {
    const [, id, { spoil, mend }, message] = row
    const node = 'node-2'
    await lockNodes(onTestFinished, node)
    const host = cluster.host(node)
    let isSpoiled = true
    const mendOnce = async (): Promise<void> => {
      if (isSpoiled) await host.exec(...mend)
      isSpoiled = false
    }
    onTestFinished(mendOnce)
    await host.exec(...spoil)
    const name = await apply({ work: shellscript(cluster.registry, { apply: 'true' }) }, node, onTestFinished)
    const { status, reason } = await expectReported(node, name, 'HostUnusable')
    expect(status).toBe('blocked')
    expect(reason?.message).toBe(message)
    await cluster.history.eventually('the Node shows what was found', ({ nodes }) =>
      findingsOn(nodes.get(node)).includes(id),
    )
    await cluster.history.never('a slot without work', (view) =>
      slotsOf(view, name).length > 0 ? 'a slot is held' : undefined,
    )
    await mendOnce()
    await completes(node, name)
    await cluster.history.eventually(
      'the Node shows that it is mended',
      ({ nodes }) => !findingsOn(nodes.get(node)).includes(id),
    )
  })
})
