/** What the token of one node's agent permits: the work of its own node, and nothing of another's. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ApiError } from '../../src/kube/errors.ts'
import type { Lease } from '../../src/lease/slot.ts'
import type { KubeTransport } from '../../src/kube/transport.ts'
import { agentOn } from '../kit/cluster/agents.ts'
import { uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import { paths, tokenTransport } from '../kit/cluster/kube.ts'
import { journaled, journalOf, releaseFileOf, manifest, shellscript, publishedState } from '../kit/cluster/skyhooks.ts'
import { slotsOf } from '../kit/cluster/slots.ts'

const cluster = useCluster()
const [own, other] = ['node-1', 'node-2'] as const
const name = uniqueName('boundary')
let thief: KubeTransport
let slot: Lease

/** The slot of the other node is held while a step waits. */
beforeAll(async () => {
  await cluster.apply(
    manifest(name, {
      interruptionBudget: { count: 1 },
      packages: { work: shellscript(cluster.registry, journaled(name, 'apply')) },
    }),
    other,
  )
  await cluster.host(other).awaitLine(journalOf(name), 'apply begins')
  slot = slotsOf(cluster.history.now, name)[0]?.lease as Lease
  const pod = agentOn(cluster.history.now, own)?.metadata
  const bound = [
    '--bound-object-kind',
    'Pod',
    '--bound-object-name',
    pod?.name ?? '',
    '--bound-object-uid',
    pod?.uid ?? '',
  ]
  const token = await cluster.sandbox.kubectl(['-n', 'skyhook', 'create', 'token', 'skyhookd', ...bound])
  thief = tokenTransport(cluster.kubeconfig, token.trim())
})
afterAll(() => thief.close())

/** `403: <why>` of a refusal, `allowed` otherwise. */
async function attempt(method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<string> {
  try {
    const contentType = method === 'PATCH' ? 'application/merge-patch+json' : undefined
    await thief.json(method, path, { body, contentType, query: { dryRun: 'All' } })
    return 'allowed'
  } catch (error) {
    if (error instanceof ApiError) return `${error.status}: ${error.message}`
    throw error
  }
}

const annotated = (value: string) => ({ metadata: { annotations: { [`skyhook.nvidia.com/status_${name}`]: value } } })
const stolenSlot = () => ({ spec: { holderIdentity: own } })

describe('the token of the agent of one node', () => {
  test("an agent's token may write the status of its own Node", async () => {
    expect(await attempt('PATCH', `${paths.nodes}/${own}`, annotated('complete'))).toBe('allowed')
  })

  test.each<[string, () => Parameters<typeof attempt>]>([
    ['marks another Node as complete', () => ['PATCH', `${paths.nodes}/${other}`, annotated('complete')]],
    ['cordons another Node', () => ['PATCH', `${paths.nodes}/${other}`, { spec: { unschedulable: true } }]],
    [
      'changes the status of another Node',
      () => ['PATCH', `${paths.nodes}/${other}/status`, { status: { conditions: [] } }],
    ],
    ["takes another node's slot by a patch", () => ['PATCH', `${paths.leases}/${slot.metadata.name}`, stolenSlot()]],
    [
      "takes another node's slot by a PUT",
      () => ['PUT', `${paths.leases}/${slot.metadata.name}`, { ...slot, ...stolenSlot() }],
    ],
    ["frees another node's slot", () => ['DELETE', `${paths.leases}/${slot.metadata.name}`]],
    ['takes a slot in the name of another node', () => ['POST', paths.leases, forgedSlot(slot)]],
    [
      "changes a Skyhook's packages",
      () => ['PATCH', `${paths.skyhooks}/${name}`, { spec: { packages: { work: { version: '6.6.6' } } } }],
    ],
    [
      "changes a Skyhook's budget",
      () => ['PATCH', `${paths.skyhooks}/${name}`, { spec: { interruptionBudget: { count: 99 } } }],
    ],
    ['deletes a Skyhook', () => ['DELETE', `${paths.skyhooks}/${name}`]],
    ['creates a Skyhook', () => ['POST', paths.skyhooks, manifest(`${name}-2`, { packages: {} })]],
  ])("an agent's token is refused when it %s", async (_, request) => {
    // a second slot of a scope is refused with 422, by another policy
    expect(await attempt(...request())).toMatch(/^(403|422): .*(node|skyhook)/)
  })

  test('the other node completes despite all refused requests', async () => {
    await cluster.host(other).write(releaseFileOf(name), '')
    await cluster.history.eventually(
      'it is complete',
      ({ nodes }) => publishedState(nodes.get(other), name).status === 'complete',
    )
  })
})

function forgedSlot({ metadata: { labels, annotations, ownerReferences, name: slotName }, spec }: Lease): object {
  const metadata = { name: slotName.replace('.slot-0', '.slot-1'), labels, annotations, ownerReferences }
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec }
}
