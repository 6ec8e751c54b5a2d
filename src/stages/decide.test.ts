import { describe, expect, test } from 'vitest'
import { NodeSimulator } from '../../test/kit/node-simulator/node-simulator.ts'
import { guardedStep, plainStep, simplePackage } from '../../test/kit/node-simulator/package-content.ts'
import { install, installedNode, pkg } from '../../test/kit/node-simulator/node-simulator-dsl.ts'

describe('a first install', () => {
  test('a first install runs apply and config with their checks, publishes completion and releases the slot', () => {
    const node = new NodeSimulator()
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(5_000)
    expect(node.executedSteps).toEqual(install)
    expect(node.state()).toEqual(['a|1.0.0: config/complete'])
    expect(node.status()).toBe('complete')
    expect(node.slots).toEqual([])
    expect(node.reason()).toBeUndefined()
    expect(node.node.metadata.labels?.['skyhook.nvidia.com/status_s']).toBe('complete')
    expect(node.node.status?.conditions?.map(({ type, status }) => `${type} ${status}`).sort()).toEqual([
      'Ready True',
      'skyhook.nvidia.com/s/Erroring False',
      'skyhook.nvidia.com/s/NotReady False',
    ])
  })

  test('a first install writes the Node twice: when it starts and when it is complete', () => {
    const node = new NodeSimulator()
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    expect(node.patches).toBe(2)
  })

  test('a first install starts nothing before the slot is granted and confirmed', () => {
    const node = new NodeSimulator()
    node.areSlotsGranted = false
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(2_000)
    expect(node.executedSteps).toEqual([])
    expect(node.status()).toBe('waiting')
    expect(node.reason()).toBe('WaitingForSlot')
    expect(JSON.parse(node.annotation('reason_s') ?? '{}')).toMatchObject({
      reason: 'WaitingForSlot',
      message: 'the budget of 1 node is used up',
    })
    node.areSlotsGranted = true
    node.settleFor(20_000)
    expect(node.status()).toBe('complete')
    expect(node.annotation('reason_s')).toBeUndefined()
  })

  test('a first install requests a slot only once a package is prepared', () => {
    const node = new NodeSimulator()
    node.images.set('r/pkg:1.0.0', 'manifest unknown')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(2_000)
    expect(node.slots).toEqual([])
    expect(node.reason()).toBe('ImagePull')
    expect(node.annotation('reason_s')).toContain('manifest unknown')
    node.images.delete('r/pkg:1.0.0')
    node.settleFor(60_000)
    expect(node.status()).toBe('complete')
  })

  test('a first install respects dependencies', () => {
    const node = new NodeSimulator()
    node.apply('s', { packages: { a: pkg('1.0.0', { dependsOn: { b: '1.0.0' } }), b: pkg('1.0.0') } })
    node.settleFor(5_000)
    expect(node.executedSteps.map((line) => line.split(' ')[0])).toEqual(['b', 'b', 'b', 'b', 'a', 'a', 'a', 'a'])
  })

  test('a first install runs independent packages concurrently, and one after another when serial', () => {
    for (const serial of [false, true]) {
      const node = new NodeSimulator()
      node.hangingPackages.add('a').add('b')
      node.apply('s', { serial, packages: { a: pkg('1.0.0'), b: pkg('1.0.0') } })
      node.settle()
      expect(node.executedSteps).toEqual(serial ? ['a apply run.sh'] : ['a apply run.sh', 'b apply run.sh'])
    }
  })

  test('a package without steps completes', () => {
    const node = new NodeSimulator()
    node.images.set('r/pkg:1.0.0', simplePackage({ apply: [], 'apply-check': [] }))
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(2_000)
    expect(node.executedSteps).toEqual([])
    expect(node.status()).toBe('complete')
  })

  test('a Skyhook without packages is complete and takes no slot', () => {
    const node = new NodeSimulator()
    node.areSlotsGranted = false
    node.apply('s', {})
    node.settleFor(1_000)
    expect(node.status()).toBe('complete')
  })
})

describe('gates', () => {
  test('a pause before the start lets nothing be fetched or run', () => {
    const node = new NodeSimulator()
    node.apply('s', { packages: { a: pkg('1.0.0') } }, { 'skyhook.nvidia.com/pause': 'true' })
    node.settleFor(1_000)
    expect([node.status(), node.reason(), node.executedSteps, node.preparations.size]).toEqual([
      'paused',
      'Paused',
      [],
      0,
    ])
  })

  test('a pause during a step lets it end and be recorded, starts nothing new and keeps the slot', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    node.apply('s', { packages: { a: pkg('1.0.0') } }, { 'skyhook.nvidia.com/pause': 'true' })
    node.finishHanging('a')
    node.settleFor(2_000)
    expect(node.executedSteps).toEqual(['a apply run.sh'])
    expect([node.status(), node.slots.length]).toEqual(['paused', 1])
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(5_000)
    expect(node.executedSteps).toEqual(install)
  })

  test('an untolerated taint blocks the start and is named', () => {
    const node = new NodeSimulator()
    node.node = { ...node.node, spec: { taints: [{ key: 'gpu', value: 'x', effect: 'NoSchedule' }] } }
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(1_000)
    expect(node.status()).toBe('blocked')
    expect(node.annotation('reason_s')).toContain('gpu=x:NoSchedule')
    node.apply('s', { packages: { a: pkg('1.0.0') }, additionalTolerations: [{ key: 'gpu', operator: 'Exists' }] })
    node.settleFor(5_000)
    expect(node.status()).toBe('complete')
  })

  test('the later Skyhook waits for the earlier one, unless that is disabled', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    node.apply('first', { priority: 1, packages: { a: pkg('1.0.0') } })
    node.apply('second', { packages: { b: pkg('1.0.0') } })
    node.settleFor(2_000)
    expect(node.reason('second')).toBe('WaitingForPriority')
    node.finishHanging('a')
    node.settleFor(5_000)
    expect(node.status('second')).toBe('complete')
    expect(node.executedSteps.indexOf('b apply run.sh')).toBe(4)
  })

  test('an invalid spec blocks only itself', () => {
    const node = new NodeSimulator()
    node.apply('a-bad', { packages: { a: pkg('1.0.0', { dependsOn: { ghost: '1.0.0' } }) } })
    node.apply('b-good', { packages: { b: pkg('1.0.0') } })
    node.settleFor(3_000)
    expect([node.reason('a-bad'), node.status('b-good')]).toEqual(['InvalidSpec', 'complete'])
  })
})

describe('changes', () => {
  test('a config change runs config alone, under a slot', () => {
    const node = installedNode({ configMap: { x: '1' } })
    node.apply('s', { packages: { a: pkg('1.0.0', { configMap: { x: '2' } }) } })
    node.settleFor(3_000)
    expect(node.executedSteps).toEqual(['a config run.sh', 'a config-check run_check.sh'])
    expect(node.status()).toBe('complete')
  })

  test('a change without work causes no step and no write', () => {
    const node = installedNode()
    const patches = node.patches
    node.apply('s', { packages: { a: pkg('1.0.0', { gracefulShutdown: '10s' }) } })
    node.settleFor(3_000)
    expect([node.executedSteps, node.patches]).toEqual([[], patches])
  })

  test('a change from A to B and back during config of B configures A again', () => {
    const node = installedNode({ configMap: { x: 'A' } })
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0', { configMap: { x: 'B' } }) } })
    node.settle()
    node.apply('s', { packages: { a: pkg('1.0.0', { configMap: { x: 'A' } }) } })
    node.finishHanging('a')
    node.settleFor(5_000)
    expect(node.executedSteps.filter((line) => line === 'a config run.sh')).toHaveLength(2)
    expect(Object.values(node.journal.skyhooks['s']?.packages ?? {})[0]?.config?.finished?.config).toEqual({ x: 'A' })
  })

  test('an upgrade runs upgrade and config, and drops the old entry', () => {
    const node = installedNode()
    node.apply('s', { packages: { a: pkg('1.1.0') } })
    node.settleFor(3_000)
    expect(node.executedSteps).toEqual([
      'a upgrade run.sh',
      'a upgrade-check run_check.sh',
      'a config run.sh',
      'a config-check run_check.sh',
    ])
    expect(node.state()).toEqual(['a|1.1.0: config/complete'])
  })

  test('a downgrade uninstalls the old version first', () => {
    const node = installedNode()
    node.apply('s', { packages: { a: pkg('0.9.0') } })
    node.settleFor(3_000)
    expect(node.executedSteps).toEqual(['a uninstall run.sh', 'a uninstall-check run_check.sh', ...install])
    expect(node.state()).toEqual(['a|0.9.0: config/complete'])
  })

  test('a removed package is uninstalled and its entry disappears', () => {
    const node = installedNode()
    node.apply('s', { packages: {} })
    node.settleFor(3_000)
    expect(node.executedSteps).toEqual(['a uninstall run.sh', 'a uninstall-check run_check.sh'])
    expect([node.annotation('nodeState_s'), node.status(), node.slots]).toEqual(['{}', 'complete', []])
  })

  test('a removed package whose policy keeps it stays', () => {
    const node = installedNode({ uninstall: { enabled: false } })
    node.apply('s', { packages: {} })
    node.settleFor(3_000)
    expect([node.executedSteps, node.state(), node.status()]).toEqual([[], ['a|1.0.0: config/complete'], 'complete'])
  })

  test('uninstall.apply uninstalls a package that is still listed, once', () => {
    const node = installedNode()
    node.apply('s', { packages: { a: pkg('1.0.0', { uninstall: { enabled: true, apply: true } }) } })
    node.settleFor(5_000)
    expect(node.executedSteps).toEqual(['a uninstall run.sh', 'a uninstall-check run_check.sh'])
    expect(node.status()).toBe('complete')
  })

  test('an image that changes during a step stops it and restarts from the new image', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    node.hangingPackages.clear()
    node.apply('s', { packages: { a: { version: '1.0.0', image: 'r/mended' } } })
    node.settleFor(5_000)
    expect(node.executedSteps).toEqual(['a apply run.sh', ...install])
    expect(Object.values(node.journal.skyhooks['s']?.packages ?? {})[0]?.work?.digest).toContain('r/mended')
  })

  test('an image that changes to one that cannot be pulled lets the running step end', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    node.images.set('r/bad:1.0.0', 'denied')
    node.apply('s', { packages: { a: { version: '1.0.0', image: 'r/bad' } } })
    node.settleFor(2_000)
    expect([...node.attempts.values()].map(({ state }) => state)).toEqual(['running'])
    expect(node.reason()).toBe('ImagePull')
  })
})

describe('OVERLAY_ALWAYS_RUN_STEP', () => {
  test.each([
    ['true', 2],
    ['false', 1],
  ])('OVERLAY_ALWAYS_RUN_STEP=%s runs a guarded step %i times', (value, times) => {
    const node = new NodeSimulator()
    node.images.set(
      'r/pkg:1.0.0',
      simplePackage({ apply: [guardedStep('once.sh')], 'apply-check': [plainStep('c.sh')] }),
    )
    node.exitCodes.set('a apply-check', 1)
    node.apply('s', { packages: { a: pkg('1.0.0', { env: [{ name: 'OVERLAY_ALWAYS_RUN_STEP', value }] }) } })
    node.settleFor(1_000)
    node.exitCodes.clear()
    node.settleFor(10_000)
    expect(node.executedSteps.filter((line) => line.includes('once.sh'))).toHaveLength(times)
  })
})
