/** Cordon ownership: every node ends as the administrator last asked, whatever we needed in between. */
import { describe, expect, test } from 'vitest'
import { cordonedBeforeKey, cordonKey, keepCordonedKey } from '../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import { uniqueName, useCluster, type NodeName } from '../kit/cluster/cluster.ts'
import { patch, paths } from '../kit/cluster/kube.ts'
import type { OnTestFinished } from '../kit/cluster/node-locks.ts'
import { isCompleteOn, isCordoned, hasEvent } from '../kit/cluster/node-availability.ts'
import { journaled, journalOf, releaseFileOf, manifest, shellscript } from '../kit/cluster/skyhooks.ts'
import { slotsOf } from '../kit/cluster/slots.ts'

const cluster = useCluster()
const keepOff = ['cluster-autoscaler.kubernetes.io/scale-down-disabled', 'karpenter.sh/do-not-disrupt']

/** Calls to the API server under another client name, as an administrator's tool makes them. */
async function asAdministrator(node: NodeName, body: object, fieldManager: string): Promise<void> {
  const { api } = cluster
  await api.json('PATCH', `${paths.nodes}/${node}`, {
    body,
    contentType: 'application/merge-patch+json',
    query: { fieldManager },
  })
}

/** A Skyhook that holds the node drained until `release` is called; returns once it is drained. */
async function nodeWithSlot(node: NodeName, onTestFinished: OnTestFinished) {
  const name = uniqueName('cordon')
  onTestFinished(async () => {
    await cluster.remove(name)
    const marks = { [keepCordonedKey]: null }
    await patch(cluster.api, `${paths.nodes}/${node}`, {
      metadata: { annotations: marks },
      spec: { unschedulable: null },
    })
  })
  const interrupt = { type: 'service', services: ['foobar'] } as const
  const work = shellscript(cluster.registry, journaled(name, 'apply'), { interrupt })
  await cluster.apply(manifest(name, { packages: { work } }), node)
  await cluster.host(node).awaitLine(journalOf(name), 'apply begins')
  return {
    name,
    now: (): KubernetesNode | undefined => cluster.history.now.nodes.get(node),
    release: async (): Promise<void> => {
      await cluster.host(node).write(releaseFileOf(name), '')
      await cluster.history.eventually('it is complete', (view) => isCompleteOn(view, name, [node]))
      await cluster.history.eventually('the slot is released', (view) => slotsOf(view, name).length === 0)
    },
  }
}

const annotation = (node: KubernetesNode | undefined, key: string): string | undefined =>
  node?.metadata.annotations?.[key]

describe.concurrent('a node', () => {
  test('a node that an administrator cordoned before stays cordoned and loses our marks', async ({
    onTestFinished,
  }) => {
    const node = 'node-1'
    await asAdministrator(node, { spec: { unschedulable: true } }, 'kubectl')
    const { name, now, release } = await nodeWithSlot(node, onTestFinished)
    expect([annotation(now(), cordonedBeforeKey), annotation(now(), cordonKey(name))]).toEqual(['true', 'true'])
    await release()
    expect([isCordoned(now()), annotation(now(), cordonedBeforeKey), annotation(now(), cordonKey(name))]).toEqual([
      true,
      undefined,
      undefined,
    ])
  })

  test('a node that an administrator uncordons during the work is cordoned again, reported once in an Event, and ends schedulable', async ({
    onTestFinished,
  }) => {
    const node = 'node-2'
    await asAdministrator(node, { spec: { unschedulable: true } }, 'kubectl')
    const { name, now, release } = await nodeWithSlot(node, onTestFinished)
    await asAdministrator(node, { spec: { unschedulable: false } }, 'fleet-console')
    await cluster.history.eventually(
      'it is cordoned again',
      () => isCordoned(now()) && annotation(now(), cordonedBeforeKey) === 'false',
    )
    const message = `someone uncordoned the node while Skyhook ${name} holds it` // Kubernetes does not record who
    await cluster.history.eventually('an Event reports it', (view) => hasEvent(view, node, 'CordonChanged', message))
    await release()
    expect(isCordoned(now())).toBe(false)
    const changes = [...cluster.history.now.events.values()].filter(
      ({ reason, message }) => reason === 'CordonChanged' && message?.includes(name),
    )
    expect(changes.map(({ count = 1 }) => count)).toEqual([1])
  })

  test('a node that an administrator marks as keep-cordoned stays cordoned, although it was schedulable before', async ({
    onTestFinished,
  }) => {
    const node = 'node-3'
    await asAdministrator(node, { metadata: { annotations: { 'karpenter.sh/do-not-disrupt': 'false' } } }, 'kubectl')
    const { now, release } = await nodeWithSlot(node, onTestFinished)
    expect(annotation(now(), cordonedBeforeKey)).toBe('false')
    // autoscalers ignore it during the work, too
    expect(keepOff.map((key) => annotation(now(), key))).toEqual(['true', 'true'])
    await asAdministrator(node, { metadata: { annotations: { [keepCordonedKey]: 'true' } } }, 'kubectl')
    await release()
    expect(isCordoned(now())).toBe(true)
    expect(keepOff.map((key) => annotation(now(), key))).toEqual([undefined, 'false']) // as they were
    await asAdministrator(node, { metadata: { annotations: { 'karpenter.sh/do-not-disrupt': null } } }, 'kubectl')
  })
})
