/** Pods that stay: anyone can see which one and why, everything else continues, and nothing is forced. */
import { describe, expect, test } from 'vitest'
import type { PublishedReason } from '../../src/schemas/annotations.ts'
import type { SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { useCluster, type NodeName } from '../kit/cluster/cluster.ts'
import { type OnTestFinished, claimWithPods } from '../kit/cluster/node-locks.ts'
import type { View } from '../kit/cluster/moments.ts'
import { isCompleteOn, isCordoned, hasEvent } from '../kit/cluster/node-availability.ts'
import { manifest, shellscript, publishedState } from '../kit/cluster/skyhooks.ts'
import { slotsOf } from '../kit/cluster/slots.ts'
import type { Workloads } from '../kit/cluster/workloads.ts'

const cluster = useCluster()
/** The promise: a blocked drain is reported within this time. */
const maxReactionMs = 10_000

type Scene = {
  readonly name: string
  readonly node: NodeName
  readonly shop: Workloads
  /** A package that restarts a service, on the scene's node or these. */
  readonly apply: (spec?: SkyhookSpec, ...nodes: readonly NodeName[]) => Promise<void>
  readonly reason: (view?: View) => PublishedReason | undefined
  readonly reasonHas: (...fragments: readonly string[]) => (view: View) => boolean
  readonly isComplete: (view: View) => boolean
  readonly uidOf: (app: string) => string | undefined
}

/** A Skyhook and a separate namespace, on the first of the nodes. */
async function scene(onTestFinished: OnTestFinished, node: NodeName, ...others: readonly NodeName[]): Promise<Scene> {
  const { name, shop } = await claimWithPods(cluster, onTestFinished, 'drain', node, ...others)
  const reason = (view = cluster.history.now): PublishedReason | undefined =>
    publishedState(view.nodes.get(node), name).reason
  return {
    name,
    node,
    shop,
    apply: async (spec = {}, ...nodes) => {
      await cluster.apply(
        manifest(name, { interruptionBudget: { count: 1 }, packages: { work: interrupting() }, ...spec }),
        ...(nodes.length === 0 ? [node] : nodes),
      )
    },
    reason,
    reasonHas:
      (...fragments) =>
      (view) => {
        const given = reason(view)
        return given?.reason === 'DrainBlocked' && fragments.every((word) => given.message.includes(word))
      },
    isComplete: (view) => isCompleteOn(view, name, [node]),
    uidOf: (app) => shop.pods(cluster.history.now, app)[0]?.metadata.uid,
  }
}

const interrupting = () => shellscript(cluster.registry, {}, { interrupt: { type: 'service', services: ['foobar'] } })

describe.concurrent('a pod that does not go', () => {
  test('a blocked eviction is reported with pod, budget and numbers, other packages continue, and the pod leaves once it may', async ({
    onTestFinished,
  }) => {
    const { name, node, shop, apply, reasonHas, isComplete, uidOf } = await scene(onTestFinished, 'node-1')
    const { history } = cluster
    await shop.pod('cart', node)
    await shop.budget('at-least-one', 'cart', 1)
    const cart = uidOf('cart')
    await apply({ packages: { work: interrupting(), quiet: shellscript(cluster.registry, {}) } })
    await history.eventually(
      'the reason names it',
      reasonHas(`pod ${name}/cart`, `PDB ${name}/at-least-one`, 'needs 1', 'has 1'),
      maxReactionMs,
    )
    await history.eventually(
      'an Event names it',
      (view) => hasEvent(view, node, 'DrainBlocked', name, `${name}/cart`, 'at-least-one'),
      maxReactionMs,
    )
    await history.eventually('the package without an interrupt is complete', ({ nodes }) => {
      const { state } = publishedState(nodes.get(node), name)
      return state['quiet|1.1.0']?.state === 'complete' && state['work|1.1.0'] === undefined
    })
    const now = history.now.nodes.get(node)
    expect([publishedState(now, name).status, isCordoned(now), uidOf('cart')]).toEqual(['in_progress', true, cart])
    expect(slotsOf(history.now, name)).toMatchObject([{ holder: node, phase: 'draining' }])

    await shop.allow('at-least-one', 0)
    await history.eventually('the node is complete', isComplete, 15_000)
    // it had no controller: evicted anyway, and not recreated
    await history.eventually('the pod is gone', (view) => shop.pods(view, 'cart').length === 0)
  })

  test('an eviction blocked by two overlapping budgets is reported with what has to change', async ({
    onTestFinished,
  }) => {
    const { name, node, shop, apply, reasonHas, isComplete } = await scene(onTestFinished, 'node-2')
    await shop.pod('cart', node)
    await shop.budget('one', 'cart', 0)
    await shop.budget('other', 'cart', 0)
    await apply()
    const both = reasonHas(`pod ${name}/cart`, 'several PodDisruptionBudgets', `${name}/one, ${name}/other`)
    await cluster.history.eventually('the reason names both', both, maxReactionMs)
    await shop.dropBudget('other')
    await cluster.history.eventually('the node is complete', isComplete, 15_000)
  })

  test('the drain waits for a terminating pod as long as it runs, evicts one that tolerates everything, and leaves one that names the cordon', async ({
    onTestFinished,
  }) => {
    const { name, node, shop, apply, reasonHas, isComplete, uidOf } = await scene(onTestFinished, 'node-3')
    // longer than a reason may take: of a shorter wait nothing has to be said
    await shop.pod('slow', node, { arguments: ['stubborn'], graceSeconds: 12 })
    const cordon = 'node.kubernetes.io/unschedulable'
    await shop.pod('tolerant', node, { tolerations: [{ key: cordon, operator: 'Exists' }] })
    await shop.pod('everything', node, { tolerations: [{ operator: 'Exists' }] })
    const tolerant = uidOf('tolerant')
    await apply()
    await cluster.history.eventually('the reason names it', reasonHas(`waiting for ${name}/slow to end`), maxReactionMs)
    await cluster.history.eventually('the node is complete', isComplete, 23_000)
    await cluster.history.never('work beside a pod that ends', (view) => {
      const runs = shop.pods(view, 'slow').some(({ status }) => status?.phase === 'Running')
      const hasEverything = shop.pods(view, 'everything').length > 0
      const isAtWork = Object.keys(publishedState(view.nodes.get(node), name).state).length > 0
      return (runs || hasEverything) && isAtWork && 'work started'
    })
    expect(uidOf('tolerant')).toBe(tolerant)
    expect(shop.pods(cluster.history.now, 'tolerant')[0]?.metadata.deletionTimestamp).toBeUndefined()
  })
})

describe.concurrent('a node that cannot be drained', () => {
  test('a node that cannot be drained yields its slot after yieldAfterSeconds and still says why it waits', async ({
    onTestFinished,
  }) => {
    const { name, node, shop, apply, reason } = await scene(onTestFinished, 'node-1', 'node-3')
    const { history } = cluster
    const drain = { yieldAfterSeconds: 3 }
    const other = 'node-3'
    await shop.pod('cart', node)
    await shop.budget('at-least-one', 'cart', 1)
    await apply({ drain })
    await history.eventually('it holds the slot', (view) => slotsOf(view, name)[0]?.holder === node)
    await apply({ drain }, other)
    await history.eventually('the other node is complete', (view) => isCompleteOn(view, name, [other]), 20_000)
    const now = history.now.nodes.get(node)
    expect(publishedState(now, name)).toMatchObject({
      status: 'waiting',
      state: {},
      reason: { reason: 'DrainBlocked' },
    })
    expect(reason()?.message).toContain(`${name}/cart`)
    expect(isCordoned(now)).toBe(false)
  })

  test('a node that cannot be drained returns to service after timeoutSeconds if onTimeout is release', async ({
    onTestFinished,
  }) => {
    const { name, node, shop, apply, reasonHas } = await scene(onTestFinished, 'node-2')
    const { history } = cluster
    await shop.pod('cart', node)
    await shop.budget('at-least-one', 'cart', 1)
    await apply({ drain: { timeoutSeconds: 3, onTimeout: 'release' } })
    await history.eventually('it is cordoned', ({ nodes }) => isCordoned(nodes.get(node)))
    await history.eventually(
      'it is schedulable and waits',
      (view) => !isCordoned(view.nodes.get(node)) && reasonHas(`${name}/cart`)(view),
      maxReactionMs,
    )
    await history.eventually('the slot is released', (view) => slotsOf(view, name).length === 0, 2_000)
    expect(publishedState(history.now.nodes.get(node), name).status).toBe('waiting')
    const cordoned = ({ nodes }: View): boolean => isCordoned(nodes.get(node))
    await history.never('a slot released while cordoned', (view) =>
      cordoned(view) &&
      publishedState(view.nodes.get(node), name).status !== undefined &&
      slotsOf(view, name).length === 0
        ? 'no slot'
        : undefined,
    )
  })

  test('a drain past its deadline deletes no pod without the permission to, and names the permission', async ({
    onTestFinished,
  }) => {
    const { name, node, shop, apply, reasonHas, uidOf } = await scene(onTestFinished, 'node-2')
    await shop.pod('cart', node)
    await shop.budget('at-least-one', 'cart', 1)
    const cart = uidOf('cart')
    await apply({ drain: { timeoutSeconds: 1, onTimeout: 'delete' } })
    await cluster.history.eventually('the reason names it', reasonHas(`pod ${name}/cart`, 'drain.allowDelete'), 15_000)
    expect(uidOf('cart')).toBe(cart)
  })
})
