/** Rows C17 to C19: which Skyhook and which node may start. */
import { expect, test } from 'vitest'
import { conditionOf } from '../../src/census/model/skyhook-status.ts'
import { disableKey, pauseKey } from '../../src/schemas/annotations.ts'
import type { Taint } from '../../src/schemas/kubernetes.ts'
import { uniqueName, type NodeName } from '../kit/cluster/cluster.ts'
import { patch, paths } from '../kit/cluster/kube.ts'
import type { View } from '../kit/cluster/moments.ts'
import { manifest } from '../kit/cluster/skyhooks.ts'
import { sharingNodesOf, expectComplete, nodeOf, service, statusOf, useConformance } from './conformance.ts'
import { recordService, summarize } from '../kit/files/journal-lines.ts'
import { row } from './rows.ts'

const cluster = useConformance()
const blocking: Taint = { key: 'test-block', effect: 'NoSchedule' }
const keysOf = (view: View, node: NodeName): string[] =>
  (view.nodes.get(node)?.spec?.taints ?? []).map(({ key }) => key)

test(row('C17'), async () => {
  const nodes = ['node-1', 'node-2'] as const
  const [zzz, b, c, d] = [uniqueName('zzz'), uniqueName('b'), uniqueName('c'), uniqueName('d')]
  const packages = { foobar: cluster.pack('1.2') }
  const interrupted = async (name: string) => {
    const [unit = ''] = await Promise.all(nodes.map((node) => recordService(cluster.host(node), name, 'cron')))
    return { foobar: cluster.pack('1.2', { interrupt: service(unit) }) }
  }
  const status = (view: View, node: NodeName, name: string) => nodeOf(view, node, name).status
  await cluster.taint('node-2', blocking)
  const first = { ...manifest(zzz, { priority: 1, packages: await interrupted(zzz) }) }
  await cluster.apply(sharingNodesOf(zzz, b, { priority: 2, packages: await interrupted(b) }, { [pauseKey]: 'true' }))
  await cluster.apply(sharingNodesOf(zzz, c, { priority: 2, packages }))
  await cluster.apply(sharingNodesOf(zzz, d, { priority: 2, packages }, { [disableKey]: 'true' }))
  await cluster.apply(first, ...nodes)
  await cluster.history.eventually(
    'the first is complete on one node, the paused one stands there; the other node is blocked',
    (view) =>
      status(view, 'node-1', zzz) === 'complete' &&
      status(view, 'node-1', b) === 'paused' &&
      status(view, 'node-1', c) === 'waiting' &&
      status(view, 'node-2', zzz) === 'blocked',
    60_000,
  )
  await cluster.history.eventually(
    'the Skyhooks tell it',
    (view) =>
      statusOf(view, zzz).status === 'blocked' &&
      statusOf(view, b).status === 'paused' &&
      statusOf(view, d).status === 'disabled',
  )

  await patch(cluster.api, `${paths.skyhooks}/${b}`, { metadata: { annotations: { [pauseKey]: null } } })
  await cluster.untaint('node-2', blocking.key)
  await expectComplete(cluster, zzz, { 'foobar|1.2': 'post-interrupt' }, nodes)
  await expectComplete(cluster, b, { 'foobar|1.2': 'post-interrupt' }, nodes)
  await expectComplete(cluster, c, { 'foobar|1.2': 'config' }, nodes)
  for (const node of nodes) {
    expect(status(cluster.history.now, node, d)).toBe('disabled')
    expect(await cluster.lines(node, d)).toEqual([])
    await cluster.history.never(`out of order on ${node}`, (moment) => {
      const [one, two, three] = [zzz, b, c].map((name) => status(moment, node, name))
      const begun = ['in_progress', 'erroring']
      if (begun.includes(two ?? '') && one !== 'complete') return `${b} is ${two} while ${zzz} is ${one}`
      return begun.includes(three ?? '') && two !== 'complete' && `${c} is ${three} while ${b} is ${two}`
    })
  }
  expect(
    await cluster.history.first(
      (view) => status(view, 'node-1', b) === 'in_progress' && status(view, 'node-1', c) === 'waiting',
    ),
  ).toBeDefined()
  // the order is per node: one was at the second while the other had not finished the first
  const ahead = (view: View): boolean =>
    status(view, 'node-1', zzz) === 'complete' && status(view, 'node-2', zzz) !== 'complete'
  expect(await cluster.history.first(ahead)).toBeDefined()
})

test(row('C18'), async () => {
  const name = uniqueName('taints')
  const node = 'node-1'
  const gpu: Taint = { key: 'nvidia.com/gpu', value: 'present', effect: 'NoSchedule' }
  const tolerable = (view: View) => conditionOf(statusOf(view, name), 'skyhook.nvidia.com/TaintNotTolerable')?.status
  await cluster.taint(node, gpu)
  await cluster.apply(manifest(name, { packages: { spencer: cluster.pack('3.2.3') } }), node)
  await cluster.history.eventually('the node is blocked', (view) => nodeOf(view, node, name).status === 'blocked')
  await cluster.history.eventually(
    'the Skyhook reports it',
    (view) => statusOf(view, name).status === 'blocked' && tolerable(view) === 'True',
  )
  expect(nodeOf(cluster.history.now, node, name)).toMatchObject({ label: 'blocked', state: {} })
  expect(statusOf(cluster.history.now, name)).toMatchObject({ nodeStatus: { [node]: 'blocked' } })
  expect(await cluster.lines(node, name)).toEqual([])

  await cluster.edit(name, { additionalTolerations: [{ key: gpu.key, operator: 'Exists', effect: 'NoSchedule' }] })
  await expectComplete(cluster, name, { 'spencer|3.2.3': 'config' })
  expect(tolerable(cluster.history.now)).toBe('False')
  expect(keysOf(cluster.history.now, node)).toContain(gpu.key)
})

test(row('C19'), async () => {
  const name = uniqueName('required')
  const nodes = ['node-1', 'node-2'] as const
  const required: Taint = { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' }
  for (const node of nodes) await cluster.taint(node, required)
  await cluster.taint('node-2', blocking)
  await cluster.apply(manifest(name, { runtimeRequired: true, packages: { spencer: cluster.pack('3.2.3') } }), ...nodes)
  await cluster.history.eventually(
    'one node is complete without the taint, the other blocked with it',
    (view) =>
      nodeOf(view, 'node-1', name).status === 'complete' &&
      !keysOf(view, 'node-1').includes(required.key) &&
      nodeOf(view, 'node-2', name).status === 'blocked',
  )
  expect(keysOf(cluster.history.now, 'node-2')).toEqual(expect.arrayContaining([required.key, blocking.key]))
  await cluster.untaint('node-2', blocking.key)
  await expectComplete(cluster, name, { 'spencer|3.2.3': 'config' }, nodes)
  for (const node of nodes) {
    await cluster.history.eventually(`${node} lost the taint`, (view) => !keysOf(view, node).includes(required.key))
    expect(summarize(await cluster.lines(node, name))).toHaveLength(4)
  }
})
