/**
 * Three nodes full of pods and a budget of one: what must never happen while they are drained and their service
 * restarts.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nodeNames, uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import type { View } from '../kit/cluster/moments.ts'
import {
  isCompleteOn,
  isCordoned,
  exceedsOutOfService,
  serviceStates,
  hasEvent,
  uncordonedStates,
} from '../kit/cluster/node-availability.ts'
import { manifest, shellscript, publishedState } from '../kit/cluster/skyhooks.ts'
import { overBudget, slotsOf, workWithoutSlot } from '../kit/cluster/slots.ts'
import { createWorkloads, tooFewReady, type Workloads } from '../kit/cluster/workloads.ts'

const cluster = useCluster()
const name = uniqueName('budget')
const busy = 'node-2'
let shop: Workloads
let trainingUid: string | undefined
const training = (view: View): string | undefined =>
  shop.pods(view, 'training').find(({ metadata }) => metadata.deletionTimestamp === undefined)?.metadata.uid

describe('three nodes with pods that have to move and one that must not be interrupted', () => {
  beforeAll(async () => {
    shop = await createWorkloads(cluster, name)
    await shop.deploy('cart', 3)
    await shop.budget('cart', 'cart', 2)
    // tolerates the cordon: no drain would touch it, but it counts
    await shop.pod('training', busy, { labels: { workload: 'never-interrupt' }, tolerations: [{ operator: 'Exists' }] })
    trainingUid = training(cluster.history.now)
    await cluster.apply(
      manifest(name, {
        interruptionBudget: { count: 1 },
        podNonInterruptLabels: { matchLabels: { workload: 'never-interrupt' } },
        packages: {
          work: shellscript(
            cluster.registry,
            { apply: 'sleep 0.3' },
            { interrupt: { type: 'service', services: ['foobar'] } },
          ),
        },
      }),
      ...nodeNames,
    )
  })
  afterAll(async () => await shop.remove())

  test('a cordoned node waits for its protected pod and names it', async () => {
    await cluster.history.eventually(
      'the node waits',
      ({ nodes }) => publishedState(nodes.get(busy), name).reason?.reason === 'ProtectedPods',
      60_000,
    )
    const node = cluster.history.now.nodes.get(busy)
    expect(publishedState(node, name)).toMatchObject({
      status: 'in_progress',
      state: {},
      reason: { message: expect.stringContaining(`${name}/training`) as string },
    })
    expect(isCordoned(node)).toBe(true)
    await cluster.history.eventually(
      'an Event names it',
      (view) => hasEvent(view, busy, 'ProtectedPods', name, `${name}/training`),
      10_000,
    )
    // no pod is evicted in vain
    expect(shop.pods(cluster.history.now, 'cart').some(({ spec }) => spec?.nodeName === busy)).toBe(true)
  })

  test('all three nodes complete soon after the protected pod has ended', async () => {
    expect(training(cluster.history.now)).toBe(trainingUid)
    await shop.endPod('training')
    await cluster.history.eventually('every node is complete', (view) => isCompleteOn(view, name, nodeNames), 60_000)
    await cluster.history.eventually('every slot is released', (view) => slotsOf(view, name).length === 0)
  })

  test('at no time are two nodes out of service or two slots held', async () => {
    await cluster.history.never('two slots', overBudget(name, 1))
    await cluster.history.never('two nodes out of service', exceedsOutOfService(1))
    await cluster.history.never('work without a slot', workWithoutSlot(name))
    for (const node of nodeNames) expect(uncordonedStates(await serviceStates(cluster.history, node))).toHaveLength(1)
  })

  test('a PodDisruptionBudget is satisfied at all times', async () => {
    await cluster.history.never('a violated budget', tooFewReady(shop, 'cart', 2))
    const uids = await cluster.history.values((view) => shop.pods(view, 'cart').map(({ metadata }) => metadata.uid))
    expect(new Set(uids.flat()).size).toBeGreaterThanOrEqual(3 + 3) // each of them had to move
  })

  test('a protected pod is never evicted, and nothing runs on its node before it ends', async () => {
    const lives = await cluster.history.values(
      (view) => shop.pods(view, 'training').map(({ metadata }) => metadata.uid)[0],
    )
    expect(lives.filter((uid) => uid !== undefined)).toEqual([trainingUid])
    await cluster.history.never('work beside the protected pod', (view) => {
      const state = Object.keys(publishedState(view.nodes.get(busy), name).state)
      return training(view) !== undefined && state.length > 0 && `${busy} works on ${state.join()}`
    })
  })
})
