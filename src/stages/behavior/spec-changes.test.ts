import { describe, expect, test } from 'vitest'
import type { Interrupt, PackageSpec } from '../../schemas/skyhook.ts'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { guardedStep, plainStep, simplePackage } from '../../../test/kit/node-simulator/package-content.ts'
import { cron, install, pkg, pod, uninstall, upgrade } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'

/** Brings the node to its end with each spec in turn; what the last one ran. */
function afterSpecs(...specs: readonly Readonly<Record<string, PackageSpec>>[]): NodeSimulator {
  const node = new NodeSimulator()
  for (const packages of specs) {
    node.executedSteps.length = 0
    node.apply('s', { packages })
    node.settleFor(5_000)
    expect(node.status()).toBe('complete')
  }
  return node
}

describe('the uninstall policy', () => {
  test.each<[string, readonly Readonly<Record<string, PackageSpec>>[], readonly string[]]>([
    [
      'that was removed from the spec does not count when the package is removed',
      [{ a: pkg('1.0.0', { uninstall: { enabled: false } }) }, { a: pkg('1.0.0') }, {}],
      uninstall,
    ],
    [
      'of the current spec decides about the previous version',
      [{ a: pkg('2.0.0', { uninstall: { enabled: false } }) }, { a: pkg('1.0.0') }],
      [...uninstall, ...install],
    ],
    [
      'with apply uninstalls the installed version, whichever it is',
      [{ a: pkg('1.0.0') }, { a: pkg('2.0.0', { uninstall: { enabled: true, apply: true } }) }],
      uninstall,
    ],
    [
      'with apply does nothing to a package that was never installed',
      [{ a: pkg('1.0.0', { uninstall: { enabled: true, apply: true } }) }],
      [],
    ],
    [
      'that kept the higher version makes the return to it an upgrade',
      [
        { a: pkg('2.0.0', { uninstall: { enabled: false } }) },
        { a: pkg('1.0.0', { uninstall: { enabled: false } }) },
        { a: pkg('2.0.0', { uninstall: { enabled: false } }) },
      ],
      upgrade,
    ],
  ])('the uninstall policy %s', (_, specs, executedSteps) => {
    expect(afterSpecs(...specs).executedSteps).toEqual(executedSteps)
  })

  test('a kept entry appears beside the new one', () => {
    const kept = { uninstall: { enabled: false } }
    const node = afterSpecs({ a: pkg('2.0.0', kept) }, { a: pkg('1.0.0', kept) })
    expect(node.state()).toEqual(['a|1.0.0: config/complete', 'a|2.0.0: config/complete'])
  })
})

describe('a package that its policy kept half changed', () => {
  const complete = [...install, 'a post-interrupt run.sh', 'a post-interrupt-check run_check.sh']
  const spec = { packages: { a: pkg('1.0.0', { uninstall: { enabled: false }, interrupt: cron }) } }

  test.each(['apply', 'apply-check', 'config', 'config-check', 'post-interrupt'])(
    'a package kept half changed in %s runs every stage when it returns',
    (held) => {
      const node = new NodeSimulator()
      node.exitCodes.set(`a ${held}`, 1)
      node.apply('s', spec)
      node.settleFor(1_000)
      node.apply('s', { packages: {} })
      node.settleFor(1_000)
      expect(node.status()).toBe('complete')
      node.exitCodes.clear()
      node.executedSteps.length = 0
      node.apply('s', spec)
      node.settleFor(60_000)
      expect([node.executedSteps, node.status()]).toEqual([complete, 'complete'])
    },
  )
})

test('an uninstall is complete once nothing is left of it, whichever agent removes it', () => {
  const node = afterSpecs({ a: pkg('1.0.0') })
  node.cleanUpError = 'EPERM: /etc/x'
  node.executedSteps.length = 0
  node.apply('s', { packages: {} })
  node.settleFor(5_000)
  expect([node.executedSteps, node.state(), node.slots.length]).toEqual([
    uninstall,
    ['a|1.0.0: uninstall/in_progress'],
    1,
  ])
  expect(node.lastReasons.get('s')).toMatchObject({
    reason: 'HostUnusable',
    message: expect.stringContaining('EPERM: /etc/x') as string,
  })
  node.attempts.clear() // as the next agent starts
  node.cleanUpError = undefined
  node.settleFor(5_000)
  expect([node.executedSteps, node.state(), node.status(), node.slots]).toEqual([uninstall, [], 'complete', []])
})

describe('successive versions', () => {
  /** Versions that upgrade steps were told to come from, while the node goes to its end. */
  function upgradesFrom(node: NodeSimulator): string[] {
    const events: string[] = []
    for (let idle = 0; idle < 2; ) {
      idle = node.step() ? 0 : idle + 1
      for (const action of node.lastPlan?.actions ?? [])
        if (action.do === 'startStep' && action.attempt.mode === 'upgrade')
          events.push(`${action.record.version} from ${action.previousVersion}`)
    }
    return [...new Set(events)]
  }

  test.each([
    ['upgrade', '3.0.0 from 1.0.0'],
    ['config', '3.0.0 from 2.0.0'],
  ])('a version that arrives while %s of the previous one fails continues from what the host has', (failing, from) => {
    const node = new NodeSimulator()
    for (const version of ['1.0.0', '2.0.0', '3.0.0'])
      node.images.set(`r/pkg:${version}`, { ...simplePackage(), packageVersion: version })
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(5_000)
    node.exitCodes.set(`a ${failing}`, 1)
    node.apply('s', { packages: { a: pkg('2.0.0') } })
    node.settleFor(1_000)
    node.exitCodes.clear()
    node.executedSteps.length = 0
    node.apply('s', { packages: { a: pkg('3.0.0') } })
    expect(upgradesFrom(node)).toEqual([from])
    expect([node.executedSteps, node.state(), node.status()]).toEqual([
      upgrade,
      ['a|3.0.0: config/complete'],
      'complete',
    ])
  })

  test('only the last of several successive versions remains', () => {
    const node = afterSpecs({ a: pkg('1.0.0') }, { a: pkg('1.1.0') }, { a: pkg('1.2.0') }, { a: pkg('2.0.0') })
    expect([node.executedSteps, node.state()]).toEqual([upgrade, ['a|2.0.0: config/complete']])
  })
})

describe('configInterrupts', () => {
  test('configInterrupts cover all keys that changed since the last completion, also across a failed attempt', () => {
    const configInterrupts = { y: cron }
    const node = afterSpecs({ a: pkg('1.0.0', { configInterrupts, configMap: { x: '1', y: '1' } }) })
    node.exitCodes.set('a config', 1)
    node.apply('s', { packages: { a: pkg('1.0.0', { configInterrupts, configMap: { x: '2', y: '1' } }) } })
    node.settle()
    node.exitCodes.clear()
    node.apply('s', { packages: { a: pkg('1.0.0', { configInterrupts, configMap: { x: '2', y: '2' } }) } })
    node.settleFor(10_000)
    expect([node.executedInterrupts, node.status()]).toEqual([['service cron'], 'complete'])
  })

  describe('a configuration that changes during the first installation', () => {
    const configInterrupts = { y: cron }
    const changeDuring = (held: 'apply' | 'config', y: string): NodeSimulator => {
      const node = new NodeSimulator()
      node.exitCodes.set(`a ${held}`, 1)
      node.apply('s', { packages: { a: pkg('1.0.0', { configInterrupts, configMap: { x: '1', y: '1' } }) } })
      node.settleFor(1_000)
      node.exitCodes.clear()
      node.apply('s', { packages: { a: pkg('1.0.0', { configInterrupts, configMap: { x: '2', y } }) } })
      node.settleFor(30_000)
      expect(node.status()).toBe('complete')
      return node
    }

    test('configInterrupts are pending for the changed keys once config had started with the old ones', () => {
      expect(changeDuring('config', '2').executedInterrupts).toEqual(['service cron'])
      expect(changeDuring('config', '1').executedInterrupts).toEqual([])
    })

    test('configInterrupts are not pending while nothing ran with the keys', () =>
      expect(changeDuring('apply', '2').executedInterrupts).toEqual([]))

    test('a configuration that changes during the interrupt does not repeat it; config and its interrupts follow', () => {
      const node = new NodeSimulator()
      node.interruptAnswers.set('reboot', { state: 'unknown', message: 'accepted' })
      node.apply('s', {
        packages: { a: pkg('1.0.0', { interrupt: { type: 'reboot' }, configInterrupts, configMap: { y: '1' } }) },
      })
      node.settleFor(1_000)
      expect(node.executedInterrupts).toEqual(['reboot'])
      node.apply('s', {
        packages: { a: pkg('1.0.0', { interrupt: { type: 'reboot' }, configInterrupts, configMap: { y: '2' } }) },
      })
      node.reboot()
      node.settleFor(60_000)
      expect([node.executedInterrupts, node.status()]).toEqual([['reboot', 'service cron'], 'complete'])
    })
  })

  test('configInterrupts of a key that is removed together with its pattern are pending', () => {
    const node = afterSpecs(
      { a: pkg('1.0.0', { configInterrupts: { y: cron }, configMap: { y: '1' } }) },
      { a: pkg('1.0.0') },
    )
    expect(node.executedInterrupts).toEqual(['service cron'])
  })
})

describe('the interrupt of a package', () => {
  /** Changes it while that stage of the first installation is under way. */
  const changedDuring = (stage: string, before: Interrupt | undefined, after: Interrupt | undefined): NodeSimulator => {
    const node = new NodeSimulator()
    const one = (interrupt: Interrupt | undefined) => ({ packages: { a: pkg('1.0.0', interrupt && { interrupt }) } })
    node.exitCodes.set(`a ${stage}`, 1)
    node.apply('s', one(before))
    node.settleFor(1_000)
    node.exitCodes.clear()
    node.apply('s', one(after))
    node.settleFor(30_000)
    return node
  }

  test.each<[string, string, Interrupt | undefined, Interrupt | undefined, string[]]>([
    ['added while its apply runs is executed', 'apply', undefined, cron, ['service cron']],
    ['added while its config runs is executed', 'config', undefined, cron, ['service cron']],
    ['removed before it started is not executed', 'config', cron, undefined, []],
    ['changed before it started is executed as it is now', 'apply', { type: 'reboot' }, cron, ['service cron']],
  ])('an interrupt %s', (_, stage, before, after, executedInterrupts) => {
    const node = changedDuring(stage, before, after)
    expect([node.executedInterrupts, node.status(), node.node.spec?.unschedulable ?? false, node.slots]).toEqual([
      executedInterrupts,
      'complete',
      false,
      [],
    ])
    expect(node.executedSteps.includes('a post-interrupt run.sh')).toBe(executedInterrupts.length > 0)
  })

  test.each<[string, Interrupt | undefined, string[], number]>([
    ['changed while its post-interrupt fails is executed', { type: 'reboot' }, ['service cron', 'reboot'], 2],
    ['that is covered by the one before is not repeated', { type: 'noop' }, ['service cron'], 2],
    ['removed while its post-interrupt fails takes the post-interrupt with it', undefined, ['service cron'], 1],
  ])('an interrupt %s', (_, after, executedInterrupts, postInterrupts) => {
    const node = changedDuring('post-interrupt', cron, after)
    const runs = node.executedSteps.filter((line) => line === 'a post-interrupt run.sh')
    expect([node.executedInterrupts, runs.length, node.status()]).toEqual([
      executedInterrupts,
      postInterrupts,
      'complete',
    ])
  })
})

describe('a serial Skyhook', () => {
  test.each<[string, Record<string, PackageSpec>]>([
    ['a repeated attempt', { a: pkg('1.0.0'), b: pkg('1.0.0') }],
    ['an uninstall', { b: pkg('1.0.0') }],
  ])('%s waits for the package in progress', (_, packages) => {
    const node = new NodeSimulator()
    node.apply('s', { serial: true, packages: { a: pkg('1.0.0') } })
    if ('a' in packages) node.exitCodes.set('a apply', 1)
    node.settleFor(1_000)
    node.exitCodes.clear()
    node.hangingPackages.add('b')
    node.apply('s', { serial: true, packages: { ...packages, a: pkg('1.0.0') } })
    node.settleFor(1_000)
    expect(node.executedSteps.at(-1)).toBe('b apply run.sh')
    node.apply('s', { serial: true, packages })
    node.settleFor(60_000)
    expect(node.executedSteps.at(-1)).toBe('b apply run.sh')
    node.finishHanging('b')
    node.settleFor(60_000)
    expect(node.status()).toBe('complete')
  })

  test('a serial Skyhook runs its packages one after the other, also beside the drain and the interrupt of one', () => {
    const node = new NodeSimulator()
    node.pods = [pod('web')]
    const packages = { a: pkg('1.0.0'), b: pkg('1.0.0', { interrupt: cron }), c: pkg('1.0.0') }
    node.apply('s', { serial: true, packages })
    node.settleFor(60_000)
    const order = node.executedSteps.map((step) => step.charAt(0))
    expect(order.filter((of, index) => of !== order[index - 1]).toSorted()).toEqual(['a', 'b', 'c'])
    expect([node.executedInterrupts, node.evictedPods, node.status()]).toEqual([['service cron'], ['web'], 'complete'])
  })
})

describe('the count of reboots', () => {
  test('the count of reboots starts at zero with each completion, so alternating between two specs is not a loop', () => {
    const node = new NodeSimulator()
    for (let round = 0; round < 5; round++)
      for (const version of ['1.0.0', '2.0.0']) {
        node.apply('s', { packages: { a: pkg(version, { interrupt: { type: 'reboot' } }) } })
        node.settleFor(30_000)
        expect(node.status()).toBe('complete')
      }
    expect(node.executedInterrupts).toHaveLength(10)
  })

  test('the journal counts all reboots that were made, also past completion and the end of their Skyhook', () => {
    const node = new NodeSimulator()
    const counts = ['1.0.0', '2.0.0', '3.0.0'].map((version) => {
      node.apply('s', {
        packages: { a: pkg(version, { interrupt: { type: version === '3.0.0' ? 'noop' : 'reboot' } }) },
      })
      node.settleFor(30_000)
      return node.journal.reboots
    })
    node.remove('s')
    node.settleFor(30_000)
    expect([...counts, node.journal.reboots]).toEqual([1, 2, 2, 2])
  })
})

describe('work in progress', () => {
  test('work whose spec becomes invalid reports it, keeps its slot and continues once it is corrected', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    node.apply('s', { packages: { a: pkg('1.0.0', { dependsOn: { ghost: '1.0.0' } }) } })
    node.finishHanging('a')
    node.settleFor(2_000)
    expect([node.executedSteps, node.reason(), node.status(), node.slots.length]).toEqual([
      ['a apply run.sh'],
      'InvalidSpec',
      'blocked',
      1,
    ])
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(5_000)
    expect([node.executedSteps, node.status()]).toEqual([install, 'complete'])
  })

  test('a dependent package starts in the decision that completes its dependency', () => {
    const node = new NodeSimulator()
    node.apply('s', { packages: { a: pkg('1.0.0', { dependsOn: { b: '1.0.0' } }), b: pkg('1.0.0') } })
    while (node.executedSteps.at(-1) !== 'b config-check run_check.sh') node.step()
    node.step()
    expect(node.executedSteps.at(-1)).toBe('a apply run.sh')
  })
})

test('two packages from one image share no flags, so a guarded step runs once for each', () => {
  const node = new NodeSimulator()
  node.images.set(
    'r/pkg:1.0.0',
    simplePackage({ apply: [guardedStep('once.sh')], 'apply-check': [plainStep('check.sh')] }),
  )
  node.apply('s', { packages: { a: pkg('1.0.0'), b: pkg('1.0.0', { dependsOn: { a: '1.0.0' } }) } })
  node.settleFor(5_000)
  expect(node.executedSteps.filter((line) => line.endsWith('once.sh'))).toEqual(['a apply once.sh', 'b apply once.sh'])
  expect(node.status()).toBe('complete')
})

test('a node that waits still reports why while a new spec is being fetched', () => {
  const node = new NodeSimulator()
  node.areSlotsGranted = false
  node.apply('s', { packages: { a: pkg('1.0.0') } })
  node.settleFor(2_000)
  const [reason, patches] = [node.annotation('reason_s'), node.patches]
  expect(reason).toContain('WaitingForSlot')
  const view = node.views.get('s')
  if (view) node.views.set('s', { ...view, stale: true })
  node.settleFor(2_000)
  expect([node.annotation('reason_s'), node.reason(), node.patches]).toEqual([reason, 'WaitingForSlot', patches])
})
