/** A deleted Skyhook: what is uninstalled with it, what stays, and that nothing of it is left on the cluster. */
import { describe, expect, test } from 'vitest'
import { finalizerName } from '../../src/schemas/finalizer.ts'
import { nodeNames, uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import { journaled, journalOf, manifest, shellscript, publishedState, withoutTimes } from '../kit/cluster/skyhooks.ts'
import { overBudget } from '../kit/cluster/slots.ts'

const cluster = useCluster()

async function installed(name: string, uninstall: { readonly enabled: boolean } | undefined): Promise<void> {
  const scripts = { ...journaled(name), uninstall: `echo "$(date +%s.%N) uninstall" >>${journalOf(name)}` }
  const greeting = shellscript(cluster.registry, scripts, uninstall && { uninstall })
  await cluster.apply(manifest(name, { interruptionBudget: { count: 1 }, packages: { greeting } }), ...nodeNames)
  await cluster.history.eventually('installed', ({ nodes }) =>
    nodeNames.every((node) => publishedState(nodes.get(node), name).status === 'complete'),
  )
}

const uninstalls = async (name: string): Promise<number[]> =>
  await Promise.all(
    nodeNames.map(async (node) => {
      const lines = await cluster.host(node).lines(journalOf(name))
      return withoutTimes(lines).filter((line) => line === 'uninstall').length
    }),
  )

describe('deleting a Skyhook', () => {
  test('a deletion uninstalls the packages that ask for it, one node after the other, before the Skyhook disappears', async () => {
    const name = uniqueName('leaving')
    await installed(name, { enabled: true })
    await cluster.history.eventually(
      'the finalizer is there',
      ({ skyhooks }) => skyhooks.get(name)?.metadata.finalizers?.includes(finalizerName) === true,
    )
    await cluster.remove(name)
    expect(await uninstalls(name)).toEqual([1, 1, 1])
    await cluster.history.never('two at once', overBudget(name, 1))
    expect(cluster.history.now.skyhooks.has(name)).toBe(false)
  })

  test('a deletion leaves other packages installed, runs nothing and needs no finalizer', async () => {
    const name = uniqueName('staying')
    await installed(name, undefined)
    await cluster.remove(name)
    expect(await uninstalls(name)).toEqual([0, 0, 0])
    expect(
      await cluster.history.first(({ skyhooks }) => (skyhooks.get(name)?.metadata.finalizers ?? []).length > 0),
    ).toBeUndefined()
  })
})
