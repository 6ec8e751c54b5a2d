/**
 * `kubectl skyhook explain` of what only real hosts, registries and controllers show, and that its commands help. Every
 * other cause is in src/cli/explain/explain-node.test.ts, with agents on simulated hosts.
 */
import { describe, expect, test } from 'vitest'
import { ignoreLabel, pauseKey } from '../../src/schemas/annotations.ts'
import type { Interrupt, PackageSpec, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { type NodeName, useCluster } from '../kit/cluster/cluster.ts'
import { explainedWithinMs, explainScene, type Expected, type ExplainScene } from './explain-scene.ts'
import { patch, paths } from '../kit/cluster/kube.ts'
import { isCompleteOn } from '../kit/cluster/node-availability.ts'
import type { OnTestFinished } from '../kit/cluster/node-locks.ts'
import { refuseLogin } from './registry-login.ts'
import { shellscript, type Scripts } from '../kit/cluster/skyhooks.ts'

const cluster = useCluster()
const scene = async (node: NodeName, onTestFinished: OnTestFinished): Promise<ExplainScene> =>
  await explainScene(cluster, onTestFinished, node)
const script = (scripts: Scripts, more: Partial<PackageSpec> = {}): PackageSpec =>
  shellscript(cluster.registry, scripts, more)
const interrupt: Interrupt = { type: 'service', services: ['foobar'] }
const interrupting = (): Record<string, PackageSpec> => ({ work: script({}, { interrupt }) })

test('several causes at once are named in order, and the command of each opens its gate', async ({
  onTestFinished,
}) => {
  const { name, node, apply, editNode, explained, obey } = await scene('node-2', onTestFinished)
  const taints = [{ key: 'example.com/maintenance', effect: 'NoSchedule' }]
  const path = `${paths.nodes}/${node}`
  const label = (value: string | null) => ({ metadata: { labels: { [ignoreLabel]: value } } })
  await editNode({ ...label('true'), spec: { taints } }, { ...label(null), spec: { taints: null } })
  await apply({ interruptionBudget: { count: 0 } }, { [pauseKey]: 'true' })
  const seen: unknown[] = []
  for (let round = 0; round < 4; round++) {
    const { verdict, gates } = await explained()
    seen.push(gates.flatMap(({ findings }) => findings.map(({ cause }) => cause)))
    if (verdict?.cause === 'taint') await patch(cluster.api, path, { spec: { taints: null } })
    else await obey(verdict?.command ?? '')
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
  const noDigest = `sha256:${'0'.repeat(64)}`
  const secretKeyRef = { name: 'no-such-secret', key: 'word' }

  test.for<[title: string, NodeName, () => SkyhookSpec, Omit<Expected, 'object'>]>([
    [
      'an image whose version is no tag',
      'node-2',
      works(() => script({}, { version: '9.9.9' })),
      { ...image, unblock: /version|tag/ },
    ],
    [
      'an image whose digest the registry lacks',
      'node-2',
      works(() => script({}, { containerSHA: noDigest })),
      { ...image, unblock: /digest|containerSHA/ },
    ],
    [
      'a registry that does not answer',
      'node-3',
      works(() => ({ version: '1.0.0', image: '127.0.0.1:1/none' })),
      { ...image, unblock: /reach the registry/, command: /curl -sS https:\/\/127\.0\.0\.1:1\/v2\// },
    ],
    [
      'a package with an invalid config.json',
      'node-2',
      from('test/broken-config'),
      { ...invalid, message: /config\.json/ },
    ],
    ['a package that lacks a step', 'node-2', from('test/missing-step'), { ...invalid, message: /forgotten\.sh/ }],
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
    ],
    [
      'a check that fails',
      'node-2',
      works(() => script({ apply_check: 'echo "it is not mounted"; exit 4' })),
      { cause: 'check-failing', gate: 'work', message: /it is not mounted/, unblock: /./, command: logs },
    ],
  ])('%s is explained as the cause', async ([, node, spec, expected], { onTestFinished }) => {
    const { apply, differences } = await scene(node, onTestFinished)
    await apply(spec())
    expect(await differences({ object: 'Package/work', ...expected })).toEqual({})
  })

  test('an image that the credentials do not open is explained by them', async ({ onTestFinished }) => {
    const { name, apply, differences } = await scene('node-2', onTestFinished)
    const repository = `${cluster.registry}/test/${name}`
    onTestFinished(await refuseLogin(cluster, repository))
    await apply({ packages: { work: { version: '1.0.0', image: repository } } })
    const command = /get secrets --field-selector type=kubernetes\.io\/dockerconfigjson/
    const expected = { ...image, command, object: 'Package/work', message: /UNAUTHORIZED/ }
    expect(await differences({ ...expected, unblock: /imagePullSecrets/ })).toEqual({})
  })

  test('an uninstall that fails is explained as the cause', async ({ onTestFinished }) => {
    const { name, node, apply, differences } = await scene('node-3', onTestFinished)
    const work = script({ uninstall: 'echo "still mounted"; exit 32' })
    onTestFinished(async () => void (await cluster.edit(name, { packages: { work, other: null } })))
    await apply({ packages: { work } })
    await cluster.history.eventually('it is installed', (view) => isCompleteOn(view, name, [node]), explainedWithinMs)
    await cluster.edit(name, { packages: { work: null, other: script({}) } })
    const expected = {
      cause: 'uninstall-failing',
      gate: 'work',
      object: 'Package/work',
      message: /still mounted/,
    } as const
    expect(
      await differences({ ...expected, unblock: /fix the package, or drop/, command: /reset .* --package work/ }),
    ).toEqual({})
  })
})

describe.concurrent('what has to leave, and what blocks the reboot', () => {
  test('a PodDisruptionBudget that allows nothing is named with its numbers and its pod', async ({
    onTestFinished,
  }) => {
    const { node, apply, differences, workloads } = await scene('node-2', onTestFinished)
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
  })

  test('a reboot that an inhibitor blocks names who blocks it', async ({ onTestFinished }) => {
    const { name, node, apply, differences } = await scene('node-1', onTestFinished)
    const host = cluster.host(node)
    const unit = `${name}-inhibitor`
    const inhibit = ['systemd-inhibit', '--what=shutdown', '--who=backup', '--why=writing', 'sleep', 'infinity']
    await host.exec('systemd-run', `--unit=${unit}`, ...inhibit)
    let isHeld = true
    const release = async (): Promise<void> => {
      if (isHeld) await host.exec('sh', '-c', `systemctl stop ${unit} || true`)
      isHeld = false
    }
    onTestFinished(async () => {
      await release()
      await cluster.history.eventually('it is complete', (view) => isCompleteOn(view, name, [node]), 90_000)
    })
    await apply({ packages: { work: script({}, { interrupt: { type: 'reboot' } }) } })
    const expected = {
      cause: 'reboot-refused',
      gate: 'interrupt',
      object: 'Node/$node',
      message: /backup.*writing/,
    } as const
    expect(await differences({ ...expected, unblock: /./, command: /systemd-inhibit --list/ })).toEqual({})
  })
})

describe('without what decides', () => {
  test('a host whose copy dir is read-only is explained as unusable', async ({ onTestFinished }) => {
    const { node, apply, differences } = await scene('node-2', onTestFinished)
    const folder = '/var/lib/skyhook'
    const host = cluster.host(node)
    await host.exec('mount', '--options', 'bind,ro', folder, folder)
    onTestFinished(async () => void (await host.exec('umount', '--lazy', folder)))
    await apply()
    const expected = { cause: 'host-unusable', gate: 'host', object: 'Node/$node', message: /EROFS/ } as const
    expect(await differences({ ...expected, unblock: /./, command: /doctor --node node-2/ })).toEqual({})
  })
})
