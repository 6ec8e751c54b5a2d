import { describe, expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { cron, install, isCordoned, pkg, pod } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import type { PackageSpec, SkyhookSpec } from '../../schemas/skyhook.ts'

const taint = { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' }

/** Of the Skyhook s, for the nodes of a pool. */
const specFor = (pool: string, change: Partial<PackageSpec> = { interrupt: cron }): SkyhookSpec => ({
  runtimeRequired: true,
  nodeSelectors: { matchLabels: { pool } },
  packages: { a: pkg('1.0.0', change) },
})

/** The watch shows an edit, and the new spec is being read. */
function outdate(node: NodeSimulator, name = 's'): void {
  const view = node.views.get(name)
  if (view) node.views.set(name, { ...view, stale: true })
}

function label(node: NodeSimulator, pool: string): void {
  node.node = { ...node.node, metadata: { ...node.node.metadata, labels: { pool } } }
}

/** A node of pool x with the taint of new nodes, cordoned, between two steps. */
function nodeAtWork(): NodeSimulator {
  const node = new NodeSimulator({ pool: 'x' })
  node.node = { ...node.node, spec: { taints: [taint] } }
  node.apply('s', specFor('x'))
  return node.settleUntil(() => node.executedSteps.includes('a config run.sh'))
}

const held = (node: NodeSimulator): unknown[] => [isCordoned(node), node.slots.length, node.node.spec?.taints]

/** Everything that the agent was asked to do within the time. */
function actionsWithin(node: NodeSimulator, ms: number): string[] {
  const actions: string[] = []
  for (const endMs = node.nowMs + ms; node.nowMs < endMs; node.nowMs += 1_000)
    for (let round = 0; round < 5; round++) {
      node.step()
      actions.push(...(node.lastPlan?.actions ?? []).map(({ do: what }) => what))
    }
  return actions
}

describe('a node at work that the outdated spec no longer selects', () => {
  test.each<[string, (node: NodeSimulator, isUnknown: boolean) => void]>([
    [
      'while the new spec is being read',
      (node, isUnknown) => (isUnknown ? outdate(node) : node.apply('s', specFor('y'))),
    ],
    [
      'while the watch of the Skyhooks is broken',
      (node, isUnknown) => {
        node.areSkyhooksInDoubt = isUnknown
        if (!isUnknown) node.apply('s', specFor('y'))
      },
    ],
  ])('a node keeps cordon, slot and taint %s, and continues when the new spec selects it', (_, setUnknown) => {
    const node = nodeAtWork()
    const lifecycle = node.journal.skyhooks['s']?.lifecycle
    setUnknown(node, true)
    label(node, 'y')
    const actions = actionsWithin(node, 60_000)
    expect([actions.filter((what) => what !== 'publish'), ...held(node)]).toEqual([[], true, 1, [taint]])
    expect(node.journal.skyhooks['s']?.lifecycle).toEqual(lifecycle)

    node.areSlotsGranted = false // it does not ask for another one
    setUnknown(node, false)
    node.settleFor(20_000)
    expect([node.status(), ...held(node)]).toEqual(['complete', false, 0, []])
  })

  test('a node leaves when the new spec does not select it either', () => {
    const node = nodeAtWork()
    outdate(node)
    label(node, 'y')
    node.settleFor(5_000)
    node.apply('s', specFor('z'))
    node.settleFor(5_000)
    expect(held(node)).toEqual([false, 0, []])
  })

  test('a step that runs meanwhile counts once the new spec is read', () => {
    const node = new NodeSimulator({ pool: 'x' })
    node.hangingPackages.add('a')
    node.apply('s', specFor('x'))
    node.settle()
    outdate(node)
    label(node, 'y')
    node.finishHanging('a')
    node.settleFor(5_000)
    node.apply('s', specFor('y'))
    node.settleFor(20_000)
    expect([node.executedSteps.slice(0, 4), node.status()]).toEqual([install, 'complete'])
  })

  test('a Skyhook of lower priority waits for the started work', () => {
    const node = nodeAtWork()
    node.apply('t', { priority: 300, packages: { b: pkg('1.0.0') } })
    outdate(node)
    label(node, 'y')
    node.settleFor(5_000)
    expect(node.executedSteps.filter((line) => line.startsWith('b'))).toEqual([])
    node.apply('s', specFor('z'))
    node.settleFor(5_000)
    expect(node.status('t')).toBe('complete')
  })
})

test('the runtime-required taint stays while the new spec of any Skyhook is being read', () => {
  const node = new NodeSimulator({ pool: 'x' })
  node.node = { ...node.node, spec: { taints: [taint] } }
  node.apply('s', specFor('x', {}))
  node.apply('t', specFor('z'))
  outdate(node, 't')
  node.settleFor(5_000)
  expect([node.status(), node.node.spec?.taints]).toEqual(['complete', [taint]])
  node.apply('t', specFor('z'))
  node.settleFor(1_000)
  expect(node.node.spec?.taints).toEqual([])
})

describe('a Skyhook that was never worked on and is outdated', () => {
  test("the operator's work is taken over once the new spec is read", () => {
    const node = new NodeSimulator()
    node.hostFolders = new Set(['s'])
    node.edit((annotations) => {
      annotations['skyhook.nvidia.com/nodeState_s'] =
        '{"a|1.0.0":{"name":"a","version":"1.0.0","image":"r/pkg","stage":"config","state":"complete"}}'
      annotations['skyhook.nvidia.com/status_s'] = 'complete'
    })
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    outdate(node)
    const shown = node.annotation('nodeState_s')
    node.settleFor(5_000)
    expect([node.annotation('nodeState_s'), node.journal.skyhooks]).toEqual([shown, {}])
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(5_000)
    expect([node.executedSteps, node.status()]).toEqual([[], 'complete'])
  })

  test('a Skyhook of lower priority waits for it', () => {
    const node = new NodeSimulator()
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    outdate(node)
    node.apply('t', { priority: 300, packages: { b: pkg('1.0.0') } })
    node.settleFor(5_000)
    expect([node.executedSteps, node.reason('t')]).toEqual([[], 'WaitingForPriority'])
  })

  test('a Skyhook that cannot be read says why', () => {
    const node = new NodeSimulator()
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    outdate(node)
    node.failures.set('skyhook/s', {
      reason: 'ApiRequestRefused',
      message: 'HTTP 403',
      sinceMs: node.nowMs,
      skyhook: 's',
    })
    node.settleFor(60_000)
    expect([node.reason(), node.annotation('reason_s')]).toEqual([
      'ApiRequestRefused',
      expect.stringContaining('HTTP 403'),
    ])
  })
})

test('a node that is being drained follows its pods while a new spec is read', () => {
  const node = new NodeSimulator({ pool: 'x' })
  node.pods = [pod('web')]
  node.apply('s', specFor('x'))
  node.settleUntil(() => isCordoned(node) && node.podWatch === 'cordoned')
  outdate(node)
  const watches = new Set<string>()
  for (let round = 0; round < 5; round++) {
    node.step()
    watches.add(node.podWatch)
  }
  expect([...watches]).toEqual(['cordoned'])
})
