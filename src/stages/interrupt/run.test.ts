import { describe, expect, test } from 'vitest'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import {
  isCordoned,
  cron,
  linesOfMode,
  packageWith,
  pod,
  reboot,
} from '../../../test/kit/node-simulator/node-simulator-dsl.ts'

describe('interrupts', () => {
  test('a reboot covers all other interrupts', () => {
    const node = new NodeSimulator()
    node.apply('s', { packages: { a: packageWith(cron), b: packageWith(reboot), c: packageWith({ type: 'noop' }) } })
    node.settleFor(30_000)
    expect(node.executedInterrupts).toEqual(['reboot'])
    expect(linesOfMode(node, 'post-interrupt')).toHaveLength(3)
    expect(node.status()).toBe('complete')
  })

  test('service interrupts are merged', () => {
    const node = new NodeSimulator()
    node.apply('s', {
      packages: { a: packageWith(cron), b: packageWith({ type: 'service', services: ['cron', 'rsyslog'] }) },
    })
    node.settleFor(5_000)
    expect(node.executedInterrupts).toEqual(['service cron rsyslog'])
  })

  test('interrupts wait for siblings in progress', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('b')
    node.apply('s', { packages: { a: packageWith(cron), b: packageWith() } })
    node.settleFor(2_000)
    expect([node.executedInterrupts, node.state()[0]]).toEqual([[], 'a|1.0.0: config/complete'])
    node.finishHanging('b')
    node.settleFor(5_000)
    expect(node.executedInterrupts).toHaveLength(1)
  })

  test.each([['reboot', reboot] as const, ['service cron', cron] as const])(
    'no %s starts while edits of the Skyhook may be unknown',
    (text, interrupt) => {
      const node = new NodeSimulator()
      node.areSkyhooksInDoubt = true
      node.apply('s', { packages: { a: packageWith(interrupt) } })
      node.settleFor(30_000)
      expect([node.executedInterrupts, node.reason()]).toEqual([[], 'ApiServerUnavailable'])
      node.areSkyhooksInDoubt = false
      node.settleFor(30_000)
      expect([node.executedInterrupts, node.status()]).toEqual([[text], 'complete'])
    },
  )

  test('interrupts do not wait for a sibling that keeps failing', () => {
    const node = new NodeSimulator()
    node.exitCodes.set('b apply', 1)
    node.apply('s', { packages: { a: packageWith(cron), b: packageWith() } })
    node.settleFor(4_000)
    expect(node.executedInterrupts).toEqual([])
    node.settleFor(30_000)
    expect(node.executedInterrupts).toEqual(['service cron'])
    expect(node.status()).toBe('erroring')
  })

  test('interrupts chained by dependsOn run one after another', () => {
    const node = new NodeSimulator()
    node.apply('s', {
      packages: {
        a: packageWith(reboot),
        b: packageWith(reboot, { dependsOn: { a: '1.0.0' } }),
        c: packageWith(cron, { dependsOn: { b: '1.0.0' } }),
      },
    })
    node.settleFor(30_000)
    expect([node.executedInterrupts, node.status()]).toEqual([['reboot', 'reboot', 'service cron'], 'complete'])
  })

  test('four reboots in a chain are four reboots, each after the stages of its package, and no loop', () => {
    const node = new NodeSimulator()
    const after = (name: string): Partial<PackageSpec> => ({ dependsOn: { [name]: '1.0.0' } })
    node.apply('s', {
      packages: {
        a: packageWith(reboot),
        b: packageWith(reboot, after('a')),
        c: packageWith(reboot, after('b')),
        d: packageWith(reboot, after('c')),
      },
    })
    node.settleFor(60_000)
    expect([node.executedInterrupts, node.status(), isCordoned(node), node.slots]).toEqual([
      Array(4).fill('reboot'),
      'complete',
      false,
      [],
    ])
    const stages = node.executedSteps
      .filter((line) => !line.includes('-check'))
      .map((line) => line.split(' ').slice(0, 2).join(' '))
    expect(stages).toEqual(
      ['a', 'b', 'c', 'd'].flatMap((name) => ['apply', 'config', 'post-interrupt'].map((stage) => `${name} ${stage}`)),
    )
  })

  test('interrupts that fail are retried, and fail only the packages that named the service', () => {
    const node = new NodeSimulator()
    node.interruptAnswers.set('service', { state: 'failed', message: 'foo.service: NoSuchUnit', services: ['foo'] })
    node.apply('s', { packages: { a: packageWith(cron), b: packageWith({ type: 'service', services: ['foo'] }) } })
    node.settleFor(2_000)
    expect(node.state()).toEqual(['a|1.0.0: post-interrupt/complete', 'b|1.0.0: interrupt/erroring'])
    expect(node.annotation('reason_s')).toContain('foo.service: NoSuchUnit')
    node.interruptAnswers.clear()
    node.settleFor(10_000)
    expect(node.status()).toBe('complete')
  })

  test.each([
    ['corrected', { a: packageWith({ type: 'service', services: ['rsyslog'] }) }, ['service rsyslog']],
    ['taken out', { a: packageWith() }, []],
    ['taken out with its package', {}, []],
    ['preceded by another configuration', { a: packageWith(cron, { configMap: { a: '2' } }) }, ['service cron']],
    ['part of another version', { a: packageWith(cron, { version: '1.1.0' }) }, ['service cron']],
  ] as const)('an interrupt that nobody answers is %s by an edit of the spec', (_, packages, executedInterrupts) => {
    const node = new NodeSimulator()
    node.interruptBlocker = 'cannot carry out the interrupt: no answer'
    node.apply('s', { packages: { a: packageWith({ type: 'service', services: ['cron', 'rsyslog'] }) } })
    node.settleFor(30_000)
    expect([node.reason(), node.executedInterrupts, isCordoned(node)]).toEqual(['HostUnreachable', [], true])
    node.apply('s', { packages })
    node.settleFor(1_000)
    node.interruptBlocker = undefined
    node.settleFor(60_000)
    expect([node.executedInterrupts, node.status(), isCordoned(node), node.slots]).toEqual([
      executedInterrupts,
      'complete',
      false,
      [],
    ])
  })

  test('an interrupt of a changed key that nobody answers is corrected by an edit of the spec', () => {
    const withInterrupt = (x: string, service: string): PackageSpec =>
      packageWith(undefined, { configMap: { x }, configInterrupts: { x: { type: 'service', services: [service] } } })
    const node = new NodeSimulator()
    node.apply('s', { packages: { a: withInterrupt('1', 'cron') } })
    node.settleFor(5_000)
    node.interruptBlocker = 'cannot carry out the interrupt: no answer'
    node.apply('s', { packages: { a: withInterrupt('2', 'cron') } })
    node.settleFor(30_000)
    expect([node.reason(), node.executedInterrupts]).toEqual(['HostUnreachable', []])
    node.apply('s', { packages: { a: withInterrupt('2', 'rsyslog') } })
    node.settleFor(1_000)
    node.interruptBlocker = undefined
    node.settleFor(60_000)
    expect([node.executedInterrupts, node.status(), node.slots]).toEqual([['service rsyslog'], 'complete', []])
  })

  test('an interrupt that nobody answers stays the same run while its packages do', () => {
    const node = new NodeSimulator()
    node.interruptBlocker = 'cannot carry out the interrupt: no answer'
    node.apply('s', { packages: { a: packageWith(cron) } })
    node.settleFor(30_000)
    const id = node.journal.skyhooks['s']?.interrupt?.id
    node.apply('s', { priority: 7, packages: { a: packageWith(cron) } })
    node.settleFor(30_000)
    expect([id, node.journal.skyhooks['s']?.interrupt?.id]).toEqual([expect.any(String), id])
  })

  test('an interrupt that the host does not let happen says so in its own words, and follows an edit', () => {
    const node = new NodeSimulator()
    const message = 'Access denied: check polkit'
    node.interruptAnswers.set('service', { state: 'failed', reason: 'HostUnusable', message, services: ['cron'] })
    node.apply('s', { packages: { a: packageWith(cron) } })
    node.settleFor(5_000)
    expect([node.reason(), node.annotation('reason_s')]).toEqual(['HostUnusable', expect.stringContaining(message)])
    node.apply('s', { packages: { a: packageWith() } })
    node.settleFor(5_000)
    expect([node.status(), isCordoned(node), node.slots]).toEqual(['complete', false, []])
  })

  test('interrupts that fail are corrected or canceled by an edit of the spec', () => {
    for (const [corrected, executedInterrupts] of [
      [cron, ['service cron']],
      [undefined, []],
    ] as const) {
      const node = new NodeSimulator()
      node.interruptAnswers.set('service', { state: 'failed', message: 'foo.service: NoSuchUnit', services: ['foo'] })
      node.apply('s', { packages: { a: packageWith({ type: 'service', services: ['foo'] }) } })
      node.settleFor(2_000)
      expect([node.status(), node.executedInterrupts]).toEqual(['erroring', []])
      node.interruptAnswers.clear()
      node.apply('s', { packages: { a: packageWith(corrected) } })
      node.settle()
      expect([node.executedInterrupts, node.status(), isCordoned(node), node.slots]).toEqual([
        executedInterrupts,
        'complete',
        false,
        [],
      ])
      expect(linesOfMode(node, 'apply')).toHaveLength(1)
    }
  })

  test('interrupts requested by setting the stage in the annotation run again under a slot, on a drained node', () => {
    for (const [interrupt, expected] of [
      [cron, ['service cron', 'service cron']],
      [undefined, []],
    ] as const) {
      const node = new NodeSimulator()
      node.apply('s', { packages: { a: packageWith(interrupt) } })
      node.settleFor(3_000)
      node.pods = [pod('web')]
      node.edit((annotations) => {
        const state = JSON.parse(annotations['skyhook.nvidia.com/nodeState_s'] ?? '') as Record<string, object>
        state['a|1.0.0'] = { ...state['a|1.0.0'], stage: 'interrupt', state: 'in_progress' }
        annotations['skyhook.nvidia.com/nodeState_s'] = JSON.stringify(state)
      })
      node.settleFor(5_000)
      expect([node.executedInterrupts, node.status(), isCordoned(node), node.slots]).toEqual([
        expected,
        'complete',
        false,
        [],
      ])
      expect(node.evictedPods).toEqual(interrupt ? ['web'] : [])
      expect(linesOfMode(node, 'apply')).toHaveLength(1)
    }
  })

  test('interrupts that are aborted at the last check did nothing and are decided again', () => {
    const node = new NodeSimulator()
    node.interruptAnswers.set('service', { state: 'aborted', why: 'a pod came' })
    node.apply('s', { packages: { a: packageWith(cron) } })
    for (let round = 0; round < 40; round++) node.step()
    expect([node.executedInterrupts, node.events.some(({ type }) => type === 'stageFailed')]).toEqual([[], false])
    node.interruptAnswers.clear()
    node.settleFor(5_000)
    expect([node.executedInterrupts, node.status()]).toEqual([['service cron'], 'complete'])
  })

  test('interrupts follow a config change only where configInterrupts match the changed keys', () => {
    for (const [key, expected] of [
      ['vars.sh', ['service cron']],
      ['other', []],
    ] as const) {
      const node = new NodeSimulator()
      const configInterrupts = { '*.sh': cron }
      node.apply('s', { packages: { a: packageWith(undefined, { configInterrupts, configMap: { [key]: '1' } }) } })
      node.settleFor(3_000)
      expect(node.executedInterrupts).toEqual([])
      node.apply('s', { packages: { a: packageWith(undefined, { configInterrupts, configMap: { [key]: '2' } }) } })
      node.settleFor(5_000)
      expect(node.executedInterrupts).toEqual(expected)
      expect([node.status(), isCordoned(node)]).toEqual(['complete', false])
    }
  })

  test('interrupts added to or removed from a complete package run nothing', () => {
    const node = new NodeSimulator()
    node.apply('s', { packages: { a: packageWith() } })
    node.settleFor(3_000)
    node.apply('s', { packages: { a: packageWith(reboot) } })
    node.settleFor(3_000)
    expect([node.executedInterrupts, node.status()]).toEqual([[], 'complete'])
  })

  test('interrupts are not pending after an uninstall', () => {
    const node = new NodeSimulator()
    node.apply('s', { packages: { a: packageWith(cron) } })
    node.settleFor(5_000)
    node.apply('s', { packages: {} })
    node.settleFor(5_000)
    expect([node.executedInterrupts, node.status(), isCordoned(node)]).toEqual([['service cron'], 'complete', false])
  })
})

test('a daemon-reload that systemd does not answer becomes a reason after half a minute', () => {
  const node = new NodeSimulator()
  node.interruptAnswers.set('service', { state: 'running', reloadSinceMs: node.nowMs })
  node.apply('s', { packages: { a: packageWith({ type: 'service', services: ['cron'] }) } })
  node.settleFor(29_000)
  expect(node.reason()).toBeUndefined()
  node.settleFor(2_000)
  expect(node.reason()).toBe('HostUnreachable')
})

test('a Skyhook that another one holds up on the node says which', () => {
  const node = new NodeSimulator()
  node.interruptAnswers.set('service', { state: 'running' })
  node.apply('interrupting', { priority: 100, packages: { a: packageWith(cron) } })
  node.settleFor(2_000)
  expect(node.reason('interrupting')).toBeUndefined()
  node.apply('other', { priority: 50, packages: { b: packageWith() } })
  node.settleFor(2_000)
  expect([node.reason('other'), node.status('other')]).toEqual(['WaitingForOtherSkyhook', 'waiting'])
})

describe('a reboot', () => {
  test('a reboot is done when the boot id changed, also if the answer was lost', () => {
    const node = new NodeSimulator()
    node.interruptAnswers.set('reboot', { state: 'unknown', message: 'the connection ended' })
    node.apply('s', { packages: { a: packageWith(reboot) } })
    node.settleFor(3_000)
    expect([node.state(), node.reason()]).toEqual([['a|1.0.0: interrupt/in_progress'], 'RebootPending'])
    node.reboot()
    node.settleFor(5_000)
    expect([node.executedInterrupts.length, node.status()]).toEqual([1, 'complete'])
  })

  test('a reboot ends the bus, which does not make the node blocked', () => {
    const node = new NodeSimulator()
    node.interruptAnswers.set('reboot', { state: 'running' })
    node.apply('s', { packages: { a: packageWith(reboot) } })
    node.settleFor(3_000)
    node.host = { state: 'unusable', reason: 'HostUnreachable', message: 'the system bus does not answer' }
    node.settleFor(3_000)
    expect([node.status(), node.reason()]).toEqual(['in_progress', 'RebootPending'])
  })

  test.each([
    ['a later', 'WaitingForPriority'],
    ['an earlier', 'RebootPending'],
  ])('a reboot ends the bus, which does not block %s waiting Skyhook', (order, reason) => {
    const node = new NodeSimulator()
    node.interruptAnswers.set('reboot', { state: 'unknown', message: 'accepted' })
    node.apply('s', { priority: 200, packages: { a: packageWith(reboot) } })
    node.settleFor(1_000)
    node.apply('other', { priority: order === 'a later' ? 300 : 100, packages: { b: packageWith() } })
    node.host = { state: 'unusable', reason: 'HostUnreachable', message: "the host's system bus does not answer" }
    node.settleFor(2_000)
    expect([node.reason('other'), node.status('other')]).toEqual([reason, 'waiting'])
    node.host = { state: 'usable' }
    node.reboot()
    node.settleFor(20_000)
    expect([node.status('s'), node.status('other')]).toEqual(['complete', 'complete'])
  })

  test('a refused reboot reports its reason and keeps the slot', () => {
    const node = new NodeSimulator()
    node.interruptAnswers.set('reboot', { state: 'refused', message: 'blocked by backup (nightly)' })
    node.apply('s', { packages: { a: packageWith(reboot) } })
    node.settleFor(2_000)
    expect([node.status(), node.reason(), node.slots.length]).toEqual(['erroring', 'RebootRefused', 1])
  })

  test('a reboot is followed by service only when the node reports Ready from the new boot', () => {
    const node = new NodeSimulator()
    node.interruptAnswers.set('reboot', { state: 'unknown', message: '' })
    node.apply('s', { packages: { a: packageWith(reboot) } })
    node.settle()
    node.powerCut() // up again, the kubelet has not reported yet
    node.settleFor(5_000)
    expect([node.status(), node.reason(), isCordoned(node)]).toEqual(['in_progress', 'NodeNotReady', true])
    node.reportReady('False')
    node.settleFor(1_000)
    expect(isCordoned(node)).toBe(true)
    node.reportReady()
    node.settleFor(1_000)
    expect([node.status(), isCordoned(node)]).toEqual(['complete', false])
  })

  test('a reboot is not followed by service when the node is lost again before the patch arrives', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: packageWith(cron) } })
    node.settle()
    node.finishHanging('a')
    node.arePatchesDelayed = true
    for (let round = 0; round < 50; round++) node.step()
    // complete, and nobody knows yet
    expect([node.journal.skyhooks['s']?.lifecycle, isCordoned(node)]).toEqual([undefined, true])
    node.reportReady('False')
    node.arePatchesDelayed = false
    node.settleFor(2_000)
    expect([node.status(), node.reason(), isCordoned(node), node.slots.length]).toEqual([
      'in_progress',
      'NodeNotReady',
      true,
      1,
    ])
    node.reportReady()
    node.settleFor(2_000)
    expect([node.status(), isCordoned(node), node.slots]).toEqual(['complete', false, []])
  })

  test('a restart of the container runtime requires ten seconds of Ready', () => {
    const node = new NodeSimulator()
    node.interruptAnswers.set('service', { state: 'done', restartedRuntime: true })
    node.apply('s', { packages: { a: packageWith({ type: 'service', services: ['containerd'] }) } })
    node.settleFor(5_000)
    expect([node.reason(), isCordoned(node)]).toEqual(['NodeNotReady', true])
    node.settleFor(8_000)
    expect(node.status()).toBe('complete')
  })
})
