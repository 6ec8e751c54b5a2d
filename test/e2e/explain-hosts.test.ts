/**
 * `kubectl skyhook explain` of what happens to kubelets, networks and disks of hosts, and to what a Skyhook depends on:
 * it names the cause, and carrying out what it prints lets the node complete.
 */
import { describe, expect, test, vi } from 'vitest'
import type { PackageSpec } from '../../src/schemas/skyhook.ts'
import { agentOn, hasReadyAgent } from '../kit/cluster/agents.ts'
import { type NodeName, uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import { patch, paths } from '../kit/cluster/kube.ts'
import type { View } from '../kit/cluster/moments.ts'
import { isCompleteOn, isNodeReady } from '../kit/cluster/node-availability.ts'
import type { OnTestFinished } from '../kit/cluster/node-locks.ts'
import {
  journalOf,
  journaled,
  manifest,
  releaseFileOf,
  type Scripts,
  selectorLabel,
  shellscript,
} from '../kit/cluster/skyhooks.ts'
import { explainedWithinMs, explainScene, type ExplainScene } from './explain-scene.ts'
import { once, usePrintedRemedies } from './printed-remedy.ts'

const cluster = useCluster()
const printed = usePrintedRemedies(cluster)
const scene = async (node: NodeName, onTestFinished: OnTestFinished): Promise<ExplainScene> =>
  await explainScene(cluster, onTestFinished, node)
const work = (scripts: Scripts = {}, more: Partial<PackageSpec> = {}): PackageSpec =>
  shellscript(cluster.registry, scripts, more)
const onHost = async (node: NodeName, text: string): Promise<string> => await cluster.host(node).exec('sh', '-ec', text)

/** Stops the kubelet and waits until the Node is NotReady. Returns what starts it. */
async function stopKubelet(node: NodeName, onTestFinished: OnTestFinished): Promise<() => Promise<void>> {
  const start = once(async () => await onHost(node, 'systemctl start kubelet'))
  onTestFinished(async () => {
    await start()
    await cluster.history.eventually(`the agent of ${node} is Ready`, (view) => hasReadyAgent(view, node))
  })
  await onHost(node, 'systemctl stop kubelet')
  await awaitNotReady(node)
  return start
}

const awaitNotReady = async (node: NodeName): Promise<unknown> =>
  await cluster.history.eventually(`${node} is NotReady`, ({ nodes }) => !isNodeReady(nodes.get(node)))

/** A Skyhook whose step waits for a file on the host. Returns what creates it. */
async function startWork({ name, node, apply }: ExplainScene): Promise<() => Promise<void>> {
  await apply({ packages: { work: work(journaled(name, 'apply')) } })
  await cluster.host(node).awaitLine(journalOf(name), 'apply begins')
  return async () => await cluster.host(node).write(releaseFileOf(name), '')
}

describe.concurrent('what nodes lose', () => {
  const expected = { cause: 'node-not-ready', gate: 'agent', object: 'Node/$node' } as const
  /** Until its agent is heard of after that, its host and its network may be the cause. */
  const ofKubelet = { unblock: /start the .*kubelet/, command: /systemctl status kubelet|describe node/ } as const

  test('a kubelet that dies before the work is named, and starting it completes the node', async ({
    onTestFinished,
  }) => {
    const held = await scene('node-1', onTestFinished)
    const start = await stopKubelet(held.node, onTestFinished)
    await held.apply()
    const message = /node-1 is NotReady since .*Kubelet stopped posting node status/
    expect(await held.differences({ ...expected, message, ...ofKubelet })).toEqual({})
    await printed.mend(held, 'node-not-ready', {
      says: 'start the kubelet of node-1: its host outlived it',
      deed: start,
      status: 3,
    })
  })

  test('a kubelet that dies during the work is named beside the agent that continues, and starting it completes the node', async ({
    onTestFinished,
  }) => {
    const held = await scene('node-2', onTestFinished)
    const release = await startWork(held)
    const start = await stopKubelet(held.node, onTestFinished)
    expect(await held.differences({ ...expected, ...ofKubelet })).toEqual({})
    await printed.mend(held, 'node-not-ready', {
      says: 'start the kubelet of node-2: its host outlived it',
      deed: async () => {
        await start()
        await release()
      },
      status: 3,
    })
  })

  test('a node that is cut off from the network is named, and connecting it completes the node', async ({
    onTestFinished,
  }) => {
    const held = await scene('node-3', onTestFinished)
    const release = await startWork(held)
    const join = once(async () => await cluster.sandbox.must(['join', held.node]))
    onTestFinished(join)
    await cluster.sandbox.must(['cut', held.node])
    await awaitNotReady(held.node)
    await release()
    const unblock = /start the host of node-3, its network or its kubelet/
    expect(await held.differences({ ...expected, unblock, command: /describe node node-3/ })).toEqual({})
    await printed.mend(held, 'node-not-ready', { says: 'start the host of node-3, its network', deed: join })
  })
})

describe.concurrent('what is in the way', () => {
  test('a protected pod is named, and ending it completes the node', async ({ onTestFinished }) => {
    const held = await scene('node-1', onTestFinished)
    const shop = await held.workloads()
    await shop.pod('train', held.node)
    await held.apply({
      podNonInterruptLabels: { matchLabels: { app: 'train' } },
      packages: { work: work({}, { interrupt: { type: 'service', services: ['foobar'] } }) },
    })
    const expected = { cause: 'protected-pod', gate: 'drain', object: 'Pod/train', message: /train/ } as const
    expect(await held.differences({ ...expected, unblock: /end them/, command: /get pod train/ })).toEqual({})
    await printed.mend(held, 'protected-pod', {
      says: 'end them when it suits you',
      deed: async () => await shop.endPod('train'),
    })
  })

  test('a misspelled registry is named, and its correction completes the node', async ({ onTestFinished }) => {
    const held = await scene('node-2', onTestFinished)
    await held.apply({ packages: { work: { ...work(), image: 'regsitry.invalid/skyhook-packages/shellscript' } } })
    const expected = { cause: 'image-pull', gate: 'package', object: 'Package/work', message: /regsitry/ } as const
    expect(await held.differences({ ...expected, unblock: /reach the registry/, command: /curl/ })).toEqual({})
    await printed.mend(held, 'image-pull', {
      says: 'check its name',
      deed: async () => await cluster.edit(held.name, { packages: { work: work() } }),
      status: 127, // hosts of sandboxes have no curl
    })
  })

  test('an earlier Skyhook that fails is named, and the command leads to its own cause', async ({ onTestFinished }) => {
    const held = await scene('node-3', onTestFinished)
    const { name, node, apply, explained } = held
    const first = uniqueName('first')
    onTestFinished(async () => await cluster.remove(first))
    const { spec } = manifest(name, { priority: 1, packages: { work: work({ apply: 'exit 3' }) } })
    await cluster.apply({ ...manifest(first, {}), spec }, node)
    await patch(cluster.api, `${paths.nodes}/${node}`, { metadata: { labels: { [selectorLabel]: name } } })
    await apply({ priority: 2 })
    const expected = { cause: 'earlier-skyhook', gate: 'priority', object: `Skyhook/${first}` } as const
    const command = new RegExp(`explain ${first} node-3`)
    expect(await held.differences({ ...expected, unblock: /must complete/, command })).toEqual({})
    const { verdict } = await explained()
    await vi.waitFor(
      async () => expect(await printed.run(node, verdict?.command ?? '')).toContain('step-failing'),
      explainedWithinMs,
    )
    await printed.mend(held, 'earlier-skyhook', {
      says: `Skyhook ${first} must complete on this node`,
      deed: async () => await cluster.edit(first, { packages: { work: { configMap: { 'apply.sh': 'true' } } } }),
    })
  })
})

test('a full disk is named with its path, and space completes the node', async ({ onTestFinished }) => {
  const held = await scene('node-2', onTestFinished)
  const { node, apply } = held
  const folder = '/var/lib/skyhook'
  const small = '/run/full-disk'
  const resize = async (kilobytes: number): Promise<unknown> =>
    await onHost(
      node,
      `mount -o remount,size=$(($(df -k --output=used ${small} | tail -n 1) + ${kilobytes}))k ${small}`,
    )
  await onHost(
    node,
    `mkdir -p ${small}; mount -t tmpfs -o size=8m tmpfs ${small}; cp -a ${folder}/. ${small}; ` +
      `mount --bind ${small} ${folder}`,
  )
  onTestFinished(async () => {
    await resize(4_000)
    await cluster.remove(held.name)
    const journal = '.agent/journal.json'
    await onHost(node, `umount --lazy ${folder}; cp ${small}/${journal} ${folder}/${journal}; umount --lazy ${small}`)
  })
  await resize(0)
  await apply()
  const expected = { cause: 'host-unusable', gate: 'host', object: 'Node/$node', command: /doctor --node/ } as const
  const message = /ENOSPC: .*\/var\/lib\/skyhook\//
  expect(await held.differences({ ...expected, message, unblock: /free space/ })).toEqual({})
  await printed.mend(held, 'host-unusable', { says: 'free space', deed: async () => await resize(4_000), status: 1 })
})

test('a Skyhook that selects no node is told what the nearest one lacks, and the label completes it', async ({
  onTestFinished,
}) => {
  const { name, node, apply } = await scene('node-3', onTestFinished)
  await apply()
  await patch(cluster.api, `${paths.nodes}/${node}`, { metadata: { labels: { [selectorLabel]: null } } })
  const label = `${selectorLabel}=${name}`
  const explained = await printed.run(node, `kubectl skyhook explain ${name}`)
  expect(explained).toMatch(new RegExp(`selects none of 3 nodes: the nearest, node-\\d, lacks ${label}`))
  expect(explained).toContain('or label nodes')
  const [, command = ''] = /^ *run: +(.*)$/m.exec(explained) ?? []
  expect(await printed.run(node, command)).toContain(node)
  await printed.run(node, `kubectl label node ${node} ${label}`)
  await cluster.history.eventually('it is complete', (view) => isCompleteOn(view, name, [node]))
})

test('a step that hangs is shown as work with its age and its log, and its end completes the node', async ({
  onTestFinished,
}) => {
  const held = await scene('node-1', onTestFinished)
  const release = await startWork(held)
  const text = await printed.run(held.node, `kubectl skyhook explain ${held.name} ${held.node}`)
  expect(text).toMatch(/at work, nothing holds it up\napply .* of work .* has been running for \d+s/)
  expect(text).toContain('unblock: if it hangs, end what it waits for')
  const [, command = ''] = /^ *run: +(.*) --follow$/m.exec(text) ?? []
  expect(command).not.toBe('')
  await printed.run(held.node, command)
  await release()
  await cluster.history.eventually('it is complete', (view) => isCompleteOn(view, held.name, [held.node]))
})

test('a namespace that refuses privileged pods is named, and the printed label brings the agent back', async ({
  onTestFinished,
}) => {
  const held = await scene('node-3', onTestFinished)
  const { node } = held
  const label = 'pod-security.kubernetes.io/enforce'
  const setLabel = async (value: string | null): Promise<unknown> =>
    await patch(cluster.api, '/api/v1/namespaces/skyhook', { metadata: { labels: { [label]: value } } })
  onTestFinished(async () => {
    await setLabel(null)
    await cluster.history.eventually('the agent is back', (view) => hasReadyAgent(view, node))
  })
  await setLabel('baseline')
  const agent = agentOn(cluster.history.now, node)?.metadata.name ?? ''
  await cluster.api.json('DELETE', `/api/v1/namespaces/skyhook/pods/${agent}`)
  await cluster.history.eventually(
    'the agent is gone',
    ({ pods }: View) => ![...pods.values()].some(({ metadata }) => metadata.name === agent),
  )
  await held.apply()
  const expected = { cause: 'no-agent', gate: 'agent', object: 'DaemonSet/skyhookd' } as const
  const message = /violates PodSecurity/
  const command = new RegExp(`label namespace skyhook ${label}=privileged`)
  expect(await held.differences({ ...expected, message, unblock: /privileged pods/, command })).toEqual({})
  await printed.mend(held, 'no-agent', {})
})
