/** `kubectl skyhook explain` on real nodes: cause, object and remedy of what holds a node up. */
import { describe, expect, test } from 'vitest'
import { policiesPath, skyhookTypeMeta } from '../../src/schemas/api.ts'
import { disableKey, ignoreLabel, pauseKey } from '../../src/schemas/annotations.ts'
import type { DeploymentPolicySpec } from '../../src/schemas/deployment-policy.ts'
import type { Interrupt, PackageSpec, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { type NodeName, uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import { holdCensus } from './election.ts'
import { explainedWithinMs, explainScene, type Expected, type ExplainScene } from './explain-scene.ts'
import { ignoreNotFound, patch, paths } from '../kit/cluster/kube.ts'
import type { View } from '../kit/cluster/moments.ts'
import { isCompleteOn } from '../kit/cluster/node-availability.ts'
import type { OnTestFinished } from '../kit/cluster/node-locks.ts'
import { refuseLogin } from './registry-login.ts'
import { manifest, publishedState, selectorLabel, shellscript, type Scripts, traces } from '../kit/cluster/skyhooks.ts'
import { slotsOf } from '../kit/cluster/slots.ts'

const cluster = useCluster()
const scene = async (node: NodeName, onTestFinished: OnTestFinished, ...others: NodeName[]): Promise<ExplainScene> =>
  await explainScene(cluster, onTestFinished, node, ...others)
const script = (scripts: Scripts, more: Partial<PackageSpec> = {}): PackageSpec =>
  shellscript(cluster.registry, scripts, more)
const interrupt: Interrupt = { type: 'service', services: ['foobar'] }
const interrupting = (): Record<string, PackageSpec> => ({ work: script({}, { interrupt }) })

/** Removed with the test. Called before the scene: a policy stays as long as its Skyhook. */
async function createPolicy(spec: DeploymentPolicySpec, onTestFinished: OnTestFinished): Promise<string> {
  const name = uniqueName('policy')
  onTestFinished(async () => void (await ignoreNotFound(cluster.api, 'DELETE', `${policiesPath}/${name}`)))
  const body = { ...skyhookTypeMeta, kind: 'DeploymentPolicy', metadata: { name }, spec }
  await cluster.api.json('POST', policiesPath, { body })
  return name
}

describe.concurrent('settings', () => {
  test('a node that the selector leaves out is explained by it', async ({ onTestFinished }) => {
    const { name, node, apply, editNode, differences } = await scene('node-1', onTestFinished)
    await apply()
    // the agent takes back only what it knows of: a Skyhook that never selected its node does not concern it
    await cluster.history.eventually('the node shows the Skyhook', ({ nodes }) => {
      const shown = nodes.get(node)
      return shown !== undefined && traces(shown, name).length > 0
    })
    const label = (value: string | null) => ({ metadata: { labels: { [selectorLabel]: value } } })
    await editNode(label('another'), label(null))
    const expected = { cause: 'not-selected', gate: 'selector', object: 'Node/$node' } as const
    expect(await differences({ ...expected, unblock: /label|select/, command: /kubectl/ })).toEqual({})
  })

  test('an ignored node is explained by its label', async ({ onTestFinished }) => {
    const { apply, editNode, differences } = await scene('node-2', onTestFinished)
    const label = (value: string | null) => ({ metadata: { labels: { [ignoreLabel]: value } } })
    await editNode(label('true'), label(null))
    await apply()
    const expected = { cause: 'ignored', gate: 'ignored', object: 'Node/$node' } as const
    expect(
      await differences({ ...expected, unblock: /remove the label/, command: /skyhook node unignore node-2/ }),
    ).toEqual({})
  })

  test.for([
    ['paused', pauseKey, /resume/],
    ['disabled', disableKey, /enable/],
  ] as const)('a %s Skyhook is explained by its annotation', async ([cause, key, verb], { onTestFinished }) => {
    const { apply, differences } = await scene('node-3', onTestFinished)
    await apply({}, { [key]: 'true' })
    expect(await differences({ cause, gate: cause, object: 'Skyhook/$name', unblock: verb, command: verb })).toEqual({})
  })

  test('an earlier Skyhook that is not complete is named', async ({ onTestFinished }) => {
    const { name, node, apply, differences } = await scene('node-1', onTestFinished)
    const first = uniqueName('first')
    onTestFinished(async () => await cluster.remove(first))
    const made = manifest(first, { priority: 1, packages: { work: script({}) } })
    const nodeSelectors = { matchLabels: { [selectorLabel]: name } }
    await cluster.apply({
      ...made,
      metadata: { name: first, annotations: { [pauseKey]: 'true' } },
      spec: { ...made.spec, nodeSelectors },
    })
    await apply({ priority: 2 })
    const expected = { cause: 'earlier-skyhook', gate: 'priority', object: `Skyhook/${first}` } as const
    expect(
      await differences({
        ...expected,
        unblock: new RegExp(`${first} has to complete`),
        command: new RegExp(`explain ${first} ${node}`),
      }),
    ).toEqual({})
  })

  test('a taint that the Skyhook does not tolerate is named', async ({ onTestFinished }) => {
    const { apply, editNode, differences } = await scene('node-2', onTestFinished)
    const taints = [{ key: 'example.com/maintenance', effect: 'NoSchedule' }]
    await editNode({ spec: { taints } }, { spec: { taints: null } })
    await apply()
    const expected = {
      cause: 'taint',
      gate: 'taint',
      object: 'Node/$node',
      message: /example\.com\/maintenance/,
    } as const
    expect(
      await differences({ ...expected, unblock: /additionalTolerations/, command: /describe node node-2/ }),
    ).toEqual({})
  })

  test('a budget of 0 is named', async ({ onTestFinished }) => {
    const { apply, differences } = await scene('node-3', onTestFinished)
    await apply({ interruptionBudget: { count: 0 } })
    const expected = { cause: 'budget-zero', gate: 'slot', object: 'Skyhook/$name' } as const
    expect(await differences({ ...expected, unblock: /budget|interruptionBudget/, command: /kubectl/ })).toEqual({})
  })

  test('a percentage that nobody counts names the Lease of the election, and is counted once an agent is elected', async ({
    onTestFinished,
  }) => {
    const { name, node, apply, differences } = await scene('node-1', onTestFinished)
    const census = await holdCensus(cluster, name)
    onTestFinished(async () => await census.release())
    await apply({ interruptionBudget: { percent: 50 } })
    const expected = { cause: 'no-census', gate: 'slot', object: 'Lease/skyhookd-census', message: /census/ } as const
    expect(await differences({ ...expected, unblock: /elected/, command: /get lease skyhookd-census/ })).toEqual({})
    await census.release()
    await cluster.history.eventually('it is complete', (view) => isCompleteOn(view, name, [node]), explainedWithinMs)
  })

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

  test('a DeploymentPolicy that does not exist is named', async ({ onTestFinished }) => {
    const { name, node, differences } = await scene('node-1', onTestFinished)
    const deploymentPolicy = uniqueName('absent')
    await cluster.apply(manifest(name, { deploymentPolicy, packages: { work: script({}) } }), node)
    const expected = {
      cause: 'policy-missing',
      gate: 'policy',
      object: `DeploymentPolicy/${deploymentPolicy}`,
    } as const
    expect(
      await differences({
        ...expected,
        unblock: new RegExp(`create the DeploymentPolicy ${deploymentPolicy}`),
        command: /deploymentpolicies/,
      }),
    ).toEqual({})
  })
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

  test('a host that was rebooted three times for one spec is explained as a loop', async ({ onTestFinished }) => {
    const { name, node, apply, obey, differences } = await scene('node-1', onTestFinished)
    await apply({ packages: { work: script({ post_interrupt_check: 'exit 1' }, { interrupt: { type: 'reboot' } }) } })
    for (const reboots of [1, 2, 3]) {
      const hasFailed = ({ nodes }: View): boolean => {
        const { state, companion } = publishedState(nodes.get(node), name)
        const isFailing = Object.values(state).some((entry) => entry.state === 'erroring')
        return isFailing && Object.values(companion?.reboots ?? {}).some(({ done }) => done === reboots)
      }
      await cluster.history.eventually(`the check fails after reboot ${reboots}`, hasFailed, explainedWithinMs)
      await obey(`kubectl skyhook package rerun work --skyhook ${name} --node ${node} --stage interrupt`)
    }
    const expected = { cause: 'reboot-loop', gate: 'interrupt', object: 'Package/work', message: /3 reboots/ } as const
    const command = /skyhook logs .* --node node-1 --package work/
    expect(await differences({ ...expected, unblock: /fix the package/i, command })).toEqual({})
  })
})

describe.concurrent('what is out, and what has to leave', () => {
  test('a budget that another node uses up names that node', async ({ onTestFinished }) => {
    const { name, apply, differences } = await scene('node-2', onTestFinished, 'node-3')
    await apply({ packages: { work: script({ apply: 'sleep 20' }) } }, {}, 'node-3')
    await cluster.history.eventually('node-3 is at work', (view) => slotsOf(view, name)[0]?.holder === 'node-3')
    await patch(cluster.api, `${paths.nodes}/node-2`, { metadata: { labels: { [selectorLabel]: name } } })
    const expected = { cause: 'budget-full', gate: 'slot', object: 'Node/node-3', message: /node-3/ } as const
    expect(await differences({ ...expected, unblock: /node-3/, command: /explain .* node-3/ })).toEqual({})
  })

  test('a batch that is not finished names its policy and the node at work', async ({ onTestFinished }) => {
    const fixed = { initialBatch: 1, batchThreshold: 100, failureThreshold: 1, safetyLimit: 50 }
    const policy = await createPolicy({ default: { budget: { count: 2 }, strategy: { fixed } } }, onTestFinished)
    const { name, differences } = await scene('node-1', onTestFinished, 'node-2')
    const work = script({ apply: 'sleep 20' })
    await cluster.apply(manifest(name, { deploymentPolicy: policy, packages: { work } }), 'node-2')
    await cluster.history.eventually('node-2 is at work', (view) => slotsOf(view, name)[0]?.holder === 'node-2')
    await patch(cluster.api, `${paths.nodes}/node-1`, { metadata: { labels: { [selectorLabel]: name } } })
    const expected = { cause: 'batch', gate: 'slot', object: `DeploymentPolicy/${policy}`, message: /batch/ } as const
    expect(await differences({ ...expected, unblock: /node-2/, command: /skyhook status explained/ })).toEqual({})
  })

  test('a protected pod is named', async ({ onTestFinished }) => {
    const { node, apply, differences, workloads } = await scene('node-1', onTestFinished)
    const shop = await workloads()
    await shop.pod('training', node, { labels: { keep: 'yes' } })
    await apply({ podNonInterruptLabels: { matchLabels: { keep: 'yes' } }, packages: interrupting() })
    const expected = { cause: 'protected-pod', gate: 'drain', object: 'Pod/training' } as const
    expect(await differences({ ...expected, unblock: /end them/, command: /training/ })).toEqual({})
  })

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

  test('a pod without a controller that takes its time is named', async ({ onTestFinished }) => {
    const { node, apply, differences, workloads } = await scene('node-3', onTestFinished)
    const shop = await workloads()
    await shop.pod('lonely', node, { graceSeconds: 25, arguments: ['stubborn'] })
    await apply({ packages: interrupting() })
    const expected = { cause: 'bare-pod', gate: 'drain', object: 'Pod/lonely' } as const
    expect(await differences({ ...expected, unblock: /./, command: /lonely/ })).toEqual({})
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
