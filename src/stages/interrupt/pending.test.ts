import { describe, expect, test } from 'vitest'
import { isCordoned, linesOfMode, pod } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import type { StatusReadResult } from '../../schemas/package-status.ts'
import type { Interrupt, PackageSpec } from '../../schemas/skyhook.ts'
import { mergeInterrupts } from './merge.ts'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'

const rebootIfRequired: Interrupt = { type: 'reboot', when: 'required' }
const pkg = (change: Partial<PackageSpec> = {}): PackageSpec => ({ version: '1.0.0', image: 'r/pkg', ...change })
const statusWith = (interrupt: boolean, bootId = 'boot-1'): StatusReadResult => ({
  state: 'read',
  status: { bootId, message: '', requests: { run: false, interrupt } },
  writtenAtMs: 0,
})

/** With a pod that never goes by itself, and packages that say whether they need their interrupt. */
function nodeWith(
  packages: Readonly<Record<string, PackageSpec>>,
  required: Readonly<Record<string, boolean>>,
): NodeSimulator {
  const node = new NodeSimulator()
  node.pods = [pod('web')]
  for (const [name, isRequired] of Object.entries(required)) node.statusFiles.set(`s/${name}`, statusWith(isRequired))
  node.apply('s', { packages })
  return node
}

describe('a conditional interrupt', () => {
  test('a conditional interrupt that is not required leaves the node in service', () => {
    const node = nodeWith({ a: pkg({ interrupt: rebootIfRequired }) }, { a: false })
    let cordons = 0
    for (let round = 0; round < 60; round++) {
      node.step()
      if (isCordoned(node)) cordons++
    }
    node.settleFor(5_000)
    expect([cordons, node.evictedPods, node.executedInterrupts, linesOfMode(node, 'post-interrupt').length]).toEqual([
      0,
      [],
      [],
      0,
    ])
    expect([node.status(), node.state(), node.slots]).toEqual(['complete', ['a|1.0.0: config/complete'], []])
    expect(node.journal.skyhooks['s']?.packages['a|1.0.0']?.pendingInterrupt).toBeUndefined()
  })

  test('a conditional interrupt that is required drains the node after config', () => {
    const node = nodeWith({ a: pkg({ interrupt: rebootIfRequired }) }, { a: true })
    node.refusingPods.add('web')
    node.settleFor(2_000)
    expect([node.state(), isCordoned(node), node.executedInterrupts, node.reason()]).toEqual([
      ['a|1.0.0: config/complete'],
      true,
      [],
      'DrainBlocked',
    ])
    node.refusingPods.clear()
    node.settleFor(10_000)
    expect([node.evictedPods, node.executedInterrupts, linesOfMode(node, 'post-interrupt').length]).toEqual([
      ['web'],
      ['reboot'],
      1,
    ])
    expect([node.status(), node.state(), isCordoned(node)]).toEqual([
      'complete',
      ['a|1.0.0: post-interrupt/complete'],
      false,
    ])
  })

  test('a conditional interrupt runs under the slot that is held already', () => {
    const node = nodeWith({ a: pkg({ interrupt: rebootIfRequired }) }, { a: true })
    node.hangingPackages.add('a')
    node.settle()
    const leases = node.slots.map(({ lease }) => lease)
    node.areSlotsGranted = false
    node.finishHanging('a')
    node.settleFor(10_000)
    expect([leases, node.executedInterrupts, node.status()]).toEqual([['s-uid.slot-0'], ['reboot'], 'complete'])
  })

  test('a conditional interrupt is neither executed nor forgotten where the package does not report', () => {
    const node = nodeWith({ a: pkg({ interrupt: rebootIfRequired }) }, {})
    node.settleFor(3_000)
    expect([node.status(), node.reason(), node.executedInterrupts, node.slots.length]).toEqual([
      'erroring',
      'CheckFailed',
      [],
      1,
    ])
    expect(node.annotation('reason_s')).toContain(
      'it is unknown whether the interrupt is required: there is no such file',
    )
    node.statusFiles.set('s/a', statusWith(true))
    node.settleFor(20_000)
    expect([node.executedInterrupts, node.status()]).toEqual([['reboot'], 'complete'])
  })

  test('a conditional reboot is refused before slot, cordon and drain on a host that must not be rebooted', () => {
    const node = nodeWith({ a: pkg({ interrupt: rebootIfRequired }) }, { a: true })
    node.rebootBarrier = 'the host is a container'
    node.settleFor(60_000)
    expect([node.status(), node.reason(), node.slots.length, isCordoned(node)]).toEqual([
      'erroring',
      'RebootRefused',
      0,
      false,
    ])
    expect([linesOfMode(node, 'config').length, node.executedInterrupts]).toEqual([1, []])
    node.rebootBarrier = undefined
    node.settleFor(60_000)
    expect([node.executedInterrupts, node.status()]).toEqual([['reboot'], 'complete'])
  })

  test('a conditional interrupt stays pending once the package has reported it', () => {
    const node = nodeWith({ a: pkg({ interrupt: rebootIfRequired }) }, { a: true })
    node.refusingPods.add('web')
    node.settleFor(2_000)
    node.statusFiles.set('s/a', statusWith(false))
    node.refusingPods.clear()
    node.settleFor(10_000)
    expect(node.executedInterrupts).toEqual(['reboot'])
  })

  test.each<[string, string]>([
    ['after the package reported it', 'boot-1'],
    ['before the package reported it', 'boot-0'],
  ])('a conditional interrupt counts as done when the host booted %s', (_, reportedIn) => {
    const node = nodeWith({ a: pkg({ interrupt: rebootIfRequired }) }, {})
    node.statusFiles.set('s/a', statusWith(true, reportedIn))
    node.refusingPods.add('web')
    node.settleFor(2_000)
    if (reportedIn === node.bootId) node.reboot()
    node.refusingPods.clear()
    node.settleFor(10_000)
    expect([
      node.executedInterrupts,
      linesOfMode(node, 'post-interrupt').length,
      node.status(),
      isCordoned(node),
    ]).toEqual([[], 1, 'complete', false])
    expect(node.events).toContainEqual({
      type: 'interrupted',
      skyhook: 's',
      interrupt: 'reboot, replaced by a boot',
    })
  })

  test('a conditional interrupt is merged with those of its siblings', () => {
    const node = nodeWith(
      { a: pkg({ interrupt: rebootIfRequired }), b: pkg({ interrupt: { type: 'service', services: ['cron'] } }) },
      { a: true },
    )
    node.settleFor(10_000)
    expect([node.executedInterrupts, linesOfMode(node, 'post-interrupt').length]).toEqual([['reboot'], 2])
  })

  test('a conditional interrupt releases the slot while pods block the drain, because the host is not half changed', () => {
    const node = nodeWith({ a: pkg({ interrupt: rebootIfRequired }) }, { a: true })
    node.refusingPods.add('web')
    node.settleFor(605_000)
    expect([isCordoned(node), node.slots.length, node.status(), node.reason()]).toEqual([
      false,
      0,
      'waiting',
      'DrainBlocked',
    ])
    node.refusingPods.clear()
    node.settleFor(70_000)
    expect([node.executedInterrupts, node.status()]).toEqual([['reboot'], 'complete'])
  })

  test('the package is asked after each config, and not after other stages', () => {
    const node = nodeWith({ a: pkg({ interrupt: rebootIfRequired, configMap: { x: '1' } }) }, { a: false })
    node.settleFor(5_000)
    node.statusFiles.set('s/a', statusWith(true))
    node.settleFor(100_000)
    expect(node.executedInterrupts).toEqual([])
    node.apply('s', { packages: { a: pkg({ interrupt: rebootIfRequired, configMap: { x: '2' } }) } })
    node.settleFor(10_000)
    expect([node.executedInterrupts, node.status()]).toEqual([['reboot'], 'complete'])
  })

  test('a conditional interrupt can depend on keys of the configuration', () => {
    const spec = (configMap: Record<string, string>): PackageSpec =>
      pkg({ configMap, configInterrupts: { x: rebootIfRequired, y: { type: 'service', services: ['cron'] } } })
    const node = nodeWith({ a: spec({ x: '1', y: '1', z: '1' }) }, { a: true })
    node.settleFor(5_000)
    node.apply('s', { packages: { a: spec({ x: '1', y: '1', z: '2' }) } })
    node.settleFor(5_000)
    expect(node.executedInterrupts).toEqual([])
    node.statusFiles.set('s/a', statusWith(false))
    node.apply('s', { packages: { a: spec({ x: '2', y: '2', z: '2' }) } })
    node.settleFor(5_000)
    expect(node.executedInterrupts).toEqual(['service cron'])
    node.statusFiles.set('s/a', statusWith(true))
    node.apply('s', { packages: { a: spec({ x: '3', y: '2', z: '2' }) } })
    node.settleFor(10_000)
    expect([node.executedInterrupts, node.status()]).toEqual([['service cron', 'reboot'], 'complete'])
  })

  test('a conditional interrupt runs without the package when a person sets the stage', () => {
    const node = nodeWith({ a: pkg({ interrupt: rebootIfRequired }) }, { a: false })
    node.settleFor(5_000)
    node.edit((annotations) => {
      annotations['skyhook.nvidia.com/nodeState_s'] = (annotations['skyhook.nvidia.com/nodeState_s'] ?? '').replace(
        '"stage":"config","state":"complete"',
        '"stage":"interrupt","state":"in_progress"',
      )
    })
    node.settleFor(10_000)
    expect([node.executedInterrupts, node.status()]).toEqual([['reboot'], 'complete'])
  })

  test('a conditional interrupt that stays required reaches the limit on reboots', () => {
    const node = nodeWith({ a: pkg({ interrupt: rebootIfRequired }) }, {})
    node.exitCodes.set('a post-interrupt-check', 1)
    for (let round = 1; round <= 4; round++) {
      node.statusFiles.set('s/a', statusWith(true, node.bootId))
      node.settleFor(20_000)
      node.edit((annotations) => {
        annotations['skyhook.nvidia.com/nodeState_s'] = (annotations['skyhook.nvidia.com/nodeState_s'] ?? '').replace(
          'post-interrupt',
          'config',
        )
      })
    }
    expect([node.executedInterrupts.length, node.reason()]).toEqual([3, 'RebootLoop'])
  })
})

test('merged interrupts are conditional only if all are, and keep what was merged before', () => {
  const cron: Interrupt = { type: 'service', services: ['cron'] }
  expect(mergeInterrupts([rebootIfRequired, { ...cron, when: 'required' }])).toEqual({
    type: 'reboot',
    when: 'required',
  })
  expect(mergeInterrupts([rebootIfRequired, cron])).toEqual({ type: 'reboot' })
  expect(mergeInterrupts([{ ...cron, when: 'always' }])).toEqual(cron)
  const both = { ...cron, alsoRestartAllServices: true }
  expect(mergeInterrupts([both])).toEqual(both)
})
