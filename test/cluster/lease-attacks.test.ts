/**
 * Every form of a Lease, written by everybody who has some right, on a real API server: name × labels × who it names,
 * and each verb on each Lease that is there. What may come of it is read from the documentation (lease-reading.ts);
 * what came of it is read from the API server as its administrator.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { checkCluster } from '../../src/cli/doctor/read/check-cluster.ts'
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import { nodeLabels, skyhookScope } from '../../src/lease/names.ts'
import { acquire } from '../../src/lease/slot-acquisition.ts'
import { listScope } from '../../src/lease/slot-reads.ts'
import { blocksOf, textOfPage } from '../kit/pages/page-commands.ts'
import { allowed, leases, merge, strategic, useAgents } from './agents.ts'
import { namespace, until, type Json, type Send } from './chart-cluster.ts'
import { editorOf } from './editors.ts'
import { type LeaseObject, mayWrite } from './lease-reading.ts'

const run = promisify(execFile)
const agents = useAgents()
const admin: Send = async (...request) => await agents.cluster.admin(...request)

/** Each request has a scope of its own: the policy of one slot per scope is tried elsewhere. */
let scopes = 0
const nextScope = (): string => (scopes++).toString(16).padStart(8, 'a')

type Draft = { readonly name: string; readonly scope: string }
const forms = {
  'a slot': (scope) => `demo-${scope}.slot-3`,
  'a slot of a compartment': (scope) => `demo.gpu-${scope}.slot-0`,
  'a slot of joining nodes': (scope) => `demo-${scope}.bootstrap-1`,
  'a slot named by the own node': (scope) => `demo-${scope}.node-node-a`,
  'a slot named by the other node': (scope) => `demo-${scope}.node-node-b`,
  'the slot of the control plane': () => 'control-plane.slot-0',
  'a second slot of the control plane': () => 'control-plane.slot-1',
  'the own slot of the control plane': () => 'control-plane.node-node-a',
  'a ledger': (scope) => `demo-${scope}.ledger`,
  'a ledger of another Skyhook': (scope) => `other-${scope}.ledger`,
  'a ledger of another UID': () => 'demo-deadbeef.ledger',
  'a ledger without UID': () => 'demo.ledger',
  'a node called like a ledger': (scope) => `demo-${scope}.node-x-deadbeef.ledger`,
  'the election': () => 'skyhookd-census',
  'a free name': (scope) => `anything-${scope}`,
} as const satisfies Record<string, (scope: string) => string>

const prefixed = (labels: Json): Json =>
  Object.fromEntries(Object.entries(labels).map(([label, value]) => [`skyhook.nvidia.com/${label}`, value]))
const ofSkyhook = (kind: string, scope: string): Json => prefixed({ name: 'demo', scope, 'slot-kind': kind })
const ofControlPlane = (kind: string): Json => prefixed({ name: '', scope: 'control-plane', 'slot-kind': kind })
const labelings: Readonly<Record<string, (scope: string) => Json>> = {
  ...Object.fromEntries(
    ['slot', 'bootstrap', 'unlimited', 'recovery', 'control-plane', 'ledger', 'newer'].map((kind) => [
      kind,
      (scope: string) => ofSkyhook(kind, scope),
    ]),
  ),
  'slot of the control plane': () => ofControlPlane('control-plane'),
  'recovery of the control plane': () => ofControlPlane('recovery'),
  'no kind': (scope) => prefixed({ name: 'demo', scope }),
  none: () => ({}),
}

type Who = { readonly holder?: string; readonly owners?: readonly Json[]; readonly labels?: Json }
const ofNode = (name: 'node-a' | 'node-b'): Json => ({ apiVersion: 'v1', kind: 'Node', name, uid: agents.uids[name] })
const ofDemo = (uid: string): Json => ({
  apiVersion: 'skyhook.nvidia.com/v1alpha1',
  kind: 'Skyhook',
  name: 'demo',
  uid,
})
const own = (): Who => ({ holder: 'node-a', owners: [ofNode('node-a')], labels: nodeLabels('node-a') })
const whos: Readonly<Record<string, (scope: string) => Who>> = {
  'the own node': own,
  'the other node': () => ({ holder: 'node-b', owners: [ofNode('node-b')], labels: nodeLabels('node-b') }),
  'the other node as holder': () => ({ ...own(), holder: 'node-b' }),
  'the other node as owner': () => ({ ...own(), owners: [ofNode('node-b')] }),
  'the other node in the labels': () => ({ ...own(), labels: nodeLabels('node-b') }),
  'two owners': () => ({ ...own(), owners: [ofNode('node-a'), ofNode('node-b')] }),
  'no owner': () => ({ ...own(), owners: [] }),
  'no holder': () => ({ owners: [ofNode('node-a')], labels: nodeLabels('node-a') }),
  'no label of a node': () => ({ ...own(), labels: {} }),
  'another shard': () => ({ ...own(), labels: { ...nodeLabels('node-a'), ...prefixed({ 'node-shard': '3' }) } }),
  'the census': (scope) => ({ holder: 'census', owners: [ofDemo(`${scope}-b77f`)] }),
  'the census, for another UID': () => ({ holder: 'census', owners: [ofDemo('0-b77f')] }),
  'the own node for the Skyhook': (scope) => ({ holder: 'node-a', owners: [ofDemo(`${scope}-b77f`)] }),
  'the own node alone': () => ({ holder: 'node-a' }),
  'the other node alone': () => ({ holder: 'node-b' }),
  nobody: () => ({}),
}

const more: Readonly<Record<string, Json>> = {
  'a finalizer': { finalizers: ['example.com/stays'] },
  '250 kB': { annotations: { filler: 'x'.repeat(250_000) } },
}

function leaseOf({ name, scope }: Draft, labeling: string, who: string, extra: Json = {}): LeaseObject {
  const { holder, owners = [], labels = {} } = whos[who]?.(scope) ?? {}
  return {
    metadata: { name, labels: { ...labelings[labeling]?.(scope), ...labels }, ownerReferences: owners, ...extra },
    spec: holder === undefined ? {} : { holderIdentity: holder },
  } as LeaseObject
}

/** A slot, a ledger and the election as agents write them. */
const honest = [
  ['a slot', 'slot', 'the own node'],
  ['a ledger', 'ledger', 'the census'],
  ['the election', 'none', 'the own node alone'],
] as const

/** Sends it; whether the API server has it then. Leaves nothing. */
async function comesThrough(send: Send, lease: LeaseObject): Promise<boolean> {
  const { name } = lease.metadata
  const path = `${leases}/${name}`
  // The policy of one slot per scope may not have seen the end of the one before.
  const { status } = await until(
    () => send('POST', leases, lease),
    (answer) => answer.status !== 422,
  )
  expect([name, status]).toEqual([name, expect.toBeOneOf([201, 403])])
  if (status === 403) return false
  const isThere = (await admin('GET', path)).status === 200
  expect(await admin('PATCH', path, { metadata: { finalizers: null } }, merge)).toEqual(allowed)
  expect(await admin('DELETE', path)).toEqual(allowed)
  return isThere
}
const names = async (): Promise<readonly string[]> => {
  const { body } = await admin('GET', leases)
  return (body['items'] as LeaseObject[]).map(({ metadata }) => metadata.name)
}

/** What differs from what the documentation says. */
const surprise = (what: string, isReached: boolean, mayReach: boolean): string[] =>
  isReached === mayReach ? [] : [`${isReached ? 'reached' : 'refused'}: ${what}`]

describe('a Lease that an agent creates', () => {
  test.concurrent.each(Object.entries(forms))(
    'an agent creates a Lease with the name of %s only as a slot of its own or as one of those that all share',
    async (form, nameOf) => {
      const found: string[] = []
      for (const labeling of Object.keys(labelings))
        for (const who of Object.keys(whos)) {
          const scope = nextScope()
          const lease = leaseOf({ name: nameOf(scope), scope }, labeling, who)
          const isReached = await comesThrough(agents.a, lease)
          found.push(
            ...surprise(`${form} labeled as ${labeling} of ${who}`, isReached, mayWrite('node-a', undefined, lease)),
          )
        }
      expect(found).toEqual([])
    },
  )

  test.each(honest)('an agent creates %s of any size and with no finalizer', async (form, labeling, who) => {
    const scope = nextScope()
    const draft = { name: forms[form](scope), scope }
    for (const [what, extra] of Object.entries(more)) {
      const lease = leaseOf(draft, labeling, who, extra)
      expect([what, await comesThrough(agents.a, lease)]).toEqual([what, mayWrite('node-a', undefined, lease)])
    }
  })

  test('an agent cannot have the API server make up the name', async () => {
    const { metadata, ...rest } = leaseOf({ name: '', scope: 'dddddddd' }, 'slot', 'the own node')
    const made = { ...rest, metadata: { ...metadata, name: undefined, generateName: 'anything-' } }
    expect(await agents.a('POST', leases, made)).toMatchObject({ status: 403 })
  })
})

/** Leases that are there, by what they are. */
const bases: Readonly<Record<string, () => LeaseObject>> = {
  'an own slot': () => leaseOf({ name: 'demo-cccccc01.slot-3', scope: 'cccccc01' }, 'slot', 'the own node'),
  'an own slot with the name of the node': () =>
    leaseOf({ name: 'demo-cccccc02.node-node-a', scope: 'cccccc02' }, 'recovery', 'the own node'),
  'a slot of the other node': () =>
    leaseOf({ name: 'demo-cccccc03.slot-4', scope: 'cccccc03' }, 'slot', 'the other node'),
  'a ledger': () => leaseOf({ name: 'demo-cccccc04.ledger', scope: 'cccccc04' }, 'ledger', 'the census'),
  'the election': () => leaseOf({ name: 'skyhookd-census', scope: 'cccccc05' }, 'none', 'the other node alone'),
  'a Lease without labels under the name of a ledger': () =>
    leaseOf({ name: 'demo-cccccc06.ledger', scope: 'cccccc06' }, 'none', 'the own node alone'),
  'a slot under the name of a ledger': () =>
    leaseOf({ name: 'demo-cccccc07.ledger', scope: 'cccccc07' }, 'slot', 'the other node'),
  'a Lease of somebody else': () =>
    leaseOf({ name: 'theirs-cccccc08', scope: 'cccccc08' }, 'none', 'the other node alone'),
}
const scopeOf = (name: string): string => /cccccc../.exec(name)?.[0] ?? 'cccccc05'

/** Puts it there as it was; returns what is there. */
async function place(lease: LeaseObject, found?: Json): Promise<Json> {
  const path = `${leases}/${lease.metadata.name}`
  const { body } = found === undefined ? await admin('GET', path) : { body: found }
  const { resourceVersion, uid } = (body['metadata'] ?? {}) as Json
  const answer =
    uid === undefined
      ? await admin('POST', leases, lease)
      : await admin('PUT', path, { ...lease, metadata: { ...lease.metadata, resourceVersion, uid } })
  expect(answer).toEqual(allowed)
  return answer.body
}

const contentOf = (object: Json): string => {
  const { labels, annotations, ownerReferences, finalizers } = object['metadata'] as Json
  return JSON.stringify([labels, annotations, ownerReferences, finalizers, object['spec']])
}

describe('a Lease that is there', () => {
  test.concurrent.each(Object.entries(bases))('an agent replaces %s only by what it may be', async (base, make) => {
    const before = make()
    const { name } = before.metadata
    const path = `${leases}/${name}`
    let current = await place(before)
    const found: string[] = []
    const attempt = async (what: string, after: LeaseObject): Promise<void> => {
      const { resourceVersion, uid } = current['metadata'] as Json
      const metadata = { ...after.metadata, resourceVersion, uid }
      const { status } = await agents.a('PUT', path, { ...after, metadata })
      const { body } = await admin('GET', path)
      const isReached = contentOf(body) !== contentOf(current)
      // What it is already is no change, and may be written by whoever may touch it.
      if (isReached || status === 403) found.push(...surprise(what, isReached, mayWrite('node-a', before, after)))
      current = isReached ? await place(before, body) : body
    }
    for (const labeling of Object.keys(labelings))
      for (const who of Object.keys(whos))
        await attempt(`labeled as ${labeling} of ${who}`, leaseOf({ name, scope: scopeOf(name) }, labeling, who))
    for (const [what, extra] of Object.entries(more)) {
      const { metadata, spec } = before
      await attempt(`with ${what}`, { metadata: { ...metadata, ...extra }, ...(spec && { spec }) })
    }
    expect(found, base).toEqual([])
  })

  test.each(Object.entries(bases))('an agent patches no Lease: %s', async (_, make) => {
    const before = make()
    const current = await place(before)
    for (const type of [merge, strategic, 'application/json-patch+json', 'application/apply-patch+yaml'])
      expect(
        await agents.a(
          'PATCH',
          `${leases}/${before.metadata.name}?fieldManager=x`,
          { spec: { holderIdentity: 'x' } },
          type,
        ),
      ).toMatchObject({ status: 403 })
    const { body } = await admin('GET', `${leases}/${before.metadata.name}`)
    expect(contentOf(body)).toBe(contentOf(current))
  })

  test.each(Object.entries(bases))('an agent deletes %s only if it is its own slot', async (_, make) => {
    const before = make()
    await place(before)
    await agents.a('DELETE', `${leases}/${before.metadata.name}`)
    expect((await names()).includes(before.metadata.name)).toBe(!mayWrite('node-a', before, undefined))
  })

  test('an agent deletes no collection of Leases', async () => {
    await Promise.all(Object.values(bases).map(async (make) => await place(make())))
    const before = await names()
    expect(await agents.a('DELETE', leases)).toMatchObject({ status: 403 })
    expect(await names()).toEqual(before)
  })
})

describe('somebody else', () => {
  const people = {
    'a token of the agents that names no node': async () => agents.unbound,
    'somebody who may only edit Skyhooks': async () => await editorOf(agents.cluster, 'skyhooks'),
    'somebody who may only edit Nodes': async () => await editorOf(agents.cluster, 'nodes'),
    'somebody who may edit the Leases there': async () => await editorOf(agents.cluster, 'leases'),
  } as const
  const send = {} as Record<keyof typeof people, Send>

  beforeAll(async () => {
    for (const [who, make] of Object.entries(people)) send[who as keyof typeof people] = await make()
  })

  test.each(Object.keys(people) as (keyof typeof people)[])('%s writes no Lease without the right to', async (who) => {
    const mayEdit = who === 'somebody who may edit the Leases there'
    const found: string[] = []
    for (const [form, labeling, whose] of honest) {
      const scope = nextScope()
      const lease = leaseOf({ name: forms[form](scope), scope }, labeling, whose)
      await admin('DELETE', `${leases}/${lease.metadata.name}`)
      found.push(...surprise(`POST ${form}`, await comesThrough(send[who], lease), mayEdit))
    }
    for (const [base, make] of Object.entries(bases)) {
      const before = make()
      const path = `${leases}/${before.metadata.name}`
      const changes = {
        PUT: async (current: Json) =>
          await send[who]('PUT', path, { ...current, spec: { holderIdentity: 'node-a', leaseDurationSeconds: 7 } }),
        PATCH: async () => await send[who]('PATCH', path, { spec: { leaseDurationSeconds: 7 } }, merge),
        DELETE: async () => await send[who]('DELETE', path),
      }
      for (const [verb, change] of Object.entries(changes)) {
        const current = await place(before)
        await change(current)
        const { status, body } = await admin('GET', path)
        found.push(...surprise(`${verb} ${base}`, status === 404 || contentOf(body) !== contentOf(current), mayEdit))
      }
    }
    expect(found).toEqual([])
  })
})

describe('a slot under the name of a ledger', () => {
  const demo = { name: 'demo', uid: '886eeb6f-b77f-45fe-b73e-b3dbbbd1780b' }
  const scope = skyhookScope(demo)
  const forge = async (): Promise<void> => {
    const slots = ['x', 'y', 'z'].map((name) =>
      leaseOf({ name: `${name}-deadbeef.ledger`, scope: scope.hash }, 'slot', 'the other node'),
    )
    for (const lease of slots) await place(lease)
  }
  const forged = async (): Promise<readonly string[]> =>
    (await names()).filter((name) => name.endsWith('-deadbeef.ledger'))

  test('a slot under the name of a ledger takes no room from others', async () => {
    await forge()
    const transport = await agents.transportOf('node-a')
    const leasesOfA = { transport, namespace, clock: systemClock }
    expect((await listScope(leasesOfA, scope)).slots).toEqual([])
    const node = { name: 'node-a', uid: agents.uids['node-a'], bootId: 'boot' }
    const progress = { phase: 'draining', generation: 1, packages: [] } as const
    const acquired = await acquire(leasesOfA, { scope, node, progress, admissionFrom: () => ({ limit: 1 }) })
    expect(acquired).toMatchObject({ outcome: 'held', isNew: true })
    transport.close()
  })

  test("doctor finds slots under the name of a ledger, and doctor's command removes them", async () => {
    await forge()
    const { server } = agents.cluster
    const request = { namespace, clock: systemClock, signal: new AbortController().signal }
    const found = (await checkCluster(server.admin, request)).flatMap(({ findings }) => findings)
    const { command = '', severity } = found.find(({ id }) => id === 'slot-forged') ?? {}
    expect(severity).toBe('error')
    await server.kubectl(...command.split(' ').slice(1))
    expect(await forged()).toEqual([])
  })

  test('the runbook finds and removes slots under the name of a ledger', async () => {
    await forge()
    const bin = (await run('test/sandbox/build-binaries.sh', ['--path'])).stdout.trim()
    const { kubeconfig } = agents.cluster.server
    const env = { ...process.env, PATH: `${bin}:${process.env['PATH']}`, KUBECONFIG: kubeconfig, NAMESPACE: namespace }
    const blocks = blocksOf('operations.md', textOfPage('operations.md')).filter(
      ({ section }) => section === 'Forged slots',
    )
    const outputs = await Promise.all(
      blocks.slice(0, 1).map(async ({ script }) => await run('bash', ['-euo', 'pipefail', '-c', script], { env })),
    )
    expect(outputs.map(({ stdout }) => stdout.trim().split('\n').length)).toEqual([3])
    for (const { script } of blocks.slice(1)) await run('bash', ['-euo', 'pipefail', '-c', script], { env })
    expect([blocks.length, await forged()]).toEqual([2, []])
  })
})
