/**
 * Mistakes and failures that do not end by themselves: each shows its reason on the Node within ten seconds, ends when
 * its cause is corrected, and holds no slot while nothing has begun on the host.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { release, tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { hostKey } from '../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import type { EnvVar, PackageSpec } from '../../src/schemas/skyhook.ts'
import { fixturePackages, nodeNames, uniqueName, useCluster, type NodeName } from './cluster.ts'
import { failureScene, type Scene } from './failure-scene.ts'
import { ignoreNotFound, patch } from './kube.ts'
import type { View } from './moments.ts'
import { isCompleteOn } from './node-availability.ts'
import { lockNodes, type OnTestFinished } from './node-locks.ts'
import { refuseLogin } from './registry-login.ts'
import { manifest, publishedState, selectorLabel, shellscript, type Scripts } from './skyhooks.ts'

const cluster = useCluster()
const objects = '/api/v1/namespaces/skyhook'
const copyDirRoot = '/var/lib/skyhook'
/** For how long the agent waits for an answer of a registry. */
const silenceMs = 30_000
const scene = async (node: NodeName, onTestFinished: OnTestFinished): Promise<Scene> =>
  await failureScene(cluster, node, onTestFinished)
const script = (scripts: Scripts, more: Partial<PackageSpec> = {}): PackageSpec =>
  shellscript(cluster.registry, scripts, more)
const valid = (): PackageSpec => script({ apply: 'true' })
const image = (repository: string): PackageSpec => ({ version: '1.0.0', image: `${cluster.registry}/${repository}` })
const host = (node: NodeName) => cluster.host(node)
const push = async (folder: string, to: string): Promise<string> =>
  await cluster.sandbox.must(['push', join(fixturePackages, folder), to])

/** A unit on the host until the test ends. */
async function start(node: NodeName, unit: string, onTestFinished: OnTestFinished, ...command: string[]) {
  await host(node).exec('systemd-run', '--quiet', `--unit=${unit}`, ...command)
  const stop = async (): Promise<void> => {
    await host(node).exec('sh', '-c', `systemctl stop ${unit} || true`)
  }
  onTestFinished(stop)
  return stop
}

beforeAll(async () => {
  await push('absent-interpreter', 'test/absent-interpreter:1.0.0')
})

describe.concurrent('work that fails for ever', () => {
  test('a step that exits with another code shows it, keeps its slot, and ends when its script is corrected', async ({
    onTestFinished,
  }) => {
    const work = await scene('node-1', onTestFinished)
    await work.apply(script({ apply: 'echo "no such device" >&2; exit 3' }))
    await work.shows('StepFailed', 'apply', 'exited 3', 'no such device')
    await work.showsAgain('StepFailed', 2)
    await work.holdsSlot()
    await work.edit({ configMap: { 'apply.sh': 'true' } })
    expect(await work.ends()).toEqual(['StepFailed'])
  })

  test('a step whose interpreter is not on the host shows both, and ends when it is installed', async ({
    onTestFinished,
  }) => {
    const work = await scene('node-1', onTestFinished)
    await work.apply(image('test/absent-interpreter'))
    await work.shows('StepFailed', 'apply.sh', '/opt/absent/bin/python3', 'not on this host')
    const install = 'mkdir -p /opt/absent/bin && ln -s /bin/sh /opt/absent/bin/python3'
    await host(work.node).exec('sh', '-c', install)
    onTestFinished(async () => void (await host(work.node).exec('rm', '-r', '/opt/absent')))
    expect(await work.ends()).toEqual(['StepFailed'])
  })

  test('a check that fails shows its output, keeps its slot, and ends when it is corrected', async ({
    onTestFinished,
  }) => {
    const work = await scene('node-1', onTestFinished)
    await work.apply(script({ config_check: 'echo "swap is on"; exit 1' }))
    await work.shows('CheckFailed', 'config-check', 'exited 1', 'swap is on')
    await work.showsAgain('CheckFailed', 2)
    await work.holdsSlot()
    await work.edit({ configMap: { 'config_check.sh': 'true' } })
    expect(await work.ends()).toEqual(['CheckFailed'])
  })

  test('an uninstall that fails shows its output, and ends when its script is corrected', async ({
    onTestFinished,
  }) => {
    const work = await scene('node-1', onTestFinished)
    await work.apply(script({ uninstall: 'echo "still mounted"; exit 32' }, { uninstall: { enabled: true } }))
    await work.ends()
    await work.edit({ uninstall: { enabled: true, apply: true } })
    await work.shows('StepFailed', 'uninstall', 'exited 32', 'still mounted')
    await work.edit({ configMap: { 'uninstall.sh': 'true' } })
    expect(await work.ends()).toEqual(['StepFailed'])
  })

  test('an uninstall of a removed package that fails shows its output, and ends when the package is put back', async ({
    onTestFinished,
  }) => {
    const work = await scene('node-3', onTestFinished)
    const installed = script({ uninstall: 'echo "still mounted"; exit 32' })
    await work.apply(installed)
    await work.ends()
    await cluster.edit(work.name, { packages: { work: null, other: script({}) } })
    await work.shows('StepFailed', 'uninstall', 'exited 32', 'still mounted')
    await work.edit(installed)
    expect(await work.ends()).toEqual(['StepFailed'])
  })

  test('a reboot that an inhibitor blocks shows who blocks it, and happens once when the lock is released', async ({
    onTestFinished,
  }) => {
    const work = await scene('node-2', onTestFinished)
    const before = await host(work.node).bootId()
    const inhibit = ['systemd-inhibit', '--what=shutdown', '--who=backup', '--why=writing', 'sleep', 'infinity']
    const unlock = await start(work.node, `${work.name}-inhibitor`, onTestFinished, ...inhibit)
    await work.apply(script({}, { interrupt: { type: 'reboot' } }))
    await work.shows('RebootRefused', 'backup', 'writing')
    await work.showsAgain('RebootRefused', 3) // the limit of reboots that happened
    await work.holdsSlot()
    await unlock()
    expect(await work.ends()).toEqual(['RebootRefused'])
    await cluster.history.eventually(
      'the reboot is counted',
      ({ nodes }) => nodes.get(work.node)?.status?.nodeInfo?.bootID !== before,
    )
  })
})

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
    message: [':1.0.0: config.json /modes/apply/0/path = "apply.sh": begins with neither #! nor an ELF header'],
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
    await start(work.node, `${work.name}-registry`, onTestFinished, ...listen)
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
      `package work: env WORD needs Secret skyhook/${work.name}, which does not exist: create what is missing, or mark ` +
        "the reference optional in the package's env",
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

/** Ids of what the agent found on its host. */
function findingsOn(node: KubernetesNode | undefined): readonly string[] {
  const report = JSON.parse(node?.metadata.annotations?.[hostKey] ?? '{}') as { findings?: { id: string }[] }
  return (report.findings ?? []).map(({ id }) => id)
}

describe('a host', () => {
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

  const remounted = (flag: string): Pick<Spoiled, 'spoil' | 'mend'> => ({
    spoil: (folder) => `mount --options bind,${flag} ${folder} ${folder}`,
    mend: (folder) => `umount --lazy ${folder}`,
  })
  const frozen: Pick<Spoiled, 'spoil' | 'mend'> = {
    spoil: (folder) => `mkdir -p ${folder} && chattr +i ${folder}`,
    mend: (folder) => `chattr -i ${folder}`,
  }
  type Spoiled = {
    readonly what: string
    readonly folder?: (name: string) => string
    readonly spoil: (folder: string) => string
    readonly mend: (folder: string) => string
    /** Of the agent's report. */
    readonly finding?: string
    readonly message: string
    /** It shows only when the first files are written. */
    readonly takesSlot?: true
  }
  const spoiled: readonly Spoiled[] = [
    {
      what: 'mounts the copy dir noexec',
      ...remounted('noexec'),
      finding: 'noexec',
      message:
        `${copyDirRoot} is on ${copyDirRoot}, which the host mounts noexec: no step can be executed there. Mount it ` +
        "with exec, or set the chart's copyDirRoot to a folder where programs may run",
    },
    {
      what: 'mounts the copy dir read-only',
      ...remounted('ro'),
      finding: 'read-only',
      message:
        `files cannot be created in ${copyDirRoot}, ${copyDirRoot}/.agent (EROFS). Mount it read-write, or set ` +
        'copyDirRoot and agentLogRoot of the chart elsewhere',
    },
    {
      what: 'mounts the copy dir read-only in all mount namespaces',
      // a bind mount takes the flags of its source along to other namespaces, a remount does not
      spoil: (folder) =>
        `mkdir -p /run/source && mount --bind ${folder} /run/source && mount -o remount,bind,ro /run/source && ` +
        `mount --bind /run/source ${folder}`,
      mend: (folder) => `umount --lazy ${folder} /run/source`,
      message: 'EROFS: read-only file system',
    },
    {
      what: 'made the copy dir immutable',
      ...frozen,
      finding: 'immutable',
      message:
        `files cannot be created in ${copyDirRoot} (EPERM). Look for an immutable or append-only flag with lsattr -d, ` +
        'and remove it with chattr',
    },
    {
      what: 'made the folder of the Skyhook immutable',
      takesSlot: true,
      folder: (name) => join(copyDirRoot, name),
      ...frozen,
      message: copyDirRoot,
    },
  ]

  test.for(spoiled)(
    'a host that $what says so, and continues once that is mended',
    async ({ folder = () => copyDirRoot, spoil, mend, finding, message, takesSlot }, { onTestFinished, expect }) => {
      const work = await scene('node-2', onTestFinished)
      const place = folder(work.name)
      let isSpoiled = true
      const mendOnce = async (): Promise<void> => {
        if (isSpoiled) await host(work.node).exec('sh', '-c', mend(place))
        isSpoiled = false
      }
      onTestFinished(mendOnce)
      await host(work.node).exec('sh', '-c', spoil(place))
      await work.apply(valid())
      const { status } = await work.shows('HostUnusable', message)
      const shows = async (is: boolean): Promise<void> =>
        void (await cluster.history.eventually(
          `the Node ${is ? 'shows' : 'no longer shows'} what was found`,
          ({ nodes }) => finding === undefined || findingsOn(nodes.get(work.node)).includes(finding) === is,
        ))
      await shows(true)
      if (finding !== undefined) expect(status).toBe('blocked')
      if (takesSlot === undefined) await work.heldNoSlot()
      await mendOnce()
      expect(await work.ends()).toEqual(['HostUnusable'])
      await shows(false)
    },
  )
})

test('a wrong version takes no node out of service: all three wait, and continue once it is corrected', async ({
  onTestFinished,
}) => {
  await lockNodes(onTestFinished, ...nodeNames)
  const name = uniqueName('typo')
  onTestFinished(async () => await cluster.remove(name))
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
