import { describe, expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { guardedStep, plainStep, simplePackage } from '../../../test/kit/node-simulator/package-content.ts'
import { install, installedNode, pkg } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'

describe('interrupted work', () => {
  test('a step that runs during a restart of the agent is found again and not run twice', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    node.preparations.clear() // a new agent has prepared nothing yet
    node.settle()
    node.finishHanging('a')
    node.settleFor(5_000)
    expect(node.executedSteps).toEqual(install)
  })

  test('a step lost with its host is reported as unknown and repeated, but not the finished steps before it', () => {
    const node = new NodeSimulator()
    node.images.set(
      'r/pkg:1.0.0',
      simplePackage({ apply: [plainStep('one.sh'), plainStep('two.sh')], 'apply-check': [plainStep('c.sh')] }),
    )
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    for (const [id, { state }] of node.attempts)
      if (state === 'running') node.attempts.set(id, { state: 'ended', end: { outcome: 'exited', code: 0 } })
    node.settle()
    expect(node.executedSteps).toEqual(['a apply one.sh', 'a apply two.sh'])
    node.powerCut()
    node.hangingPackages.clear()
    node.settleFor(5_000)
    expect(node.executedSteps.slice(0, 4)).toEqual([
      'a apply one.sh',
      'a apply two.sh',
      'a apply two.sh',
      'a apply-check c.sh',
    ])
    expect(node.events.filter(({ type }) => type === 'stepUnknown')).toHaveLength(1)
    expect(node.status()).toBe('complete')
  })

  test('a step that the host cannot start reports why and waits, and the steps before it do not run again', () => {
    const node = new NodeSimulator()
    node.images.set(
      'r/pkg:1.0.0',
      simplePackage({ apply: [plainStep('one.sh'), plainStep('two.sh')], 'apply-check': [plainStep('c.sh')] }),
    )
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    node.startBlocker = 'ENOSPC: no space left on device'
    node.finishHanging('a')
    node.settleFor(20_000)
    expect(node.executedSteps).toEqual(['a apply one.sh'])
    expect(JSON.parse(node.annotation('reason_s') ?? '{}')).toMatchObject({
      reason: 'HostUnusable',
      message: node.startBlocker,
    })
    expect(node.events.some(({ type }) => type === 'stageFailed')).toBe(false)
    node.startBlocker = undefined
    node.settleFor(5_000)
    expect(node.executedSteps.slice(0, 3)).toEqual(['a apply one.sh', 'a apply two.sh', 'a apply-check c.sh'])
    expect(node.status()).toBe('complete')
    expect(node.annotation('reason_s')).toBeUndefined()
  })

  test('a step stopped by the shutdown of its host is unknown, not failed', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    node.finishHanging('a', { outcome: 'killed', signal: 'TERM' })
    node.bootId = 'boot-2'
    node.settleFor(5_000)
    expect(node.status()).toBe('complete')
    expect(node.events.some(({ type }) => type === 'stageFailed')).toBe(false)
  })

  test('a deleted slot of work in progress is taken again', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    node.slots.length = 0
    node.areSlotsGranted = false
    node.settle()
    expect(node.slots).toHaveLength(1)
  })

  test('a guarded step that succeeded is skipped when its stage is repeated', () => {
    const node = new NodeSimulator()
    node.images.set(
      'r/pkg:1.0.0',
      simplePackage({ apply: [guardedStep('once.sh')], 'apply-check': [plainStep('c.sh')] }),
    )
    node.exitCodes.set('a apply-check', 1)
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(1_000)
    node.exitCodes.clear()
    node.settleFor(10_000)
    expect(node.executedSteps.filter((line) => line.includes('once.sh'))).toHaveLength(1)
    expect(node.status()).toBe('complete')
  })
})

describe('an unrequested boot', () => {
  test('an unrequested boot changes nothing by default', () => {
    const node = installedNode()
    node.reboot()
    node.settleFor(5_000)
    expect(node.executedSteps).toEqual([])
  })

  test('an unrequested boot applies every package again under a slot, if the chart says so', () => {
    const node = installedNode()
    node.reapplyOnReboot = true
    node.areSlotsGranted = false
    node.reboot()
    node.settleFor(5_000)
    expect([node.executedSteps, node.reason()]).toEqual([[], 'WaitingForSlot'])
    node.areSlotsGranted = true
    node.settleFor(60_000)
    expect([node.executedSteps, node.status()]).toEqual([install, 'complete'])
  })

  test('an unrequested boot is distinguished from our own reboot', () => {
    const node = new NodeSimulator()
    node.reapplyOnReboot = true
    node.apply('s', { packages: { a: pkg('1.0.0', { interrupt: { type: 'reboot' } }), b: pkg('1.0.0') } })
    node.settleFor(30_000)
    expect([
      node.executedInterrupts,
      node.status(),
      node.executedSteps.filter((line) => line.startsWith('b apply ')),
    ]).toEqual([['reboot'], 'complete', ['b apply run.sh']])
  })
})
