/** `kubectl skyhook explain` on real nodes: cause, object and remedy of what holds a node up. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import type { Cause, GateName } from '../../src/cli/explain/finding.ts'
import type { NodeExplanation } from '../../src/cli/explain/explain-node.ts'
import { disableKey, ignoreLabel, pauseKey } from '../../src/schemas/annotations.ts'
import type { Interrupt, PackageSpec, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { commandLine } from '../support/command-line.ts'
import { withoutAgents } from './agents.ts'
import { type NodeName, uniqueName, useCluster } from './cluster.ts'
import { patch, paths } from './kube.ts'
import { isCompleteOn } from './node-availability.ts'
import { lockNodes, type OnTestFinished } from './node-locks.ts'
import { manifest, selectorLabel, shellscript, type Scripts } from './skyhooks.ts'
import { slotsOf } from './slots.ts'
import { createWorkloads, type Workloads } from './workloads.ts'

const cluster = useCluster()
/** The agent's own reaction is bounded elsewhere; here pods are started and images asked for. */
const explainedWithinMs = 45_000
const pollMs = 500

type Expected = {
  readonly cause: Cause
  readonly gate: GateName
  /** `Kind/name` of an object that the finding is about; `$node` and `$name` stand for the scene's. */
  readonly object: string
  /** Parts of what would open the gate, and of the command. */
  readonly unblock: RegExp
  readonly command: RegExp
  readonly message?: RegExp
}

type Scene = {
  readonly name: string
  readonly node: NodeName
  readonly onTestFinished: OnTestFinished
  /** A Skyhook on the scene's node, or on these. */
  readonly apply: (
    spec?: SkyhookSpec,
    annotations?: Record<string, string>,
    ...nodes: readonly NodeName[]
  ) => Promise<void>
  readonly editNode: (body: object, undo: object) => Promise<void>
  readonly workloads: () => Promise<Workloads>
  /** What differs from the expected explanation, once it has its cause or the time is over. */
  readonly differences: (expected: Expected) => Promise<object>
}

const script = (scripts: Scripts, more: Partial<PackageSpec> = {}): PackageSpec =>
  shellscript(cluster.registry, scripts, more)
const interrupt: Interrupt = { type: 'service', services: ['foobar'] }
const interrupting = (): Record<string, PackageSpec> => ({ work: script({}, { interrupt }) })

async function explained(name: string, node: string): Promise<NodeExplanation> {
  const tool = commandLine({ client: cluster.api })
  const { code, stdout, stderr } = await tool.run(`explain ${name} ${node} -n skyhook -o json`)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const { items } = JSON.parse(stdout) as { items: [NodeExplanation] }
  return items[0]
}

async function scene(node: NodeName, onTestFinished: OnTestFinished, ...others: NodeName[]): Promise<Scene> {
  await lockNodes(onTestFinished, node, ...others)
  const name = uniqueName('explained')
  onTestFinished(async () => await cluster.remove(name))
  const fill = (text: string): string => text.replace('$node', node).replace('$name', name)
  return {
    name,
    node,
    onTestFinished,
    async apply(spec = {}, annotations = {}, ...nodes) {
      const made = manifest(name, { interruptionBudget: { count: 1 }, packages: { work: script({}) }, ...spec })
      await cluster.apply({ ...made, metadata: { name, annotations } }, ...(nodes.length === 0 ? [node] : nodes))
    },
    async editNode(body, undo) {
      const path = `${paths.nodes}/${node}`
      onTestFinished(async () => void (await patch(cluster.api, path, undo)))
      await patch(cluster.api, path, body)
    },
    async workloads() {
      const made = await createWorkloads(cluster, name)
      onTestFinished(async () => await made.remove())
      return made
    },
    async differences({ cause, gate, object, unblock, command, message = /./ }) {
      let found = await explained(name, node)
      for (const endMs = Date.now() + explainedWithinMs; found.verdict?.cause !== cause; await sleep(pollMs)) {
        found = await explained(name, node)
        if (Date.now() > endMs) break
      }
      const { verdict } = found
      if (verdict?.cause !== cause) return { expected: cause, found }
      const objects = verdict.objects.map((one) => `${one.kind}/${one.name}`)
      return {
        ...(verdict.gate !== gate && { gate: verdict.gate }),
        ...(!objects.includes(fill(object)) && { objects }),
        ...(!message.test(verdict.message) && { message: verdict.message }),
        ...(!unblock.test(verdict.unblock) && { unblock: verdict.unblock }),
        ...(!command.test(verdict.command) && { command: verdict.command }),
      }
    },
  }
}

describe.concurrent('settings', () => {
  test('a node that the selector leaves out is explained by it', async ({ onTestFinished }) => {
    const { apply, editNode, differences } = await scene('node-1', onTestFinished)
    await apply()
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
      'node-1',
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
      { ...image, unblock: /registry|network|reach/ },
    ],
    [
      'a package with an invalid config.json',
      'node-1',
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
      'node-1',
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

describe.concurrent('what is out, and what has to leave', () => {
  test('a budget that another node uses up names that node', async ({ onTestFinished }) => {
    const { name, apply, differences } = await scene('node-2', onTestFinished, 'node-3')
    await apply({ packages: { work: script({ apply: 'sleep 20' }) } }, {}, 'node-3')
    await cluster.history.eventually('node-3 is at work', (view) => slotsOf(view, name)[0]?.holder === 'node-3')
    await patch(cluster.api, `${paths.nodes}/node-2`, { metadata: { labels: { [selectorLabel]: name } } })
    const expected = { cause: 'budget-full', gate: 'slot', object: 'Node/node-3', message: /node-3/ } as const
    expect(await differences({ ...expected, unblock: /node-3/, command: /explain .* node-3/ })).toEqual({})
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

  test('a node without an agent is explained by that, whatever it says', async ({ onTestFinished }) => {
    const { name, node, apply, differences } = await scene('node-3', onTestFinished)
    await apply({ interruptionBudget: { count: 0 } })
    expect(
      await differences({ cause: 'budget-zero', gate: 'slot', object: 'Skyhook/$name', unblock: /./, command: /./ }),
    ).toEqual({})
    const publishedReason = async (): Promise<unknown> => (await explained(name, node)).published?.reason
    await vi.waitFor(async () => expect(await publishedReason()).toBe('WaitingForSlot'), explainedWithinMs)
    await withoutAgents(cluster, async () => {
      const expected = { cause: 'no-agent', gate: 'agent', object: 'Node/$node' } as const
      expect(await differences({ ...expected, unblock: /nodeSelector/, command: /get daemonset skyhookd/ })).toEqual({})
      expect(await publishedReason()).toBe('WaitingForSlot')
      const { gates } = await explained(name, node)
      expect(gates.find(({ gate }) => gate === 'slot')?.verdict).toBe('closed')
    })
  })
})
