import { describe, expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import {
  installedNode,
  isCordoned,
  packageWith,
  pkg,
  reboot,
} from '../../../test/kit/node-simulator/node-simulator-dsl.ts'

describe('a Skyhook being deleted', () => {
  const markDeleted = (node: NodeSimulator): void => {
    const view = node.views.get('s')
    if (view)
      node.views.set('s', { ...view, metadata: { ...view.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } })
  }

  test('a Skyhook being deleted uninstalls packages that request it, under a slot', () => {
    const node = installedNode({ uninstall: { enabled: true } })
    markDeleted(node)
    node.settleFor(5_000)
    expect([node.executedSteps, node.annotation('nodeState_s'), node.slots]).toEqual([
      ['a uninstall run.sh', 'a uninstall-check run_check.sh'],
      '{}',
      [],
    ])
  })

  test.each([[undefined], [{ enabled: false }]])(
    'a Skyhook being deleted leaves packages with uninstall %j',
    (uninstall) => {
      const node = installedNode(uninstall && { uninstall })
      markDeleted(node)
      node.settleFor(5_000)
      expect([node.executedSteps, node.state()]).toEqual([[], ['a|1.0.0: config/complete']])
    },
  )
})

describe('departures', () => {
  test.each([
    ['stay on the host', undefined, true],
    ['are gone', { enabled: true }, false],
  ])('the files of a deleted Skyhook %s, and its end says so', (_, uninstall, leavesFiles) => {
    const node = installedNode(uninstall && { uninstall })
    node.requestDeletion('s')
    node.settleFor(5_000)
    node.remove('s')
    node.settleFor(2_000)
    expect(node.events.filter(({ type }) => type === 'orphaned')).toEqual([
      { type: 'orphaned', skyhook: 's', leavesFiles },
    ])
  })

  test('a deleted Skyhook loses its annotations, label, conditions and slot, and runs nothing', () => {
    const node = installedNode()
    node.views.delete('s')
    node.settleFor(2_000)
    expect(node.executedSteps).toEqual([])
    expect([
      node.node.metadata.annotations,
      node.node.metadata.labels,
      node.node.status?.conditions?.map(({ type }) => type),
    ]).toEqual([{}, {}, ['Ready']])
    expect(node.journal.skyhooks['s']?.orphaned).toBe(true)
  })

  test('a Skyhook that disappears during a step stops the step and then releases the slot', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    node.views.delete('s')
    node.settleFor(2_000)
    expect(node.slots).toEqual([])
    expect(node.journal.skyhooks['s']?.orphaned).toBe(true)
  })

  test('a Skyhook created again under its name keeps what is complete', () => {
    const node = installedNode()
    node.views.delete('s')
    node.settleFor(2_000)
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(5_000)
    expect([node.executedSteps, node.status()]).toEqual([[], 'complete'])
  })

  test('the slot of a deleted Skyhook goes although the one that took its name is deleted, too', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    node.remove('s')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.step()
    node.remove('s')
    node.settleFor(2_000)
    expect([node.slots, node.executedSteps]).toEqual([[], ['a apply run.sh']])
  })

  test('a node that leaves the selector releases the slot after the running step', () => {
    const node = new NodeSimulator({ pool: 'x' })
    node.hangingPackages.add('a')
    const spec = { nodeSelectors: { matchLabels: { pool: 'x' } }, packages: { a: pkg('1.0.0') } }
    node.apply('s', spec)
    node.settle()
    node.node = { ...node.node, metadata: { ...node.node.metadata, labels: {} } }
    node.settle()
    expect(node.slots).toHaveLength(1)
    node.finishHanging('a')
    node.settleFor(2_000)
    expect([node.slots, node.executedSteps]).toEqual([[], ['a apply run.sh']])
  })

  test('nothing changes while the Skyhooks are unknown', () => {
    const node = installedNode()
    const snapshot = { ...node.snapshot(), skyhooks: { known: false as const, why: '503' } }
    node.snapshot = () => snapshot
    node.settle()
    expect(node.status()).toBe('complete')
    expect(node.executedSteps).toEqual([])
  })
})

describe('departures while a reboot is awaited', () => {
  const spec = { nodeSelectors: { matchLabels: { pool: 'x' } }, packages: { a: packageWith(reboot) } }
  const leaveSelector = (node: NodeSimulator): void => {
    node.node = { ...node.node, metadata: { ...node.node.metadata, labels: {} } }
  }
  const departures: [string, (node: NodeSimulator) => void][] = [
    ['a deleted Skyhook', (node) => node.remove('s')],
    ['a node that left the selector', leaveSelector],
  ]

  /** A node whose host has the request, and says this about it. */
  function rebootingNode(shutdown: NodeSimulator['shutdown']): NodeSimulator {
    const node = new NodeSimulator({ pool: 'x' })
    node.interruptAnswers.set('reboot', { state: 'unknown', message: 'logind accepted the request' })
    node.shutdown = shutdown
    node.apply('s', spec)
    node.settleFor(3_000)
    expect([node.executedInterrupts, node.reason(), isCordoned(node)]).toEqual([['reboot'], 'RebootPending', true])
    return node
  }

  test.each(departures)('%s gives slot and cordon back once its host does not go down', (_, depart) => {
    const node = rebootingNode('none')
    depart(node)
    node.settleFor(30_000)
    expect([node.slots.length, isCordoned(node), node.reason()]).toEqual([1, true, 'RebootPending'])
    expect(node.annotation('reason_s')).toContain('RebootPending')
    node.settleFor(90_000)
    expect([node.slots, isCordoned(node), node.reason()]).toEqual([[], false, undefined])
    expect(node.executedInterrupts).toEqual(['reboot'])
  })

  test.each(departures)('%s keeps slot and cordon while its host goes down, whatever agent asks it', (_, depart) => {
    const node = rebootingNode('under-way')
    depart(node)
    node.settleFor(200_000)
    node.restartAgent()
    node.settleFor(200_000)
    expect([node.slots.length, isCordoned(node), node.reason()]).toEqual([1, true, 'RebootPending'])
    node.reboot()
    node.settleFor(5_000)
    expect([node.slots, isCordoned(node), node.executedInterrupts]).toEqual([[], false, ['reboot']])
  })

  test('a Skyhook that is deleted before its reboot is requested does not reboot the host', () => {
    const node = new NodeSimulator({ pool: 'x' })
    node.apply('s', spec)
    node.settleUntil(() => node.journal.skyhooks['s']?.interrupt !== undefined)
    expect(node.executedInterrupts).toEqual([])
    node.remove('s')
    node.settleFor(5_000)
    expect([node.executedInterrupts, node.slots, isCordoned(node)]).toEqual([[], [], false])
    expect(node.journal.skyhooks['s']?.orphaned).toBe(true)
  })
})
