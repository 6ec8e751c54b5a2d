/** The status of a Skyhook while its nodes work, its spec changes, and agents and the census crash. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Skyhook } from '../../src/schemas/skyhook.ts'
import { appliedHash } from '../../src/stages/model/applied-hash.ts'
import { deleteAgent, killAgent } from '../kit/cluster/agents.ts'
import { nodeNames, uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import type { Moment, View } from '../kit/cluster/moments.ts'
import { journaled, manifest, selectorLabel, shellscript, publishedState } from '../kit/cluster/skyhooks.ts'
import { onThisMachine } from '../kit/machine-speed.ts'

const cluster = useCluster()
const name = uniqueName('status')

type Condition = { readonly type: string; readonly status: string; readonly observedGeneration?: number }

const skyhookIn = ({ skyhooks }: View): Skyhook | undefined => skyhooks.get(name)

/** As `kubectl wait` and kstatus read it: a condition for an older generation does not count. */
function isReady(skyhook: Skyhook | undefined): boolean {
  const conditions = (skyhook?.status?.['conditions'] ?? []) as readonly Condition[]
  const ready = conditions.find(({ type }) => type === 'Ready')
  return ready?.status === 'True' && ready.observedGeneration === skyhook?.metadata.generation
}

/** Selected nodes that are not complete for the spec of this moment. */
function unfinished({ nodes }: View, skyhook: Skyhook | undefined): string[] {
  const wanted = skyhook && appliedHash(skyhook.spec)
  return [...nodes.values()]
    .filter(({ metadata }) => metadata.labels?.[selectorLabel] === name)
    .filter(
      (node) =>
        publishedState(node, name).status !== 'complete' || publishedState(node, name).companion?.applied !== wanted,
    )
    .map(({ metadata }) => metadata.name)
}

const contradiction = (moment: Moment): string | undefined => {
  const skyhook = skyhookIn(moment)
  const open = unfinished(moment, skyhook)
  return isReady(skyhook) && open.length > 0 ? `Ready, but ${open.join(', ')} has work` : undefined
}

const killCensus = async (): Promise<void> => {
  await Promise.all(
    nodeNames.map(
      async (node) => await cluster.host(node).exec('sh', '-c', 'pkill -KILL -f "skyhookd.cjs censu[s]" || true'),
    ),
  )
}

describe('the status of a Skyhook', () => {
  const packageOf = (generation: number) =>
    shellscript(cluster.registry, { ...journaled(name), config: `echo ${generation} >/var/tmp/${name}.config` })

  beforeAll(async () => {
    await cluster.apply(
      manifest(name, { interruptionBudget: { percent: 67 }, packages: { greeting: packageOf(1) } }),
      ...nodeNames,
    )
    await cluster.history.eventually('Ready for the first time', (view) => isReady(skyhookIn(view)))
  })

  test('a Skyhook is Ready within 1.5 s after its last node completes', async () => {
    const done = await cluster.history.first(
      (moment) =>
        skyhookIn(moment) !== undefined &&
        unfinished(moment, skyhookIn(moment)).length === 0 &&
        moment.nodes.size === nodeNames.length,
    )
    const ready = await cluster.history.first((moment) => isReady(skyhookIn(moment)))
    expect((ready?.atMs ?? 0) - (done?.atMs ?? 0)).toBeLessThan(onThisMachine(1_500))
  })

  test('the status of a Skyhook has the counts and names that tools of the original operator read', () => {
    expect(skyhookIn(cluster.history.now)?.status).toMatchObject({
      status: 'complete',
      completeNodes: '3/3',
      nodesInProgress: 0,
      packageList: 'greeting:1.1.0',
      nodesSelected: 3,
      nodesReady: 3,
      nodeStatus: { 'node-1': 'complete', 'node-2': 'complete', 'node-3': 'complete' },
    })
  })

  test('the status of a Skyhook satisfies kubectl wait', async () => {
    expect(
      await cluster.sandbox.kubectl(['wait', '--for=condition=Ready', `skyhook/${name}`, '--timeout=10s']),
    ).toContain('condition met')
  })

  test('a Skyhook is never Ready while a selected node has work, despite edits, killed agents and a census that dies every few seconds', async () => {
    const killing = setInterval(() => void killCensus(), 5_000)
    try {
      for (const generation of [2, 3, 4, 5, 6]) {
        await cluster.edit(name, { packages: { greeting: packageOf(generation) } })
        if (generation % 2 === 1) await killAgent(cluster, 'node-2')
        await cluster.history.eventually(
          `nodes complete generation ${generation}`,
          (view) => unfinished(view, skyhookIn(view)).length === 0,
          60_000,
        )
      }
    } finally {
      clearInterval(killing)
    }
    await cluster.history.eventually('Ready again', (view) => isReady(skyhookIn(view)), 90_000)
    await cluster.history.never('Ready with unfinished work', contradiction)
  })

  // an agent whose census crashed twice lets others lead for half an hour; new agents start fresh
  afterAll(async () => {
    await Promise.all(nodeNames.map(async (node) => await deleteAgent(cluster, node)))
  }, 60_000)
})
