/** What an agent's token may change on Skyhooks and policies, and who may delete a policy, on a real API server. */
import { describe, expect, test } from 'vitest'
import { allowed, merge, policies, refused, skyhook, skyhooks, useAgents } from './agents.ts'
import { namespace, until } from './chart-cluster.ts'

const agents = useAgents()

test('an agent may ask which groups are served', async () => {
  expect(await agents.a('GET', '/apis/skyhook.nvidia.com')).toEqual(allowed)
  expect(await agents.a('GET', '/apis/nodewright.nvidia.com')).toMatchObject({ status: 404 })
})

describe('a Skyhook', () => {
  const demo = `${skyhooks}/demo`

  test.each<[string, string, unknown]>([
    ['the version annotation', demo, { metadata: { annotations: { 'skyhook.nvidia.com/version': 'v0.15.0' } } }],
    [
      'the finalizer of skyhookd',
      demo,
      { metadata: { finalizers: ['example.com/theirs', 'skyhook.nvidia.com/skyhook'] } },
    ],
    ['the removal of the finalizer of skyhookd', demo, { metadata: { finalizers: ['example.com/theirs'] } }],
  ])('an agent may write %s of a Skyhook', async (_, path, patch) => {
    expect(await agents.a('PATCH', path, patch, merge)).toEqual(allowed)
  })

  test('an agent may write the status of a Skyhook', async () => {
    const { body } = await agents.cluster.admin('GET', demo)
    const written = { ...body, status: { status: 'in_progress', nodesInProgress: 1 } }
    expect(await agents.a('PUT', `${demo}/status`, written)).toEqual(allowed)
  })

  test.each<[string, unknown, RegExp]>([
    [
      'another package image',
      { spec: { packages: { tuning: { image: 'evil' } } } },
      /node-a may not change the spec of Skyhook demo/,
    ],
    ['another budget', { spec: { interruptionBudget: { count: 99 } } }, /may not change the spec/],
    [
      'a pause',
      { metadata: { annotations: { 'skyhook.nvidia.com/pause': 'true' } } },
      /annotations skyhook.nvidia.com\/pause of Skyhook demo/,
    ],
    [
      'the removal of a foreign annotation',
      { metadata: { annotations: { theirs: null } } },
      /annotations theirs of Skyhook demo/,
    ],
    ['a label', { metadata: { labels: { team: 'other' } } }, /may not change metadata.labels of Skyhook demo/],
    [
      'an owner',
      { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'node-a', uid: 'x' }] } },
      /metadata.ownerReferences/,
    ],
    [
      'a foreign finalizer',
      { metadata: { finalizers: ['example.com/theirs', 'example.com/ours'] } },
      /no finalizer of Skyhook demo but skyhook.nvidia.com\/skyhook/,
    ],
    ['the removal of a foreign finalizer', { metadata: { finalizers: [] } }, /no finalizer of Skyhook demo/],
  ])('an agent may not write %s of a Skyhook', async (_, patch, words) => {
    expect(await agents.a('PATCH', demo, patch, merge)).toEqual(refused(words))
  })

  test.each([
    ['create a Skyhook', 'POST', skyhooks],
    ['delete a Skyhook', 'DELETE', demo],
    ['create a DeploymentPolicy', 'POST', policies],
    ['list Secrets', 'GET', `/api/v1/namespaces/${namespace}/secrets`],
    ['read a Secret of another namespace', 'GET', '/api/v1/namespaces/kube-system/secrets/x'],
  ])('an agent cannot %s', async (_, method, path) => {
    expect(await agents.a(method, path, method === 'POST' ? skyhook('new') : undefined)).toEqual(refused(/cannot/))
  })
})

test('a DeploymentPolicy is deleted only when no Skyhook names it', async () => {
  const spec = { default: { budget: { count: 1 }, strategy: { fixed: {} } } }
  expect(
    await agents.cluster.admin('POST', policies, {
      apiVersion: 'skyhook.nvidia.com/v1alpha1',
      kind: 'DeploymentPolicy',
      metadata: { name: 'careful' },
      spec,
    }),
  ).toEqual(allowed)
  expect(await agents.cluster.admin('POST', skyhooks, skyhook('paced', { deploymentPolicy: 'careful' }))).toEqual(
    allowed,
  )
  const remove = (dry = '') => agents.cluster.admin('DELETE', `${policies}/careful${dry}`)

  expect(
    await until(
      () => remove('?dryRun=All'),
      ({ status }) => status === 403,
      45_000, // until the API server finds a new kind for its policies, at most 30 s after its definition
    ),
  ).toEqual(refused('DeploymentPolicy careful is in use by Skyhook paced; change spec.deploymentPolicy there first'))

  expect(await agents.cluster.admin('PATCH', `${skyhooks}/paced`, { spec: { deploymentPolicy: null } }, merge)).toEqual(
    allowed,
  )
  expect(
    await until(
      () => remove(),
      ({ status }) => status === 200,
    ),
  ).toEqual(allowed)
})
