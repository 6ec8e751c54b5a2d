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
  type Scope,
  type SkyhookIdentity,
  skyhookScope,
} from '../../src/lease/names.ts'
import { newLease, type SlotTarget } from '../../src/lease/slot.ts'
import { skyhookTypeMeta } from '../../src/schemas/api.ts'
import { allowed, createPod, leases, nodes, policies, refused, skyhooks, slotOf, useAgents } from './agents.ts'
import { chart, namespace, until, type Json } from './chart-cluster.ts'
import { get, patch, post, put, remove, send, type Wanted } from './request-rows.ts'

const agents = useAgents('drain.allowDelete=true')

const pods = '/api/v1/namespaces/default/pods'
const events = '/api/v1/namespaces/default/events'
const budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets'
const ofRelease = `/api/v1/namespaces/${namespace}`
const slotOfB = 'demo-0a1b2c3d.slot-7'
const counted = { name: 'demo', uid: '886eeb6f-b77f-45fe-b73e-b3dbbbd1780b' }
const ledger = ledgerName(counted)
const annotate = (key: string): Json => ({ metadata: { annotations: { [key]: 'x' } } })

/** A right and what it is tried on, as the page names both; text of the refusal where there is one. */
type Attack = readonly [right: string, on: string, wanted: Wanted, refusal?: string, status?: 422]

/** Reading one object by its name in three ways. */
const reads = (resource: string, on: string, collection: string, name: string): Attack[] => [
  [`get ${resource}`, on, get(`${collection}/${name}`)],
  [`list ${resource}`, on, get(collection)],
  [`watch ${resource}`, on, get(`${collection}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name=${name}`)],
]

const evict = (place: string): Wanted =>
  post(`/api/v1/namespaces/${place}/pods/leaving/eviction`, async () => {
    await createPod(agents.cluster, { place, name: 'leaving', node: 'node-b' })
    return { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'leaving' } }
  })
const event = (name: string): Json => ({
  metadata: { name },
  involvedObject: { apiVersion: 'v1', kind: 'Node', name: 'node-b' },
  reason: 'Forged',
  message: 'm',
  type: 'Warning',
})
/** A slot of node-a, the attacker. */
const ownSlot = (ofScope: Scope, target: SlotTarget) => {
  const node = { name: 'node-a', uid: agents.uids['node-a'], bootId: '' }
  return newLease(ofScope, target, node, { phase: 'working', generation: 1, packages: [] }, 0)
}
const create = (ofScope: Scope, target: SlotTarget): Wanted => post(leases, () => ownSlot(ofScope, target))
const recovery = { kind: 'recovery' } as const
/** A recovery slot of node-a with other metadata. */
const changed = (compartment: string, change: (metadata: { name: string }) => Json): Wanted =>
  post(leases, () => {
    const body = ownSlot(skyhookScope(counted, compartment), recovery)
    return { ...body, metadata: { ...body.metadata, ...change(body.metadata) } }
  })
/** A slot of node-b with another name. */
const forged = (name: string): Wanted =>
  post(leases, () => {
    const slot = slotOf(agents, 'node-b', 'demo-66666666.slot-0')
    return { ...slot, metadata: { ...slot.metadata, name } }
  })
const ledgerOf = (skyhook: SkyhookIdentity): Json => ({
  metadata: {
    name: ledgerName(skyhook),
    labels: ledgerLabels(skyhook),
    ownerReferences: [{ ...skyhookTypeMeta, name: skyhook.name, uid: skyhook.uid }],
  },
  spec: { holderIdentity: 'census' },
})
const leaseOfA = (name: string): Json => ({ metadata: { name }, spec: { holderIdentity: 'node-a' } })
const hold = (lease: Json): unknown => Object.assign(lease['spec'] as Json, { holderIdentity: 'node-a' })

/** The policy reads a cache: the refusal comes as soon as the API server has heard of the first slot. */
const secondSlot = (target: SlotTarget): Attack => [
  'create leases',
  'a second slot of a scope, or a recovery slot beside it',
  post(leases, async () => {
    const slot = ownSlot(skyhookScope(counted), target)
    await until(
      () => agents.a('POST', `${leases}?dryRun=All`, slot),
      ({ status }) => status !== 201,
    )
    return slot
  }),
  'node node-a may not have slot',
  422,
]

const shared = 'a ledger, the election'
const underSharedName = 'a slot under the name of a ledger or the election'
const anyOther = 'any other Lease, or one with a finalizer'
const attacks: readonly Attack[] = [
  ...reads('nodes', 'any Node', nodes, 'node-b'),
  [
    'patch nodes',
    'the other Node',
    patch(`${nodes}/node-b`, { spec: { unschedulable: true } }),
    'the agent of node node-a may not change node node-b',
  ],
  [
    'patch nodes/status',
    'the other Node',
    patch(`${nodes}/node-b/status`, annotate('skyhook.nvidia.com/x')),
    'the agent of node node-a may not change node node-b',
  ],
  ...reads('pods', 'any pod', pods, 'shop'),
  [
    'delete pods',
    'a pod of the other node',
    remove(`${pods}/shop`),
    'the agent of node node-a may not delete pod shop, which is on node node-b',
  ],
  ['create pods/eviction', 'a pod in `drain.skipNamespaces`', evict('kube-system'), 'may not evict'],
  ['create pods/eviction', 'any other pod whose disruption budget allows it', evict('default')],
  ['list poddisruptionbudgets', 'any budget', get(budgets)],
  ['create events', 'an Event about the other Node', post(events, event('forged'))],
  ['patch events', 'any Event there', patch(`${events}/theirs`, { message: 'changed' })],
  ...reads('skyhooks', 'any Skyhook', skyhooks, 'demo'),
  ...reads('deploymentpolicies', 'any policy', policies, 'careful'),
  [
    'patch skyhooks',
    'spec, labels, other metadata',
    patch(`${skyhooks}/demo`, { spec: { packages: { tuning: { image: 'evil' } } } }),
    'may not change the spec of Skyhook demo',
  ],
  [
    'patch skyhooks',
    'our finalizer, `skyhook.nvidia.com/version`',
    patch(`${skyhooks}/demo`, annotate('skyhook.nvidia.com/version')),
  ],
  [
    'update skyhooks/status',
    'any status',
    put(agents, `${skyhooks}/demo/status`, (object) => Object.assign(object, { status: { status: 'complete' } })),
  ],
  ...reads('leases', 'any Lease', leases, slotOfB),
  [
    'create leases',
    'a slot of the other node',
    post(leases, () => slotOf(agents, 'node-b', 'demo-88888888.slot-8')),
    'may not write slot demo-88888888.slot-8 for node node-b',
  ],
  ['create leases', 'a slot of each Skyhook and the control plane', create(skyhookScope(counted), { index: 0 })],
  ['create leases', 'a slot of each Skyhook and the control plane', create(controlPlaneScope, { index: 0 })],
  secondSlot({ index: 1 }),
  secondSlot(recovery),
  [
    'create leases',
    'a slot with the name of another node',
    changed('named', ({ name }) => ({ name: name.replace('node-node-a', 'node-node-b') })),
    'is not a slot',
  ],
  [
    'create leases',
    'slots of scopes that do not exist',
    create(skyhookScope({ ...counted, uid: 'invented' }), recovery),
  ],
  ['create leases', shared, post(leases, leaseOfA(censusLeaseName))],
  [
    'create leases',
    'a ledger of a Skyhook that does not exist',
    post(leases, ledgerOf({ ...counted, uid: '77777777-b77f' })),
  ],
  [
    'create leases',
    underSharedName,
    forged('x-deadbeef.ledger'),
    'may not write slot x-deadbeef.ledger for node node-b',
  ],
  ['create leases', underSharedName, forged(censusLeaseName), 'only for itself or for nobody'],
  ['create leases', anyOther, post(leases, leaseOfA('free-deadbeef.ledger')), 'exactly one owner'],
  ['create leases', anyOther, changed('kept', () => ({ finalizers: ['example.com/x'] })), 'may not change finalizers'],
  [
    'update leases',
    underSharedName,
    put(agents, `${leases}/${ledger}`, ({ metadata }) =>
      Object.assign((metadata as Json)['labels'] as Json, { [labelKeys.slotKind]: 'slot' }),
    ),
    'may not touch slot',
  ],
  ['update leases', 'a slot of the other node', put(agents, `${leases}/${slotOfB}`, hold), 'held by node node-b'],
  [
    'update leases',
    shared,
    put(agents, `${leases}/${ledger}`, ({ metadata }) =>
      Object.assign(metadata as Json, { annotations: { [ledgerAnnotation]: '' } }),
    ),
  ],
  ['delete leases', 'a slot of the other node', remove(`${leases}/${slotOfB}`), 'held by node node-b'],
  ['delete leases', shared, remove(`${leases}/${ledger}`), `may not delete Lease ${ledger}, which all agents share`],
  ['get secrets', 'any Secret there', get(`${ofRelease}/secrets/theirs`)],
  ['get configmaps', 'any ConfigMap there', get(`${ofRelease}/configmaps/theirs`)],
  ['get /readyz', 'the API server', get('/readyz')],
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
    await agents.b('POST', leases, slotOf(agents, 'node-b', slotOfB)),
    await agents.b('POST', leases, ledgerOf(counted)),
    await agents.cluster.admin('POST', events, event('theirs')),
    await agents.cluster.admin('POST', policies, policy),
    await agents.cluster.admin('POST', `${ofRelease}/secrets`, theirs),
    await agents.cluster.admin('POST', `${ofRelease}/configmaps`, theirs),
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
  const attacked = attacks.map(([right, on, , refusal]) => `${right}: ${on}: ${refusal ? 'refused' : 'reachable'}`)
  expect(unique(attacked)).toEqual(
    unique((await documentedRows()).map(({ right, on, outcome }) => `${right}: ${on}: ${outcome}`)),
  )
})

describe("another node's objects", () => {
  test.each(attacks.map((one) => [one[3] ? 'is refused' : 'reaches', ...one] as const))(
    "a token of another node's agent %s: %s on %s",
    async (_outcome, _right, _on, wanted, refusal, status) => {
      expect(await send(agents.a, wanted)).toEqual(refusal === undefined ? allowed : refused(refusal, status))
    },
  )
})
