/**
 * Every right of the chart's roles, tried with the token of node-a's agent on what belongs to node-b, on a real API
 * server. The table in chart/README.md says what comes of each; both and the roles have to agree. Every form of a Lease
 * is in lease-attacks.test.ts.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { beforeAll, describe, expect, test } from 'vitest'
import { ledgerAnnotation } from '../../src/lease/ledger.ts'
import {
  censusLeaseName,
  controlPlaneScope,
  labelKeys,
  ledgerLabels,
  ledgerName,
  nodeLabels,
  type Scope,
  type SkyhookIdentity,
  skyhookScope,
} from '../../src/lease/names.ts'
import { newLease, type SlotTarget } from '../../src/lease/slot.ts'
import { skyhookTypeMeta } from '../../src/schemas/api.ts'
import { allowed, createPod, leases, merge, nodes, policies, refused, skyhooks, useAgents } from './agents.ts'
import { chart, namespace, until, type Answer, type Json } from './chart-cluster.ts'

const agents = useAgents('drain.allowDelete=true')

const pods = '/api/v1/namespaces/default/pods'
const events = '/api/v1/namespaces/default/events'
const budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets'
const slotOfB = 'demo-0a1b2c3d.slot-7'
const counted = { name: 'demo', uid: '886eeb6f-b77f-45fe-b73e-b3dbbbd1780b' }
const ledger = ledgerName(counted)
const annotate = (key: string): Json => ({ metadata: { annotations: { [key]: 'x' } } })

/** A right and what it is tried on, as the page names both; words of the refusal where there is one. */
type Attack = {
  readonly right: string
  readonly on: string
  readonly refusal?: string
  readonly status?: 422
  readonly send: () => Promise<Answer>
}

const attack = (right: string, on: string, send: Attack['send'], refusal?: string): Attack => ({
  right,
  on,
  send,
  ...(refusal !== undefined && { refusal }),
})

/** Reading one object by its name in three ways. */
const reads = (resource: string, on: string, collection: string, name: string): Attack[] => [
  attack(`get ${resource}`, on, () => agents.a('GET', `${collection}/${name}`)),
  attack(`list ${resource}`, on, () => agents.a('GET', collection)),
  attack(`watch ${resource}`, on, () =>
    agents.a('GET', `${collection}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name=${name}`),
  ),
]

const patch = (path: string, body: unknown) => () => agents.a('PATCH', path, body, merge)
const put = (path: string, change: (object: Json) => unknown) => async () => {
  const { body } = await agents.cluster.admin('GET', path)
  change(body)
  return await agents.a('PUT', path, body)
}
const evict = (place: string) => async () => {
  const pod = await createPod(agents.cluster, { place, name: 'leaving', node: 'node-b' })
  return await agents.a('POST', `${pod}/eviction`, eviction('leaving'))
}
const eviction = (name: string): Json => ({ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name } })
const event = (name: string): Json => ({
  metadata: { name },
  involvedObject: { apiVersion: 'v1', kind: 'Node', name: 'node-b' },
  reason: 'Forged',
  message: 'm',
  type: 'Warning',
})
const slot = (name: string): Json => ({
  metadata: {
    name,
    labels: {
      'skyhook.nvidia.com/name': 'demo',
      'skyhook.nvidia.com/scope': /-([0-9a-f]{8})/.exec(name)?.[1],
      'skyhook.nvidia.com/slot-kind': 'slot',
      ...nodeLabels('node-b'),
    },
    ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'node-b', uid: agents.uids['node-b'] }],
  },
  spec: { holderIdentity: 'node-b' },
})
/** A slot of node-a, the attacker. */
const ownSlot = (ofScope: Scope, target: SlotTarget): unknown => {
  const node = { name: 'node-a', uid: agents.uids['node-a'], bootId: '' }
  return newLease(ofScope, target, node, { phase: 'working', generation: 1, packages: [] }, 0)
}
const create = (ofScope: Scope, target: SlotTarget) => () => agents.a('POST', leases, ownSlot(ofScope, target))
const recovery = { kind: 'recovery' } as const
/** A slot of node-b with another name. */
const forged = (name: string): Json => ({
  metadata: { ...(slot('demo-66666666.slot-0')['metadata'] as Json), name },
  spec: { holderIdentity: 'node-b' },
})
const ledgerOf = (skyhook: SkyhookIdentity): Json => ({
  metadata: {
    name: ledgerName(skyhook),
    labels: ledgerLabels(skyhook),
    ownerReferences: [{ ...skyhookTypeMeta, name: skyhook.name, uid: skyhook.uid }],
  },
  spec: { holderIdentity: 'census' },
})
const hold = (lease: Json): unknown => Object.assign(lease['spec'] as Json, { holderIdentity: 'node-a' })

/** The policy reads a cache: the refusal comes as soon as the API server has heard of the first slot. */
const awaitedRefusal = (ofScope: Scope, target: SlotTarget) => async () => {
  await until(
    () => agents.a('POST', `${leases}?dryRun=All`, ownSlot(ofScope, target)),
    ({ status }) => status !== 201,
  )
  return await create(ofScope, target)()
}

const shared = 'a ledger, the election'
const underSharedName = 'a slot under the name of a ledger or the election'
const attacks: readonly Attack[] = [
  ...reads('nodes', 'any Node', nodes, 'node-b'),
  attack(
    'patch nodes',
    'the other Node',
    patch(`${nodes}/node-b`, { spec: { unschedulable: true } }),
    'the agent of node node-a may not change node node-b',
  ),
  attack(
    'patch nodes/status',
    'the other Node',
    patch(`${nodes}/node-b/status`, annotate('skyhook.nvidia.com/x')),
    'the agent of node node-a may not change node node-b',
  ),
  ...reads('pods', 'any pod', pods, 'shop'),
  attack(
    'delete pods',
    'a pod of the other node',
    () => agents.a('DELETE', `${pods}/shop`),
    'the agent of node node-a may not delete pod shop, which is on node node-b',
  ),
  attack('create pods/eviction', 'a pod in `drain.skipNamespaces`', evict('kube-system'), 'may not evict'),
  attack('create pods/eviction', 'any other pod that its disruption budget lets go', evict('default')),
  attack('list poddisruptionbudgets', 'any budget', () => agents.a('GET', budgets)),
  attack('create events', 'an Event about the other Node', () => agents.a('POST', events, event('forged'))),
  attack('patch events', 'any Event there', patch(`${events}/theirs`, { message: 'changed' })),
  ...reads('skyhooks', 'any Skyhook', skyhooks, 'demo'),
  ...reads('deploymentpolicies', 'any policy', policies, 'careful'),
  attack(
    'patch skyhooks',
    'spec, labels, other metadata',
    patch(`${skyhooks}/demo`, { spec: { packages: { tuning: { image: 'evil' } } } }),
    'may not change the spec of Skyhook demo',
  ),
  attack(
    'patch skyhooks',
    'our finalizer, `skyhook.nvidia.com/version`',
    patch(`${skyhooks}/demo`, annotate('skyhook.nvidia.com/version')),
  ),
  attack(
    'update skyhooks/status',
    'any status',
    put(`${skyhooks}/demo/status`, (object) => Object.assign(object, { status: { status: 'complete' } })),
  ),
  ...reads('leases', 'any Lease', leases, slotOfB),
  attack(
    'create leases',
    'a slot of the other node',
    () => agents.a('POST', leases, slot('demo-88888888.slot-8')),
    'may not write slot demo-88888888.slot-8 for node node-b',
  ),
  attack('create leases', 'a slot of each Skyhook and the control plane', create(skyhookScope(counted), { index: 0 })),
  attack('create leases', 'a slot of each Skyhook and the control plane', create(controlPlaneScope, { index: 0 })),
  {
    ...attack(
      'create leases',
      'a second slot of a scope, or a recovery slot beside it',
      awaitedRefusal(skyhookScope(counted), { index: 1 }),
      'node node-a may not have slot',
    ),
    status: 422,
  },
  {
    ...attack(
      'create leases',
      'a second slot of a scope, or a recovery slot beside it',
      awaitedRefusal(skyhookScope(counted), recovery),
      'node node-a may not have slot',
    ),
    status: 422,
  },
  attack(
    'create leases',
    'a slot with the name of another node',
    () => {
      const body = ownSlot(skyhookScope(counted, 'named'), recovery) as { metadata: { name: string } }
      const metadata = { ...body.metadata, name: body.metadata.name.replace('node-node-a', 'node-node-b') }
      return agents.a('POST', leases, { ...body, metadata })
    },
    'is no slot',
  ),
  attack(
    'create leases',
    'slots of scopes that do not exist',
    create(skyhookScope({ ...counted, uid: 'invented' }), recovery),
  ),
  attack('create leases', shared, () =>
    agents.a('POST', leases, { metadata: { name: censusLeaseName }, spec: { holderIdentity: 'node-a' } }),
  ),
  attack('create leases', 'a ledger of a Skyhook that does not exist', () =>
    agents.a('POST', leases, ledgerOf({ ...counted, uid: '77777777-b77f' })),
  ),
  attack(
    'create leases',
    underSharedName,
    () => agents.a('POST', leases, forged('x-deadbeef.ledger')),
    'may not write slot x-deadbeef.ledger for node node-b',
  ),
  attack(
    'create leases',
    underSharedName,
    () => agents.a('POST', leases, forged(censusLeaseName)),
    'only for itself or for nobody',
  ),
  attack(
    'create leases',
    'any other Lease, or one with a finalizer',
    () => agents.a('POST', leases, { metadata: { name: 'free-deadbeef.ledger' }, spec: { holderIdentity: 'node-a' } }),
    'exactly one owner',
  ),
  attack(
    'create leases',
    'any other Lease, or one with a finalizer',
    () => {
      const body = ownSlot(skyhookScope(counted, 'kept'), recovery) as { metadata: Json }
      return agents.a('POST', leases, { ...body, metadata: { ...body.metadata, finalizers: ['example.com/x'] } })
    },
    'may not change finalizers',
  ),
  attack(
    'update leases',
    underSharedName,
    put(`${leases}/${ledger}`, ({ metadata }) =>
      Object.assign((metadata as Json)['labels'] as Json, { [labelKeys.slotKind]: 'slot' }),
    ),
    'may not touch slot',
  ),
  attack('update leases', 'a slot of the other node', put(`${leases}/${slotOfB}`, hold), 'held by node node-b'),
  attack(
    'update leases',
    shared,
    put(`${leases}/${ledger}`, ({ metadata }) =>
      Object.assign(metadata as Json, { annotations: { [ledgerAnnotation]: '' } }),
    ),
  ),
  attack(
    'delete leases',
    'a slot of the other node',
    () => agents.a('DELETE', `${leases}/${slotOfB}`),
    'held by node node-b',
  ),
  attack(
    'delete leases',
    shared,
    () => agents.a('DELETE', `${leases}/${ledger}`),
    `may not delete Lease ${ledger}, which all agents share`,
  ),
  attack('get secrets', 'any Secret there', () => agents.a('GET', `/api/v1/namespaces/${namespace}/secrets/theirs`)),
  attack('get configmaps', 'any ConfigMap there', () =>
    agents.a('GET', `/api/v1/namespaces/${namespace}/configmaps/theirs`),
  ),
  attack('get /readyz', 'the API server', () => agents.a('GET', '/readyz')),
]

/** Rows of the page: what the table says of one verb. */
type Row = { readonly right: string; readonly scope: string; readonly on: string; readonly outcome: string }

async function documentedRows(): Promise<readonly Row[]> {
  const text = await readFile(join(chart, 'README.md'), 'utf8')
  const [, rest = ''] = text.split('## What an agent may do')
  const [section = ''] = rest.split('\n## ')
  return section.split('\n').flatMap((line) => {
    const [, resource = '', verbs = '', scope = '', , on = '', outcome = ''] = line
      .split('|')
      .map((cell) => cell.trim())
    if (!resource.startsWith('`')) return []
    return verbs.split(', ').map((verb) => ({
      right: `${verb} ${resource.replaceAll('`', '')}`,
      scope,
      on,
      outcome: outcome.split(':')[0] ?? '',
    }))
  })
}

type Role = {
  kind: string
  metadata: { name: string; namespace?: string }
  rules: { resources?: string[]; nonResourceURLs?: string[]; verbs: string[] }[]
}

/** `verb resource in scope` of every rule that the chart renders for agents. */
async function grantedRights(...values: string[]): Promise<readonly string[]> {
  const text = await agents.cluster.helm('template', 'skyhookd', chart, ...values)
  const roles = parseAllDocuments(text)
    .map((document) => document.toJS() as Role | null)
    .filter((object) => object?.kind === 'Role' || object?.kind === 'ClusterRole')
  const granted = roles.flatMap((role) => {
    const place = role?.kind === 'ClusterRole' ? 'cluster' : (role?.metadata.namespace ?? '')
    const scope = place === namespace ? 'release' : place
    return (role?.rules ?? []).flatMap(({ resources, nonResourceURLs = [], verbs }) =>
      (resources ?? nonResourceURLs).flatMap((resource) => verbs.map((verb) => `${verb} ${resource} in ${scope}`)),
    )
  })
  return granted.sort()
}

const unique = (texts: readonly string[]): readonly string[] => [...new Set(texts)].sort()

const policy: Json = {
  apiVersion: 'skyhook.nvidia.com/v1alpha1',
  kind: 'DeploymentPolicy',
  metadata: { name: 'careful' },
  spec: { default: { budget: { count: 1 }, strategy: { fixed: {} } } },
}

beforeAll(async () => {
  await createPod(agents.cluster, { place: 'default', name: 'shop', node: 'node-b' })
  const theirs = { metadata: { name: 'theirs' } }
  for (const answer of [
    await agents.b('POST', leases, slot(slotOfB)),
    await agents.b('POST', leases, ledgerOf(counted)),
    await agents.cluster.admin('POST', events, event('theirs')),
    await agents.cluster.admin('POST', policies, policy),
    await agents.cluster.admin('POST', `/api/v1/namespaces/${namespace}/secrets`, theirs),
    await agents.cluster.admin('POST', `/api/v1/namespaces/${namespace}/configmaps`, theirs),
  ])
    expect(answer).toEqual(allowed)
})

test('the page lists every right that the roles grant, and no other', async () => {
  const documented = unique((await documentedRows()).map(({ right, scope }) => `${right} in ${scope}`))
  expect(documented).toEqual(unique(await grantedRights('--set', 'drain.allowDelete=true')))
})

test('deleting pods is the one right that a value of the chart adds', async () => {
  const standard = await grantedRights()
  const all = await grantedRights('--set', 'drain.allowDelete=true')
  expect(all.filter((right) => !standard.includes(right))).toEqual(['delete pods in cluster'])
})

test('every right is attacked, and the page says what comes of it', async () => {
  const attacked = attacks.map(({ right, on, refusal }) => `${right}: ${on}: ${refusal ? 'refused' : 'reachable'}`)
  expect(unique(attacked)).toEqual(
    unique((await documentedRows()).map(({ right, on, outcome }) => `${right}: ${on}: ${outcome}`)),
  )
})

describe("another node's objects", () => {
  test.each(attacks.map((one) => [one.refusal ? 'is refused' : 'reaches', one.right, one.on, one] as const))(
    "a token of another node's agent %s: %s on %s",
    async (_outcome, _right, _on, { send, refusal, status }) => {
      expect(await send()).toEqual(refusal === undefined ? allowed : refused(refusal, status))
    },
  )
})
