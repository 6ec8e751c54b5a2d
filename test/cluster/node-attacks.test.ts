/**
 * Each verb on Nodes with each form of a name, by everybody who has some right, on a real API server. What may come of
 * it is read from docs/usage/security.md; what came of it is read from the Node as the API server has it afterwards.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { allowed, merge, nodes, strategic, useAgents } from './agents.ts'
import type { Json, Send } from './chart-cluster.ts'
import { editorOf } from './editors.ts'

const agents = useAgents()
const admin: Send = async (...request) => await agents.cluster.admin(...request)

const actors = {
  'the agent of node-a': async () => agents.a,
  'a token of the agents that names no node': async () => agents.unbound,
  'somebody who may only edit Skyhooks': async () => await editorOf(agents.cluster, 'skyhooks'),
  'somebody who may only edit Leases': async () => await editorOf(agents.cluster, 'leases'),
  'somebody who may edit Nodes': async () => await editorOf(agents.cluster, 'nodes'),
} as const
type Actor = keyof typeof actors
const send = {} as Record<Actor, Send>

/** Beside node-b, names that an inexact comparison takes for that of node-a. */
const others = [
  'node-b',
  'node',
  'node-a0',
  'node-a.example.com',
  `node-a.${'x'.repeat(57)}`,
  `node-a.${'x'.repeat(63)}.y`,
]

let count = 0
/** A merge patch that changes something each time, and whether an agent may do so to its own Node. */
const parts: Readonly<Record<string, { mayOwn: boolean; status?: true; patch: (value: string) => Json }>> = {
  'an annotation of ours': { mayOwn: true, patch: (value) => annotated('skyhook.nvidia.com/nodeState_demo', value) },
  'a large annotation of ours': {
    mayOwn: true,
    patch: (value) => annotated('skyhook.nvidia.com/nodeState_demo', value.padEnd(200_000, 'x')),
  },
  'an annotation for autoscalers': { mayOwn: true, patch: (value) => annotated('karpenter.sh/do-not-disrupt', value) },
  'an annotation of others': { mayOwn: false, patch: (value) => annotated('example.com/theirs', value) },
  'a status label': { mayOwn: true, patch: (value) => labeled('skyhook.nvidia.com/status_demo', value) },
  'a label of ours that selects': { mayOwn: false, patch: (value) => labeled('skyhook.nvidia.com/node-type', value) },
  'a label of others': { mayOwn: false, patch: (value) => labeled('zone', value) },
  'a finalizer': { mayOwn: false, patch: (value) => ({ metadata: { finalizers: [`example.com/${value}`] } }) },
  'an owner': {
    mayOwn: false,
    patch: (uid) => ({ metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'node-b', uid }] } }),
  },
  'the taint of new nodes': { mayOwn: true, patch: (value) => tainted('skyhook.nvidia.com', value) },
  'a taint of others': { mayOwn: false, patch: (value) => tainted('example.com/theirs', value) },
  'the provider': { mayOwn: false, patch: (value) => ({ spec: { providerID: `x://${value}` } }) },
  'a condition of ours': { mayOwn: true, status: true, patch: (value) => condition('skyhook.nvidia.com/x', value) },
  'a condition of others': { mayOwn: false, status: true, patch: (value) => condition('Ready', value) },
  'its capacity': {
    mayOwn: false,
    status: true,
    patch: (value) => ({ status: { capacity: { [`x/${value}`]: '1' } } }),
  },
  'a label through the status': { mayOwn: false, status: true, patch: (value) => labeled('zone', value) },
}
const annotated = (key: string, value: string): Json => ({ metadata: { annotations: { [key]: value } } })
const labeled = (key: string, value: string): Json => ({ metadata: { labels: { [key]: value } } })
const gpu = { key: 'gpu', effect: 'NoSchedule' }
/** The API server adds it to each new Node. */
const notReady = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }
const tainted = (key: string, value: string): Json => ({
  spec: { taints: [gpu, notReady, { key, value, effect: 'NoSchedule' }] },
})
const condition = (type: string, reason: string): Json => ({
  status: { conditions: [{ type, status: 'True', reason, message: 'm' }] },
})

/** As it is stored, without what each write changes. */
async function contentOf(name: string): Promise<string | undefined> {
  const { status, body } = await admin('GET', `${nodes}/${name}`)
  const { managedFields: _, resourceVersion: __, ...metadata } = (body['metadata'] ?? {}) as Json
  return status === 404 ? undefined : JSON.stringify({ ...body, metadata })
}

/** What differs from what the documentation says. */
async function surpriseOf(
  what: string,
  name: string,
  mayReach: boolean,
  change: () => Promise<unknown>,
): Promise<string[]> {
  const before = await contentOf(name)
  await change()
  const isReached = (await contentOf(name)) !== before
  return isReached === mayReach ? [] : [`${isReached ? 'reached' : 'refused'}: ${what}`]
}

/** Names that only begin alike are no Nodes yet, and a name may be too long for one. */
beforeAll(async () => {
  for (const [actor, make] of Object.entries(actors)) send[actor as Actor] = await make()
  for (const name of others.slice(1))
    expect(await admin('POST', nodes, { metadata: { name }, spec: { taints: [gpu] } })).toEqual(allowed)
})

describe('a Node', () => {
  test.each(Object.keys(actors) as Actor[])('%s changes no part of a Node beyond its rights', async (actor) => {
    const mayAll = actor === 'somebody who may edit Nodes'
    const found: string[] = []
    for (const name of ['node-a', ...others])
      for (const [part, { mayOwn, status, patch }] of Object.entries(parts))
        for (const type of [merge, strategic]) {
          // One part is enough where only the name differs.
          if (others.indexOf(name) > 0 && (!part.endsWith('of ours') || type !== merge)) continue
          const path = `${nodes}/${name}${status === true ? '/status' : ''}`
          const mayReach = mayAll || (actor === 'the agent of node-a' && name === 'node-a' && mayOwn)
          const change = async (): Promise<unknown> => await send[actor]('PATCH', path, patch(`v${count++}`), type)
          found.push(...(await surpriseOf(`${part} of ${name} by ${type}`, name, mayReach, change)))
          if (part === 'a finalizer') await admin('PATCH', path, { metadata: { finalizers: null } }, merge)
        }
    // Once set, the API server keeps it.
    expect(found.filter((text) => !text.startsWith('refused: the provider'))).toEqual([])
  })

  test.each(Object.keys(actors) as Actor[])(
    '%s replaces, creates and deletes no Node beyond its rights',
    async (actor) => {
      const mayAll = actor === 'somebody who may edit Nodes'
      const found: string[] = []
      for (const name of ['node-a', ...others]) {
        const path = `${nodes}/${name}`
        const replace = async (suffix: string): Promise<void> => {
          const { body } = await admin('GET', path)
          const metadata = { ...(body['metadata'] as Json), annotations: { 'skyhook.nvidia.com/x': `v${count++}` } }
          await send[actor]('PUT', `${path}${suffix}`, { ...body, metadata })
        }
        found.push(...(await surpriseOf(`PUT ${name}`, name, mayAll, async () => await replace(''))))
        found.push(...(await surpriseOf(`PUT ${name}/status`, name, mayAll, async () => await replace('/status'))))
      }
      const created = `created-${count++}`
      const [create, remove] = [
        async () => await send[actor]('POST', nodes, { metadata: { name: created } }),
        async () => await send[actor]('DELETE', `${nodes}/${mayAll ? created : 'node-a'}`),
      ]
      found.push(...(await surpriseOf('POST', created, mayAll, create)))
      found.push(...(await surpriseOf('DELETE', mayAll ? created : 'node-a', mayAll, remove)))
      if (!mayAll)
        found.push(...(await surpriseOf('DELETE all', 'node-b', false, async () => await send[actor]('DELETE', nodes))))
      expect(found).toEqual([])
    },
  )
})
