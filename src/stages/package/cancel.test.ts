import { describe, expect, test } from 'vitest'
import type { PackageSpec, SkyhookSpec } from '../../schemas/skyhook.ts'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { plainStep, simplePackage } from '../../../test/kit/node-simulator/package-content.ts'
import { cron, install, pkg, reboot, uninstall, upgrade } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'

const nodeState = 'skyhook.nvidia.com/nodeState_s'

/** A node on which the first step of this spec runs and does not end by itself; later steps do. */
function nodeAtWork(before: SkyhookSpec | undefined, spec: SkyhookSpec): NodeSimulator {
  const node = new NodeSimulator()
  if (before) {
    node.apply('s', before)
    node.settleFor(5_000)
    node.executedSteps.length = 0
  }
  node.hangingPackages.add('a')
  node.apply('s', spec)
  node.settle()
  node.hangingPackages.clear()
  return node
}

/** Steps on the host at the same time, at most, until the node settles. */
function maxConcurrentSteps(node: NodeSimulator): number {
  let maxRunning = 0
  for (let round = 0; round < 100 && node.step(); round++)
    maxRunning = Math.max(maxRunning, [...node.attempts.values()].filter(({ state }) => state === 'running').length)
  return maxRunning
}

describe('superseded steps', () => {
  test.each<{
    when: string
    before?: SkyhookSpec
    spec: SkyhookSpec
    after: SkyhookSpec
    executedSteps: readonly string[]
  }>([
    {
      when: 'the package is removed',
      spec: { packages: { a: pkg('1.0.0') } },
      after: { packages: {} },
      executedSteps: uninstall,
    },
    {
      when: 'the version falls',
      spec: { packages: { a: pkg('1.0.0') } },
      after: { packages: { a: pkg('0.9.0') } },
      executedSteps: [...uninstall, ...install],
    },
    {
      when: 'the version rises again',
      spec: { packages: { a: pkg('1.0.0') } },
      after: { packages: { a: pkg('1.1.0') } },
      executedSteps: upgrade,
    },
    {
      when: 'an upgrade is taken back: that is a downgrade',
      before: { packages: { a: pkg('1.0.0') } },
      spec: { packages: { a: pkg('1.1.0') } },
      after: { packages: { a: pkg('1.0.0') } },
      executedSteps: [...uninstall, ...install],
    },
    {
      when: 'an upgrade is taken back half way: the new version goes, then the one in between comes as on a new host',
      before: { packages: { a: pkg('1.0.0') } },
      spec: { packages: { a: pkg('2.0.0') } },
      after: { packages: { a: pkg('1.5.0') } },
      executedSteps: [...uninstall, ...install],
    },
    {
      when: 'the spec requests an uninstall of a package that it lists',
      spec: { packages: { a: pkg('1.0.0') } },
      after: { packages: { a: pkg('1.0.0', { uninstall: { enabled: true, apply: true } }) } },
      executedSteps: uninstall,
    },
    {
      when: 'the package is removed and its policy keeps it',
      spec: { packages: { a: pkg('1.0.0', { uninstall: { enabled: false } }) } },
      after: { packages: {} },
      executedSteps: [],
    },
  ])(
    'a superseded step is stopped before its package continues when $when',
    ({ before, spec, after, executedSteps }) => {
      const node = nodeAtWork(before, spec)
      const first = node.executedSteps.splice(0)
      node.apply('s', after)
      expect(maxConcurrentSteps(node)).toBeLessThanOrEqual(1)
      node.settleFor(5_000)
      expect(first).toHaveLength(1)
      expect(node.executedSteps).toEqual(executedSteps)
      expect([node.status(), node.slots, node.attempts.size]).toEqual(['complete', [], 0])
    },
  )

  test('a Skyhook that becomes serial meanwhile runs its packages one after the other', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a').add('b')
    node.apply('s', { packages: { a: pkg('1.0.0'), b: pkg('1.0.0') } })
    node.settle()
    node.hangingPackages.clear()
    node.apply('s', { serial: true, packages: {} })
    node.settleFor(5_000)
    expect([node.executedSteps.slice(2), node.status()]).toEqual([
      [...uninstall, ...uninstall.map((line) => line.replace('a', 'b'))],
      'complete',
    ])
  })

  test('a superseded step of a serial Skyhook is stopped before the drain for its next version', () => {
    const node = nodeAtWork(undefined, { serial: true, packages: { a: pkg('1.0.0') } })
    node.apply('s', { serial: true, packages: { a: pkg('1.0.0') } }, { 'skyhook.nvidia.com/pause': 'true' })
    for (const id of node.attempts.keys())
      node.attempts.set(id, { state: 'ended', end: { outcome: 'exited', code: 0 } })
    node.settle()
    node.apply('s', { serial: true, packages: { a: pkg('2.0.0', { interrupt: cron }) } })
    node.settleFor(5_000)
    expect([node.status(), node.executedInterrupts]).toEqual(['complete', ['service cron']])
  })

  test('a running step of a paused Skyhook is not stopped', () => {
    const node = nodeAtWork(undefined, { packages: { a: pkg('1.0.0') } })
    node.apply('s', { packages: {} }, { 'skyhook.nvidia.com/pause': 'true' })
    node.settleFor(2_000)
    expect([...node.attempts.values()].map(({ state }) => state)).toEqual(['running'])
  })

  test('a reset runs everything again, also complete packages', () => {
    const node = nodeAtWork({ packages: { b: pkg('1.0.0') } }, { packages: { a: pkg('1.0.0'), b: pkg('1.0.0') } })
    node.edit((annotations) => delete annotations[nodeState])
    expect(maxConcurrentSteps(node)).toBeLessThanOrEqual(1)
    node.settleFor(5_000)
    expect(node.executedSteps.filter((line) => line.startsWith('b '))).toHaveLength(4)
    expect(node.executedSteps.slice(1).filter((line) => line.startsWith('a '))).toEqual(install)
    expect(node.events.filter(({ type }) => type === 'reset')).toHaveLength(1)
  })

  test.each([
    ['a reset', (annotations: Record<string, string>) => delete annotations[nodeState]],
    ['an edit', (annotations: Record<string, string>) => (annotations[nodeState] = '{}')],
  ])('%s counts once, regardless of how long our answer takes', (_, change) => {
    const node = nodeAtWork(undefined, { packages: { a: pkg('1.0.0') } })
    node.settleFor(2_000)
    node.arePatchesDelayed = true
    node.edit(change)
    for (let round = 0; round < 50; round++) node.step()
    node.arePatchesDelayed = false
    node.settleFor(5_000)
    expect(node.executedSteps.slice(1)).toEqual(install)
    expect(node.status()).toBe('complete')
  })

  test('an entry removed from the annotation stops its step', () => {
    const node = nodeAtWork(undefined, { packages: { a: pkg('1.0.0') } })
    node.settleFor(2_000)
    node.edit((annotations) => (annotations[nodeState] = '{}'))
    expect(maxConcurrentSteps(node)).toBeLessThanOrEqual(1)
    node.settleFor(5_000)
    expect(node.executedSteps.slice(1)).toEqual(install)
  })

  test('another Skyhook of the same name takes over, and the slot of the first is released', () => {
    const node = nodeAtWork(undefined, { packages: { a: pkg('1.0.0') } })
    const view = node.views.get('s')
    if (view) node.views.set('s', { ...view, metadata: { ...view.metadata, uid: 'another-uid' } })
    expect(maxConcurrentSteps(node)).toBeLessThanOrEqual(1)
    node.settleFor(5_000)
    expect([node.executedSteps.slice(1), node.status(), node.slots]).toEqual([install, 'complete', []])
  })

  test('a step that was decided and has not started does not start', () => {
    const node = new NodeSimulator()
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    while (
      !Object.values(node.journal.skyhooks['s']?.packages ?? {}).some(({ progress }) => progress.state === 'running')
    )
      node.step()
    node.attempts.clear() // the agent died between the journal and the start
    node.executedSteps.length = 0
    node.apply('s', { packages: {} })
    node.settleFor(5_000)
    expect([node.executedSteps, node.state(), node.status(), node.slots]).toEqual([[], [], 'complete', []])
  })
})

describe('steps and interrupts', () => {
  /** An interrupt that does not end by itself. */
  const interruptingNode = (spec: SkyhookSpec): NodeSimulator => {
    const node = new NodeSimulator()
    node.interruptAnswers.set('service', { state: 'running' })
    node.apply('s', spec)
    node.settleFor(3_000)
    expect(node.interrupts.size).toBe(1)
    node.executedSteps.length = 0
    return node
  }
  const end = (node: NodeSimulator): void => {
    for (const id of node.interrupts.keys()) node.interrupts.set(id, { state: 'done' })
    node.interruptAnswers.clear()
    node.settleFor(5_000)
  }

  test.each<[string, (node: NodeSimulator) => void]>([
    [
      'a package that is added',
      (node) => node.apply('s', { packages: { a: pkg('1.0.0', { interrupt: cron }), b: pkg('1.0.0') } }),
    ],
    [
      'the next version of the package',
      (node) => node.apply('s', { packages: { a: pkg('1.1.0', { interrupt: cron }) } }),
    ],
    ['work that a reset starts', (node) => node.edit((annotations) => delete annotations[nodeState])],
    ['a package of another Skyhook', (node) => node.apply('t', { priority: 1, packages: { b: pkg('1.0.0') } })],
  ])('%s waits for the end of the interrupt', (_, change) => {
    const node = interruptingNode({ packages: { a: pkg('1.0.0', { interrupt: cron }) } })
    change(node)
    node.settleFor(3_000)
    expect([node.executedSteps, node.slots.some(({ skyhook }) => skyhook === 's')]).toEqual([[], true])
    end(node)
    expect(node.executedSteps).not.toEqual([])
    expect(node.status()).toBe('complete')
  })

  test('an interrupt waits for a running step even if its successor cannot be pulled', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('b')
    node.apply('s', { packages: { a: pkg('1.0.0', { interrupt: cron }), b: pkg('1.0.0') } })
    node.settleFor(2_000)
    node.images.set('r/bad:1.0.0', 'denied')
    node.apply('s', { packages: { a: pkg('1.0.0', { interrupt: cron }), b: { version: '1.0.0', image: 'r/bad' } } })
    node.settleFor(30_000)
    expect([node.executedInterrupts, [...node.attempts.values()].map(({ state }) => state)]).toEqual([[], ['running']])
  })

  test('a reboot waits for the step of another Skyhook', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('b')
    node.apply('t', { packages: { b: pkg('1.0.0') } })
    node.settle()
    node.apply('s', { priority: 1, packages: { a: pkg('1.0.0', { interrupt: reboot }) } })
    node.settleFor(5_000)
    expect(node.executedInterrupts).toEqual([])
    node.finishHanging('b')
    node.settleFor(30_000)
    expect([node.executedInterrupts, node.status('s'), node.status('t')]).toEqual([['reboot'], 'complete', 'complete'])
    expect(node.executedSteps.filter((line) => line === 'b apply run.sh')).toHaveLength(1)
  })

  test('an interrupt is not requested after a restart of the agent while the Skyhook is paused', () => {
    const spec = { packages: { a: pkg('1.0.0', { interrupt: cron }) } }
    const node = interruptingNode(spec)
    node.interrupts.clear()
    node.interruptAnswers.clear()
    node.apply('s', spec, { 'skyhook.nvidia.com/pause': 'true' })
    node.settleFor(3_000)
    expect([node.executedInterrupts, node.reason()]).toEqual([[], 'Paused'])
    node.apply('s', spec)
    node.settleFor(5_000)
    expect([node.executedInterrupts, node.status()]).toEqual([['service cron'], 'complete'])
  })
})

describe('slot and cordon', () => {
  test.each<[string, (node: NodeSimulator) => void]>([
    ['a deleted Skyhook', (node) => node.views.delete('s')],
    [
      'a node that leaves the selector',
      (node) => {
        node.node = { ...node.node, metadata: { ...node.node.metadata, labels: {} } }
      },
    ],
    [
      'a reset while nothing may start',
      (node) => {
        node.node = {
          ...node.node,
          metadata: { ...node.node.metadata, labels: { pool: 'x', 'skyhook.nvidia.com/ignore': 'true' } },
        }
        node.edit((annotations) => delete annotations[nodeState])
      },
    ],
  ])('%s releases the slot only after the cordon', (_, change) => {
    const node = new NodeSimulator({ pool: 'x' })
    node.pods = [
      { metadata: { name: 'cart', namespace: 'shop', uid: 'u', resourceVersion: '1' }, status: { phase: 'Running' } },
    ]
    node.refusingPods.add('cart')
    node.apply('s', {
      nodeSelectors: { matchLabels: { pool: 'x' } },
      packages: { a: pkg('1.0.0', { interrupt: cron }) },
    })
    node.settleFor(3_000)
    expect(node.node.spec?.unschedulable).toBe(true)
    node.arePatchesDelayed = true
    change(node)
    for (let round = 0; round < 20; round++) node.step()
    expect(node.slots).toHaveLength(1)
    node.arePatchesDelayed = false
    node.settleFor(3_000)
    expect([node.node.spec?.unschedulable, node.slots]).toEqual([false, []])
  })
})

describe('a Skyhook re-created in the middle of its work', () => {
  const recreatedNode = (packages: Record<string, PackageSpec>): NodeSimulator => {
    const node = nodeAtWork(undefined, { packages: { a: pkg('1.0.0') } })
    node.views.delete('s')
    node.settleFor(2_000)
    node.executedSteps.length = 0
    node.apply('s', { packages })
    const view = node.views.get('s')
    if (view) node.views.set('s', { ...view, metadata: { ...view.metadata, uid: 'another-uid' } })
    node.settleFor(5_000)
    expect([node.status(), node.slots]).toEqual(['complete', []])
    return node
  }

  test.each<[string, Record<string, PackageSpec>, readonly string[]]>([
    ['installs again what was half installed', { a: pkg('1.0.0') }, install],
    ['upgrades what was half installed', { a: pkg('1.1.0') }, upgrade],
    ['uninstalls what it no longer has', {}, uninstall],
  ])('a Skyhook re-created during its work %s', (_, packages, executedSteps) => {
    expect(recreatedNode(packages).executedSteps).toEqual(executedSteps)
  })
})

test('a Skyhook re-created during an upgrade upgrades again, and the older version is removed', () => {
  const node = nodeAtWork({ packages: { a: pkg('1.0.0') } }, { packages: { a: pkg('1.1.0') } })
  node.views.delete('s')
  node.settleFor(2_000)
  node.executedSteps.length = 0
  node.apply('s', { packages: { a: pkg('1.1.0') } })
  const view = node.views.get('s')
  if (view) node.views.set('s', { ...view, metadata: { ...view.metadata, uid: 'another-uid' } })
  node.settleFor(5_000)
  expect([node.executedSteps, node.state(), node.status()]).toEqual([upgrade, ['a|1.1.0: config/complete'], 'complete'])
})

test('a Skyhook that was replaced while the node left its selector releases its slot only once its step was stopped', () => {
  const node = new NodeSimulator({ pool: 'x' })
  const spec = { nodeSelectors: { matchLabels: { pool: 'x' } }, packages: { a: pkg('1.0.0') } }
  node.hangingPackages.add('a')
  node.apply('s', spec)
  node.settle()
  const view = node.views.get('s')
  if (view) node.views.set('s', { ...view, metadata: { ...view.metadata, uid: 'another-uid' } })
  node.node = { ...node.node, metadata: { ...node.node.metadata, labels: {} } }
  const isRunning = (): boolean => [...node.attempts.values()].some(({ state }) => state === 'running')
  for (let round = 0; round < 20; round++) {
    const wasRunning = isRunning()
    node.step()
    expect([wasRunning, node.slots.length]).not.toEqual([true, 0])
  }
  expect([isRunning(), node.slots]).toEqual([false, []])
})

test('the end of a step is not forgotten when the node left the selector before', () => {
  const node = new NodeSimulator({ pool: 'x' })
  node.hangingPackages.add('a')
  node.apply('s', { nodeSelectors: { matchLabels: { pool: 'x' } }, packages: { a: pkg('1.0.0') } })
  node.settle()
  node.node = { ...node.node, metadata: { ...node.node.metadata, labels: {} } }
  node.settle()
  node.finishHanging('a')
  node.settleFor(2_000)
  node.node = { ...node.node, metadata: { ...node.node.metadata, labels: { pool: 'x' } } }
  node.settleFor(5_000)
  expect([node.executedSteps, node.status()]).toEqual([install, 'complete'])
})

describe('a step whose start is not answered yet when the node leaves the selector', () => {
  const spec = { nodeSelectors: { matchLabels: { pool: 'x' } }, packages: { a: pkg('1.0.0') } }
  const select = (node: NodeSimulator, isSelected: boolean): void => {
    node.node = { ...node.node, metadata: { ...node.node.metadata, labels: isSelected ? { pool: 'x' } : {} } }
  }
  const leavingNode = (): NodeSimulator => {
    const node = new NodeSimulator({ pool: 'x' })
    node.unansweredPackages.add('a')
    node.apply('s', spec)
    node.settle()
    expect([node.executedSteps, [...node.attempts.values()]]).toEqual([['a apply run.sh'], []])
    select(node, false)
    return node
  }

  test.each([[0], [4_000]])(
    'a step that ended well by then is not repeated when the node is selected again after %i ms',
    (absentMs) => {
      const node = leavingNode()
      node.step()
      if (absentMs > 0) node.settleFor(absentMs)
      node.unansweredPackages.clear()
      select(node, true)
      node.settleFor(10_000)
      expect([node.executedSteps, node.status(), node.slots]).toEqual([install, 'complete', []])
    },
  )

  /** The step was there when the node left, and ended with this code before it was stopped. */
  function returnedNode(code: number): NodeSimulator {
    const node = new NodeSimulator({ pool: 'x' })
    const { modes } = simplePackage()
    const apply = [plainStep('run.sh', { returncodes: [0, 3] })]
    node.images.set('r/pkg:1.0.0', simplePackage({ ...modes, apply }))
    node.unansweredPackages.add('a')
    node.exitCodes.set('a apply', code)
    node.apply('s', spec)
    node.settle()
    select(node, false)
    node.settleFor(4_000)
    node.unansweredPackages.clear()
    node.exitCodes.clear()
    node.executedSteps.length = 0
    select(node, true)
    node.settleFor(10_000)
    expect(node.status()).toBe('complete')
    return node
  }

  test('a step that ended well with another code than 0 is not repeated either', () => {
    expect(returnedNode(3).executedSteps).toEqual(install.slice(1))
  })

  test('a step that ended with a code that it may not end with is started again, and counts as no failure', () => {
    const node = returnedNode(143) // as some do when they are told to stop
    expect(node.executedSteps).toEqual(install)
    expect(node.events.filter(({ type }) => type === 'stageFailed')).toEqual([])
  })

  test('a step that was stopped before it started is started again, and counts as no failure', () => {
    const node = leavingNode()
    node.startedSteps.clear()
    node.settleFor(4_000)
    expect(node.slots).toEqual([])
    node.unansweredPackages.clear()
    node.executedSteps.length = 0
    select(node, true)
    node.settleFor(10_000)
    expect([node.executedSteps, node.status()]).toEqual([install, 'complete'])
  })

  test('a step that may have run before the host went down is reported as unknown before it is repeated', () => {
    const node = leavingNode()
    node.step()
    node.attempts.clear()
    node.startedSteps.clear()
    node.unansweredPackages.clear()
    node.reboot()
    node.settleFor(4_000)
    select(node, true)
    node.settleFor(10_000)
    expect(node.events.filter(({ type }) => type === 'stepUnknown')).toHaveLength(1)
    expect(node.status()).toBe('complete')
  })
})
