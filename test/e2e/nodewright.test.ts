/**
 * A cluster in which NodeWright has completed a rollout on one node: its definition, its object and its keys. A Skyhook
 * of that name begins nothing on any node until a person has said that the record does not count.
 */
import { expect, onTestFinished, test } from 'vitest'
import { buildTool } from '../kit/tool/tool-program.ts'
import { withoutAgents } from '../kit/cluster/agents.ts'
import { useCluster } from '../kit/cluster/cluster.ts'
import { patch, paths } from '../kit/cluster/kube.ts'
import type { View } from '../kit/cluster/moments.ts'
import { isCompleteOn, isCordoned } from '../kit/cluster/node-availability.ts'
import {
  journaled,
  journalOf,
  manifest,
  onceEach,
  publishedState,
  shellscript,
  withoutTimes,
} from '../kit/cluster/skyhooks.ts'
import { slotsOf } from '../kit/cluster/slots.ts'

const cluster = useCluster({ name: 'nodewright', nodes: 2, env: {} })
const nodes = ['node-1', 'node-2'] as const
const name = 'tuning'
const group = 'nodewright.nvidia.com'
const entry = { name: 'work', version: '1.1.0', image: 'registry/work', stage: 'config', state: 'complete' }
const keys = {
  [`${group}/nodeState_${name}`]: JSON.stringify({ 'work|1.1.0': entry }),
  [`${group}/status_${name}`]: 'complete',
  [`${group}/version_${name}`]: 'v0.20.0',
}
const reasonOn = (view: View, node: string) => publishedState(view.nodes.get(node), name).reason
const keysOn = (view: View, node: string) =>
  Object.entries(view.nodes.get(node)?.metadata.annotations ?? {}).filter(([key]) => key.startsWith(group))

async function serveNodeWrights(): Promise<void> {
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
  const body = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `nodewrights.${group}` },
    spec: {
      group,
      scope: 'Cluster',
      names: { kind: 'NodeWright', plural: 'nodewrights', singular: 'nodewright' },
      versions: [{ name: 'v1alpha1', served: true, storage: true, schema }],
    },
  }
  await cluster.api.json('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { body })
  const object = {
    apiVersion: `${group}/v1alpha1`,
    kind: 'NodeWright',
    metadata: { name },
    status: { status: 'complete' },
  }
  await expect
    .poll(
      () => cluster.api.json('POST', `/apis/${group}/v1alpha1/nodewrights`, { body: object }).catch(() => undefined),
      {
        timeout: 30_000,
      },
    )
    .toBeDefined()
}

test('no step runs beside the record of NodeWright, the Node, doctor and explain say why, and the printed command lets it go on', async () => {
  const { api, history } = cluster
  await withoutAgents(cluster, async () => {
    await serveNodeWrights()
    await patch(api, `${paths.nodes}/node-1`, { metadata: { annotations: keys } })
  })
  const tool = await buildTool({ KUBECONFIG: cluster.kubeconfig })
  onTestFinished(async () => {
    await tool.remove()
    const annotations = Object.fromEntries(Object.keys(keys).map((key) => [key, null]))
    await patch(api, `${paths.nodes}/node-1`, { metadata: { annotations } })
  })
  const work = shellscript(cluster.registry, journaled(name), { interrupt: { type: 'service', services: ['cron'] } })
  await cluster.apply(manifest(name, { interruptionBudget: { count: 1 }, packages: { work } }), ...nodes)

  await history.eventually('both nodes wait for a person', (view) =>
    nodes.every((node) => reasonOn(view, node)?.reason === 'Takeover'),
  )
  expect(reasonOn(history.now, 'node-1')?.message).toContain(`${group}/nodeState_${name}`)
  expect(reasonOn(history.now, 'node-2')?.message).toContain(`serves ${group}`)

  const command = `kubectl annotate skyhook ${name} skyhook.nvidia.com/ignore-nodewright=true`
  const doctor = await tool.run('doctor --takeover')
  expect(doctor).toMatchObject({ code: 1, stdout: expect.stringContaining(command) as unknown })
  expect(doctor.stdout).toContain('node-1')
  const explained = await tool.run(`explain ${name} node-1`)
  expect(explained.stdout).toContain(`${group}/nodeState_${name}`)
  expect(explained.stdout).toContain(command)

  await history.never('a slot or a cordon', (view) => {
    const isDisturbed = slotsOf(view, name).length > 0 || nodes.some((node) => isCordoned(view.nodes.get(node)))
    return isDisturbed && 'a node was disturbed'
  })
  for (const node of nodes) expect(await cluster.host(node).exists(journalOf(name))).toBe(false)

  await cluster.sandbox.kubectl(command.split(' ').slice(1))
  await history.eventually('it is complete', (view) => isCompleteOn(view, name, nodes), 90_000)
  for (const node of nodes)
    expect(withoutTimes(await cluster.host(node).lines(journalOf(name)))).toEqual(
      onceEach('apply', 'apply_check', 'config', 'config_check', 'post_interrupt'),
    )
  expect(Object.fromEntries(keysOn(history.now, 'node-1'))).toEqual(keys)
})
