/** The annotation is a control: removing it resets, editing it reruns, while a step runs and while no agent does. */
import { expect, test, vi } from 'vitest'
import { nodeStateKey, type NodeStateEntry } from '../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import { withoutAgents } from '../kit/cluster/agents.ts'
import { uniqueName, useCluster, type NodeName } from '../kit/cluster/cluster.ts'
import { patch, paths } from '../kit/cluster/kube.ts'
import { type OnTestFinished, claimNodes } from '../kit/cluster/node-locks.ts'
import type { View } from '../kit/cluster/moments.ts'
import { isCompleteOn, isCordoned, hasEvent } from '../kit/cluster/node-availability.ts'
import {
  journaled,
  journalOf,
  releaseFileOf,
  manifest,
  onceEach,
  shellscript,
  publishedState,
  withoutTimes,
} from '../kit/cluster/skyhooks.ts'
import { slotsOf } from '../kit/cluster/slots.ts'

const cluster = useCluster()
const once = onceEach('apply', 'apply_check', 'config', 'config_check')
const withInterrupt = [...once, ...onceEach('post_interrupt')]

type State = Readonly<Record<string, NodeStateEntry>>

/** Two packages, complete on the node; the first restarts a service. Each has its own journal. */
async function completed(onTestFinished: OnTestFinished, node: NodeName) {
  const name = await claimNodes(cluster, onTestFinished, 'edit', node)
  const pkg = (of: string, more = {}) => shellscript(cluster.registry, journaled(`${name}-${of}`), more)
  const packages = {
    first: pkg('first', { interrupt: { type: 'service', services: ['foobar'] } }),
    second: pkg('second'),
  }
  await cluster.apply(manifest(name, { packages }), node)
  const isDone = (view: View): boolean => isCompleteOn(view, name, [node]) && slotsOf(view, name).length === 0
  await cluster.history.eventually('it is complete', isDone)
  const journal = async (of: string): Promise<string[]> =>
    withoutTimes(await cluster.host(node).lines(journalOf(`${name}-${of}`)))
  return {
    name,
    journals: async () => ({ first: await journal('first'), second: await journal('second') }),
    /** Removes the annotation (null), or replaces it by the result of `change`. */
    edit: async (change: null | ((state: State) => State)): Promise<void> => {
      const { state } = publishedState(cluster.history.now.nodes.get(node), name)
      const value = change === null ? null : JSON.stringify(change(state))
      const edited = await patch<KubernetesNode>(cluster.api, `${paths.nodes}/${node}`, {
        metadata: { annotations: { [nodeStateKey(name)]: value } },
      })
      const version = Number(edited.metadata.resourceVersion)
      await cluster.history.eventually(
        'what follows is seen after the edit',
        ({ nodes }) => Number(nodes.get(node)?.metadata.resourceVersion) >= version,
      )
    },
    completeAgain: async (): Promise<void> => {
      await cluster.history.eventually(
        'it is complete again, and shows all of it',
        (view) => {
          const { state } = publishedState(view.nodes.get(node), name)
          return (
            isDone(view) &&
            state['first|1.1.0']?.stage === 'post-interrupt' &&
            state['second|1.1.0']?.state === 'complete'
          )
        },
        60_000,
      )
      expect(isCordoned(cluster.history.now.nodes.get(node))).toBe(false)
    },
    reported: async (reason: string, ...fragments: readonly string[]): Promise<void> =>
      void (await cluster.history.eventually(`the Event ${reason}`, (view) =>
        hasEvent(view, node, reason, name, ...fragments),
      )),
  }
}

const without = (state: State, key: string): State =>
  Object.fromEntries(Object.entries(state).filter(([entry]) => entry !== key))

test('removing the annotation during a step stops that step and starts over under the same slot', async ({
  onTestFinished,
}) => {
  const node = 'node-3'
  const name = uniqueName('edit')
  const host = cluster.host(node)
  onTestFinished(async () => await cluster.remove(name))
  const work = shellscript(cluster.registry, journaled(name, 'config'), { gracefulShutdown: '2s' })
  await cluster.apply(manifest(name, { packages: { work } }), node)
  await host.awaitLine(journalOf(name), 'config begins')
  await patch(cluster.api, `${paths.nodes}/${node}`, { metadata: { annotations: { [nodeStateKey(name)]: null } } })
  await cluster.history.eventually('the Event SkyhookReset', (view) => hasEvent(view, node, 'SkyhookReset', name))
  const begun = async (): Promise<number> =>
    (await host.lines(journalOf(name))).filter((line) => line.endsWith('config begins')).length
  await vi.waitFor(async () => expect(await begun()).toBe(2), { timeout: 10_000 })
  await host.write(releaseFileOf(name), '')
  await cluster.history.eventually(
    'it is complete',
    (view) => isCompleteOn(view, name, [node]) && slotsOf(view, name).length === 0,
  )
  const half = [...onceEach('apply', 'apply_check'), 'config begins']
  expect(withoutTimes(await host.lines(journalOf(name)))).toEqual([
    ...half,
    ...half,
    'config ends',
    ...onceEach('config_check'),
  ])
  const slots = await cluster.history.values((view) => slotsOf(view, name)[0]?.uid)
  expect(slots.filter((uid) => uid !== undefined)).toHaveLength(1)
})

test('an agent acts on edits that were made while it was away', async ({ onTestFinished }) => {
  const [one, other] = await Promise.all([completed(onTestFinished, 'node-1'), completed(onTestFinished, 'node-2')])
  await withoutAgents(cluster, async () => {
    await one.edit(null)
    await other.edit((state) => without(state, 'second|1.1.0'))
  })
  await Promise.all([one.reported('SkyhookReset'), other.reported('PackageRerun', 'second')])
  await Promise.all([one.completeAgain(), other.completeAgain()])
  expect(await one.journals()).toEqual({ first: [...withInterrupt, ...withInterrupt], second: [...once, ...once] })
  expect(await other.journals()).toEqual({ first: withInterrupt, second: [...once, ...once] })
})
