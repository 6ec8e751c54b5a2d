/**
 * `kubectl skyhook explain` of what only real hosts, registries and controllers show, and that its commands help.
 * Simulated hosts show the rest: test/model/explain with what is printed, and
 * src/cli/reason/explain/explain-node.test.ts under reasons that are deleted, stale and wrong.
 */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ignoreLabel, pauseKey } from '../../src/schemas/annotations.ts'
import type { Interrupt, PackageSpec, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { fixturePackages, type NodeName, useCluster } from '../kit/cluster/cluster.ts'
import { explainedWithinMs, explainScene, type Expected, type ExplainScene } from './explain-scene.ts'
import { patch, paths } from '../kit/cluster/kube.ts'
import { isCompleteOn } from '../kit/cluster/node-availability.ts'
import type { OnTestFinished } from '../kit/cluster/node-locks.ts'
import { once, type Remedy, usePrintedRemedies } from './printed-remedy.ts'
import { refuseLogin } from './registry-login.ts'
import { shellscript, type Scripts } from '../kit/cluster/skyhooks.ts'

const cluster = useCluster()
const printed = usePrintedRemedies(cluster)
const scene = async (node: NodeName, onTestFinished: OnTestFinished): Promise<ExplainScene> =>
  await explainScene(cluster, onTestFinished, node)
const script = (scripts: Scripts, more: Partial<PackageSpec> = {}): PackageSpec =>
  shellscript(cluster.registry, scripts, more)
/** Of a row: what is done depends on the scene. */
type RowRemedy = Omit<Remedy, 'deed'> & {
  readonly deed?: (work: ExplainScene, onTestFinished: OnTestFinished) => Promise<unknown>
}
const interrupt: Interrupt = { type: 'service', services: ['foobar'] }
const interrupting = (): Record<string, PackageSpec> => ({ work: script({}, { interrupt }) })

test('several causes at once are named in order, and the command of each opens its gate', async ({
  onTestFinished,
}) => {
  const { name, node, apply, editNode, explained } = await scene('node-2', onTestFinished)
  const taints = [{ key: 'example.com/maintenance', effect: 'NoSchedule' }]
  const path = `${paths.nodes}/${node}`
  const label = (value: string | null) => ({ metadata: { labels: { [ignoreLabel]: value } } })
  await editNode({ ...label('true'), spec: { taints } }, { ...label(null), spec: { taints: null } })
  await apply({ interruptionBudget: { count: 0 } }, { [pauseKey]: 'true' })
  const seen: unknown[] = []
  for (let round = 0; round < 4; round++) {
    const { verdict, gates } = await explained()
    seen.push(gates.flatMap(({ findings }) => findings.map(({ cause }) => cause)))
    if (verdict?.cause === 'taint') {
      expect(verdict.unblock).toContain('remove the taint')
      await patch(cluster.api, path, { spec: { taints: null } })
    } else await printed.run(node, verdict?.command ?? '')
  }
  const inOrder = ['ignored', 'paused', 'taint', 'budget-zero']
  expect(seen).toEqual([0, 1, 2, 3].map((opened) => inOrder.slice(opened)))
  await cluster.history.eventually('it is complete', (view) => isCompleteOn(view, name, [node]), explainedWithinMs)
})

describe.concurrent('packages', () => {
  const works =
    (work: () => PackageSpec): (() => SkyhookSpec) =>
    () => ({ packages: { work: work() } })
  const image = { cause: 'image-pull', gate: 'package', command: /kubectl edit skyhook/ } as const
  const invalid = {
    cause: 'invalid-package',
    gate: 'package',
    unblock: /./,
    command: /skyhook validate .*:1\.0\.0/,
  } as const
  const logs = /skyhook logs .* --node node-\d --package work --stage/
  const from = (name: string) => works(() => ({ version: '1.0.0', image: `${cluster.registry}/${name}` }))
  const pushed = async (repository: string, work: ExplainScene): Promise<void> => {
    await cluster.sandbox.must(['push', join(fixturePackages, 'shellscript'), `${repository}:1.0.1`])
    await edited({ version: '1.0.1' })(work)
  }
  const createSecret = async (_work: ExplainScene, onTestFinished: OnTestFinished): Promise<void> => {
    const onSecret = async (...args: string[]) => await cluster.sandbox.kubectl(['-n', 'skyhook', ...args])
    onTestFinished(async () => void (await onSecret('delete', 'secret', 'no-such-secret')))
    await onSecret('create', 'secret', 'generic', 'no-such-secret', '--from-literal=word=a')
  }
  const noDigest = `sha256:${'0'.repeat(64)}`
  const secretKeyRef = { name: 'no-such-secret', key: 'word' }

  /** Of the package `work`. */
  const edited =
    (work: Partial<PackageSpec>) =>
    async ({ name }: ExplainScene): Promise<unknown> =>
      await cluster.edit(name, { packages: { work } })
  const rebuilt = 'uild a correct image under a new version'
  const fixed = 'fix the package or its configuration and apply it'

  test.for<[title: string, NodeName, () => SkyhookSpec, Omit<Expected, 'object'>, RowRemedy]>([
    [
      'an image whose version is no tag',
      'node-2',
      works(() => script({}, { version: '9.9.9' })),
      { ...image, unblock: /version|tag/ },
      { says: 'correct image and version of the package', edit: 's/version: 9.9.9/version: 1.1.0/' },
    ],
    [
      'an image whose digest the registry lacks',
      'node-1',
      works(() => script({}, { containerSHA: noDigest })),
      { ...image, unblock: /digest|containerSHA/ },
      { says: 'or its containerSHA', edit: '/containerSHA/d' },
    ],
    [
      'a registry that does not answer',
      'node-3',
      works(() => ({ version: '1.0.0', image: '127.0.0.1:1/none' })),
      { ...image, unblock: /reach the registry/, command: /curl -sS https:\/\/127\.0\.0\.1:1\/v2\// },
      { says: 'check its name', deed: async (work) => await edited(script({}))(work), status: 127 },
    ],
    [
      'a package with an invalid config.json',
      'node-2',
      from('test/broken-config'),
      { ...invalid, message: /config\.json/ },
      {
        says: rebuilt,
        deed: async (work) => await pushed('test/broken-config', work),
        status: 1,
        shows: /returncodes/,
      },
    ],
    [
      'a package that lacks a step',
      'node-1',
      from('test/missing-step'),
      { ...invalid, message: /forgotten\.sh/ },
      {
        says: rebuilt,
        deed: async (work) => await pushed('test/missing-step', work),
        status: 1,
        shows: /forgotten\.sh/,
      },
    ],
    [
      'a Secret that is missing',
      'node-3',
      works(() => script({}, { env: [{ name: 'WORD', valueFrom: { secretKeyRef } }] })),
      {
        cause: 'reference-missing',
        gate: 'package',
        message: /no-such-secret/,
        unblock: /create|optional/i,
        command: /get secrets,configmaps/,
      },
      { says: 'Create what the message names', deed: createSecret },
    ],
    [
      'a step that fails, with the end of its log,',
      'node-3',
      works(() => script({ apply: 'echo "the disk is on fire"; exit 3' })),
      {
        cause: 'step-failing',
        gate: 'work',
        message: /exited 3[^]*the disk is on fire/,
        unblock: /log|fix/i,
        command: logs,
      },
      { says: fixed, deed: async (work) => await edited({ configMap: { 'apply.sh': 'true' } })(work) },
    ],
    [
      'a check that fails',
      'node-2',
      works(() => script({ apply_check: 'echo "it is not mounted"; exit 4' })),
      { cause: 'check-failing', gate: 'work', message: /it is not mounted/, unblock: /./, command: logs },
      { says: fixed, deed: async (work) => await edited({ configMap: { 'apply_check.sh': 'true' } })(work) },
    ],
  ])(
    '%s is explained as the cause, and what is printed mends it',
    async ([, node, spec, expected, { deed, ...remedy }], { onTestFinished }) => {
      const work = await scene(node, onTestFinished)
      await work.apply(spec())
      expect(await work.differences({ object: 'Package/work', ...expected })).toEqual({})
      await printed.mend(work, expected.cause, { ...remedy, deed: async () => await deed?.(work, onTestFinished) })
    },
  )

  test('an image that the credentials do not open is explained by them', async ({ onTestFinished }) => {
    const work = await scene('node-2', onTestFinished)
    const repository = `${cluster.registry}/test/${work.name}`
    await cluster.sandbox.must(['push', join(fixturePackages, 'shellscript'), `test/${work.name}:1.0.0`])
    const correct = await refuseLogin(cluster, repository)
    onTestFinished(correct)
    await work.apply({ packages: { work: { version: '1.0.0', image: repository } } })
    const command = /get secrets --field-selector type=kubernetes\.io\/dockerconfigjson/
    const expected = { ...image, command, object: 'Package/work', message: /UNAUTHORIZED/ }
    expect(await work.differences({ ...expected, unblock: /imagePullSecrets/ })).toEqual({})
    await printed.mend(work, 'image-pull', { says: 'or correct them', deed: correct })
  })

  test('an uninstall that fails is explained as the cause', async ({ onTestFinished }) => {
    const held = await scene('node-1', onTestFinished)
    const { name, node, apply, differences } = held
    const work = script({ uninstall: 'echo "still mounted"; exit 32' })
    onTestFinished(async () => void (await cluster.edit(name, { packages: { work, other: null } })))
    await apply({ packages: { work } })
    await cluster.history.eventually('it is installed', (view) => isCompleteOn(view, name, [node]), explainedWithinMs)
    const removeWork = async (): Promise<unknown> =>
      await cluster.edit(name, { packages: { work: null, other: script({}) } })
    await removeWork()
    const expected = {
      cause: 'uninstall-failing',
      gate: 'work',
      object: 'Package/work',
      message: /still mounted/,
    } as const
    expect(
      await differences({ ...expected, unblock: /fix the package, or drop/, command: /reset .* --package work/ }),
    ).toEqual({})
    // the agent leaves what is left after three attempts: the remedy has to come before
    await cluster.edit(name, { packages: { work } })
    await cluster.history.eventually('it is installed again', (view) => isCompleteOn(view, name, [node]))
    await removeWork()
    await printed.mend(held, 'uninstall-failing', {})
  })
})

describe.concurrent('what has to leave, and what blocks the reboot', () => {
  test('a PodDisruptionBudget that allows nothing is named with its numbers and its pod', async ({
    onTestFinished,
  }) => {
    const work = await scene('node-3', onTestFinished)
    const { node, apply, differences, workloads } = work
    const shop = await workloads()
    await shop.pod('cart', node)
    await shop.budget('strict', 'cart', 1)
    onTestFinished(async () => await shop.dropBudget('strict'))
    await apply({ packages: interrupting() })
    const expected = { cause: 'disruption-budget', gate: 'drain', object: 'PodDisruptionBudget/strict' } as const
    const message = /cart.*strict allows 0 disruptions.*1 healthy of 1.*needs 1/
    expect(
      await differences({ ...expected, message, unblock: /replicas/, command: /describe poddisruptionbudget strict/ }),
    ).toEqual({})
    await printed.mend(work, 'disruption-budget', {
      says: 'a wider budget',
      deed: async () => await shop.allow('strict', 0),
    })
  })

  test('a reboot that an inhibitor blocks names who blocks it', async ({ onTestFinished }) => {
    const work = await scene('node-1', onTestFinished)
    const { name, node, apply, differences } = work
    const host = cluster.host(node)
    const unit = `${name}-inhibitor`
    const inhibit = ['systemd-inhibit', '--what=shutdown', '--who=backup', '--why=writing', 'sleep', 'infinity']
    await host.exec('systemd-run', `--unit=${unit}`, ...inhibit)
    const release = once(async () => await host.exec('systemctl', 'stop', unit))
    onTestFinished(release)
    await apply({ packages: { work: script({}, { interrupt: { type: 'reboot' } }) } })
    const expected = {
      cause: 'reboot-refused',
      gate: 'interrupt',
      object: 'Node/$node',
      message: /backup.*writing/,
    } as const
    expect(await differences({ ...expected, unblock: /./, command: /systemd-inhibit --list/ })).toEqual({})
    await printed.mend(work, 'reboot-refused', { says: 'which programs hold an inhibitor lock', deed: release })
  })
})

describe('without what decides', () => {
  test('a host whose copy dir is read-only is explained as unusable', async ({ onTestFinished }) => {
    const work = await scene('node-2', onTestFinished)
    const { node, apply, differences } = work
    const folder = '/var/lib/skyhook'
    const host = cluster.host(node)
    await host.exec('mount', '--options', 'bind,ro', folder, folder)
    const unmount = once(async () => await host.exec('umount', '--lazy', folder))
    onTestFinished(unmount)
    await apply()
    const expected = { cause: 'host-unusable', gate: 'host', object: 'Node/$node', message: /EROFS/ } as const
    expect(await differences({ ...expected, unblock: /./, command: /doctor --node node-2/ })).toEqual({})
    await printed.mend(work, 'host-unusable', { says: 'look for mounts', deed: unmount, status: 1 })
  })
})
