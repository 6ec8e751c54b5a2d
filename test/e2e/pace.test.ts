/** How fast a rollout goes from node to node: the pace after each of them, and new nodes beside the others. */
import { describe, expect, test } from 'vitest'
import { nodeNames, uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import { patch, paths } from '../kit/cluster/kube.ts'
import type { View } from '../kit/cluster/moments.ts'
import { isCompleteOn, isCordoned } from '../kit/cluster/node-availability.ts'
import { journaled, manifest, releaseFileOf, shellscript } from '../kit/cluster/skyhooks.ts'
import { overBudget, slotsOf } from '../kit/cluster/slots.ts'

const cluster = useCluster()
const runtimeRequiredTaint = { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' }
const holders = (view: View, name: string): string[] => slotsOf(view, name).map(({ holder }) => holder)

describe('the pace of a rollout', () => {
  test('each node is in service and complete for pauseSeconds before the next one starts', async ({
    onTestFinished,
  }) => {
    const { history } = cluster
    const name = uniqueName('pace')
    const pauseSeconds = 6
    onTestFinished(async () => await cluster.remove(name))
    const work = shellscript(cluster.registry, { apply: 'true' }, { interrupt: { type: 'noop' } })
    const pace = { pauseSeconds, minReadySeconds: 2 }
    await cluster.apply(manifest(name, { interruptionBudget: { count: 1 }, pace, packages: { work } }), ...nodeNames)
    const isReady = ({ skyhooks }: View): boolean =>
      ((skyhooks.get(name)?.status?.['conditions'] ?? []) as readonly { type: string; status: string }[]).some(
        ({ type, status }) => type === 'Ready' && status === 'True',
      )
    const isReleased = (view: View): boolean => isCompleteOn(view, name, nodeNames) && holders(view, name).length === 0
    await history.eventually('every node is complete and every slot is released', isReleased, 120_000)
    for (const node of nodeNames) {
      const complete = await history.first((view) => isCompleteOn(view, name, [node]))
      const released = await history.first(
        (view) => isCompleteOn(view, name, [node]) && !holders(view, name).includes(node),
      )
      expect((released?.atMs ?? 0) - (complete?.atMs ?? 0)).toBeGreaterThan(pauseSeconds * 1_000 - 500)
    }
    await history.before(['the Skyhook is Ready', isReady], ['the last slot is released', isReleased])
    await history.never('more than one slot', overBudget(name, 1))
    await history.never('a node that soaks and is cordoned', (view) => {
      const soaking = slotsOf(view, name).find(({ phase }) => phase === 'soaking')
      return soaking && isCordoned(view.nodes.get(soaking.holder)) && soaking.holder
    })
  })

  test('a node that joins completes beside one that uses the budget up', async ({ onTestFinished }) => {
    const { history } = cluster
    const [busy, joining] = ['node-2', 'node-3'] as const
    const name = uniqueName('joining')
    onTestFinished(async () => {
      await cluster.host(busy).write(releaseFileOf(name), '')
      await cluster.remove(name)
    })
    const work = shellscript(cluster.registry, journaled(name, 'apply'))
    const spec = { runtimeRequired: true, interruptionBudget: { count: 1 }, packages: { work } }
    await cluster.host(joining).write(releaseFileOf(name), '')
    await cluster.apply(manifest(name, spec), busy)
    await history.eventually('the budget is used up', (view) => holders(view, name).includes(busy))
    await patch(cluster.api, `${paths.nodes}/${joining}`, { spec: { taints: [runtimeRequiredTaint] } })
    await cluster.apply(manifest(name, spec), joining)
    await history.eventually('the new node is complete', (view) => isCompleteOn(view, name, [joining]))
    await history.eventually('its slot is given back', (view) => !holders(view, name).includes(joining))
    expect(holders(history.now, name)).toContain(busy)
    expect(history.now.nodes.get(joining)?.spec?.taints ?? []).toEqual([])
    const kinds = await history.values((view) =>
      slotsOf(view, name)
        .filter(({ holder }) => holder === joining)
        .map(({ kind }) => kind)
        .join(),
    )
    expect(kinds).toEqual(['', 'bootstrap', ''])
  })
})
