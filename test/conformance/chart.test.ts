/** Rows C31, C32 and C34: the chart, with helm, on the sandbox's own release. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { startedAgents } from '../kit/cluster/agents.ts'
import { installedChart } from '../kit/cluster/chart-values.ts'
import { uniqueName } from '../kit/cluster/cluster.ts'
import { paths } from '../kit/cluster/kube.ts'
import { manifest } from '../kit/cluster/skyhooks.ts'
import { expectComplete, useConformance } from './conformance.ts'
import { row } from './rows.ts'

type Json = Record<string, unknown>

const cluster = useConformance()
const nodes = ['node-1', 'node-2', 'node-3'] as const
const helm = async (...parameters: readonly string[]): Promise<string> => {
  const env = { ...process.env, ...cluster.sandbox.env() }
  return (await promisify(execFile)('helm', [...parameters, '--namespace', 'skyhook'], { env, maxBuffer: 2 ** 24 }))
    .stdout
}
const asParameters = (values: Json): string[] =>
  Object.entries(values).flatMap(([name, value]) => ['--set-json', `${name}=${JSON.stringify(value)}`])
const upgrade = async (values: Json): Promise<unknown> =>
  await helm('upgrade', 'skyhookd', installedChart, '--reuse-values', ...asParameters(values))

/** The nodes of the agents, once there are so many, all of them started and with the values of now. */
async function nodesOfAgents(count: number): Promise<readonly string[]> {
  const { metadata } = await cluster.api.json<{ metadata: { generation: number } }>('GET', daemonSet)
  const generation = String(metadata.generation)
  await cluster.history.eventually(`${count} agents run`, (view) => {
    const pods = [...view.pods.values()].filter((pod) => pod.metadata.namespace === 'skyhook')
    const areOfNow = pods.every((pod) => pod.metadata.labels?.['pod-template-generation'] === generation)
    return areOfNow && pods.length === count && startedAgents(view).size === count
  })
  return [...startedAgents(cluster.history.now).keys()].toSorted()
}
const daemonSet = '/apis/apps/v1/namespaces/skyhook/daemonsets/skyhookd'

afterAll(async () => void (await cluster.sandbox.must(['install'])))

test(row('C31'), async () => {
  const name = uniqueName('chart')
  const key = 'dedicated'
  const toleration = { key, operator: 'Equal', value: 'system-cpu' } as const
  await cluster.taint('node-3', { key, value: 'system-cpu', effect: 'NoSchedule' })
  await upgrade({ tolerations: [{ ...toleration, value: 'another' }] })
  expect(await nodesOfAgents(2)).toEqual(['node-1', 'node-2'])
  await upgrade({ tolerations: [toleration] })
  expect(await nodesOfAgents(3)).toEqual(nodes)
  const packages = { work: cluster.pack('1.2.3') }
  await cluster.apply(manifest(name, { additionalTolerations: [toleration], packages }), 'node-3')
  await expectComplete(cluster, name, { 'work|1.2.3': 'config' }, ['node-3'])

  await helm('uninstall', 'skyhookd', '--wait')
  const path = `${paths.skyhooks}/${name}`
  await cluster.api.json('DELETE', path)
  // nobody has to take a finalizer off, and no agent is there to do so
  await cluster.history.eventually('the Skyhook is gone', ({ skyhooks }) => !skyhooks.has(name))
  expect(startedAgents(cluster.history.now)).toEqual(new Map())
  await cluster.sandbox.must(['install'])
})

test(row('C32'), async () => {
  const hosts = (...values: readonly string[]): Json => ({
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values }] }],
        },
      },
    },
  })
  await upgrade(hosts('nowhere'))
  expect(await nodesOfAgents(0)).toEqual([])
  await upgrade(hosts('node-1', 'node-2'))
  expect(await nodesOfAgents(2)).toEqual(['node-1', 'node-2'])
  await upgrade({ nodeSelector: { 'kubernetes.io/os': 'linux', 'kubernetes.io/hostname': 'node-2' } })
  expect(await nodesOfAgents(1)).toEqual(['node-2'])
  await upgrade({ ...hosts('node-3') })
  expect(await nodesOfAgents(0)).toEqual([])
})

test(row('C34'), async () => {
  const objects = async (values: Json): Promise<readonly Json[]> =>
    parseAllDocuments(await helm('template', 'skyhookd', installedChart, ...asParameters(values)))
      .map((document) => document.toJS() as Json | null)
      .filter((object) => object !== null)
  const kinds = async (values: Json): Promise<Record<string, number>> => {
    const found = Map.groupBy(await objects(values), ({ kind }) => String(kind))
    return Object.fromEntries([...found].map(([kind, some]) => [kind, some.length]))
  }
  const podOf = async (values: Json): Promise<Json> => {
    const found = (await objects(values)).find(({ kind }) => kind === 'DaemonSet')
    return (found as unknown as { spec: { template: { spec: Json } } }).spec.template.spec
  }
  const plain = await kinds({})
  const { ClusterRole: roles = 0 } = plain
  expect(await kinds({ rbac: { createSkyhookViewerRole: true } })).toMatchObject({ ClusterRole: roles + 1 })
  expect(await kinds({ rbac: { createSkyhookEditorRole: true } })).toMatchObject({ ClusterRole: roles + 1 })
  expect(plain['CustomResourceDefinition']).toBe(2)
  expect(await kinds({ 'crds.install': false })).not.toHaveProperty('CustomResourceDefinition')
  expect(plain).not.toHaveProperty('LimitRange')
  for (const kind of ['ValidatingWebhookConfiguration', 'MutatingWebhookConfiguration', 'Deployment', 'Secret'])
    expect(plain).not.toHaveProperty(kind)

  const chosen = {
    tolerations: [{ key: 'dedicated', operator: 'Exists' }],
    nodeSelector: { pool: 'gpu' },
    resources: { limits: { memory: '300Mi' } },
  }
  const { tolerations, nodeSelector } = chosen
  expect(await podOf({ ...chosen, imagePullSecret: 'login' })).toMatchObject({
    tolerations: expect.arrayContaining(tolerations) as unknown, // beside those of the runtime-required taints
    nodeSelector,
    imagePullSecrets: [{ name: 'login' }],
    containers: [{ resources: { limits: { memory: '300Mi' } } }],
  })
  await expect(objects({ unheardOf: true })).rejects.toThrow(/unheardOf/)
})
