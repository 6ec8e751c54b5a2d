import { describe, expect, test } from 'vitest'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import { NodeModel } from '../../../test/support/node-simulator.ts'
import { cordoned, cron, lines, pkgWith, pod, reboot } from '../../../test/support/node-simulator-dsl.ts'

describe('interrupts', () => {
  test('are merged: a reboot covers everything', () => {
    const node = new NodeModel()
    node.apply('s', { packages: { a: pkgWith(cron), b: pkgWith(reboot), c: pkgWith({ type: 'noop' }) } })
    node.settleOver(30_000)
    expect(node.interrupted).toEqual(['reboot'])
    expect(lines(node, 'post-interrupt')).toHaveLength(3)
    expect(node.status()).toBe('complete')
  })

  test('are merged: services are united', () => {
    const node = new NodeModel()
    node.apply('s', { packages: { a: pkgWith(cron), b: pkgWith({ type: 'service', services: ['cron', 'rsyslog'] }) } })
    node.settleOver(5_000)
    expect(node.interrupted).toEqual(['service cron rsyslog'])
  })

  test('wait for siblings at work', () => {
    const node = new NodeModel()
    node.hangs.add('b')
    node.apply('s', { packages: { a: pkgWith(cron), b: pkgWith() } })
    node.settleOver(2_000)
    expect([node.interrupted, node.state()[0]]).toEqual([[], 'a|1.0.0: config/complete'])
    node.finishHanging('b')
    node.settleOver(5_000)
    expect(node.interrupted).toHaveLength(1)
  })

  test('do not wait for a sibling that keeps failing', () => {
    const node = new NodeModel()
    node.exits.set('b apply', 1)
    node.apply('s', { packages: { a: pkgWith(cron), b: pkgWith() } })
    node.settleOver(4_000)
    expect(node.interrupted).toEqual([])
    node.settleOver(30_000)
    expect(node.interrupted).toEqual(['service cron'])
    expect(node.status()).toBe('erroring')
  })

  test('chained by dependsOn come one after another', () => {
    const node = new NodeModel()
    node.apply('s', {
      packages: { a: pkgWith(reboot), b: pkgWith(reboot, { dependsOn: { a: '1.0.0' } }), c: pkgWith(cron, { dependsOn: { b: '1.0.0' } }) },
    })
    node.settleOver(30_000)
    expect([node.interrupted, node.status()]).toEqual([['reboot', 'reboot', 'service cron'], 'complete'])
  })

  test('four reboots in a chain are four reboots, each after the stages of its package, and no loop', () => {
    const node = new NodeModel()
    const after = (name: string): Partial<PackageSpec> => ({ dependsOn: { [name]: '1.0.0' } })
    node.apply('s', {
      packages: { a: pkgWith(reboot), b: pkgWith(reboot, after('a')), c: pkgWith(reboot, after('b')), d: pkgWith(reboot, after('c')) },
    })
    node.settleOver(60_000)
    expect([node.interrupted, node.status(), cordoned(node), node.slots]).toEqual([Array(4).fill('reboot'), 'complete', false, []])
    const stages = node.ran.filter((line) => !line.includes('-check')).map((line) => line.split(' ').slice(0, 2).join(' '))
    expect(stages).toEqual(['a', 'b', 'c', 'd'].flatMap((name) => ['apply', 'config', 'post-interrupt'].map((stage) => `${name} ${stage}`)))
  })

  test('that fail are tried again, and fail only the packages that named the service', () => {
    const node = new NodeModel()
    node.interruptAnswers.set('service', { state: 'failed', message: 'foo.service: NoSuchUnit', services: ['foo'] })
    node.apply('s', { packages: { a: pkgWith(cron), b: pkgWith({ type: 'service', services: ['foo'] }) } })
    node.settleOver(2_000)
    expect(node.state()).toEqual(['a|1.0.0: post-interrupt/complete', 'b|1.0.0: interrupt/erroring'])
    expect(node.annotation('reason_s')).toContain('foo.service: NoSuchUnit')
    node.interruptAnswers.clear()
    node.settleOver(10_000)
    expect(node.status()).toBe('complete')
  })

  test('that fail are corrected by an edit of the spec, or given up by it', () => {
    for (const [corrected, interrupted] of [
      [cron, ['service cron']],
      [undefined, []],
    ] as const) {
      const node = new NodeModel()
      node.interruptAnswers.set('service', { state: 'failed', message: 'foo.service: NoSuchUnit', services: ['foo'] })
      node.apply('s', { packages: { a: pkgWith({ type: 'service', services: ['foo'] }) } })
      node.settleOver(2_000)
      expect([node.status(), node.interrupted]).toEqual(['erroring', []])
      node.interruptAnswers.clear()
      node.apply('s', { packages: { a: pkgWith(corrected) } })
      node.settle()
      expect([node.interrupted, node.status(), cordoned(node), node.slots]).toEqual([interrupted, 'complete', false, []])
      expect(lines(node, 'apply')).toHaveLength(1)
    }
  })

  test('asked for again by setting the stage in the annotation are done again under a slot, on a drained node', () => {
    for (const [interrupt, expected] of [
      [cron, ['service cron', 'service cron']],
      [undefined, []],
    ] as const) {
      const node = new NodeModel()
      node.apply('s', { packages: { a: pkgWith(interrupt) } })
      node.settleOver(3_000)
      node.pods = [pod('web')]
      node.edit((annotations) => {
        const state = JSON.parse(annotations['skyhook.nvidia.com/nodeState_s'] ?? '') as Record<string, object>
        state['a|1.0.0'] = { ...state['a|1.0.0'], stage: 'interrupt', state: 'in_progress' }
        annotations['skyhook.nvidia.com/nodeState_s'] = JSON.stringify(state)
      })
      node.settleOver(5_000)
      expect([node.interrupted, node.status(), cordoned(node), node.slots]).toEqual([expected, 'complete', false, []])
      expect(node.evicted).toEqual(interrupt ? ['web'] : [])
      expect(lines(node, 'apply')).toHaveLength(1)
    }
  })

  test('whose last conditions fail did nothing and are decided anew', () => {
    const node = new NodeModel()
    node.interruptAnswers.set('service', { state: 'aborted', why: 'a pod came' })
    node.apply('s', { packages: { a: pkgWith(cron) } })
    for (let round = 0; round < 40; round++) node.step()
    expect([node.interrupted, node.events.some(({ type }) => type === 'stageFailed')]).toEqual([[], false])
    node.interruptAnswers.clear()
    node.settleOver(5_000)
    expect([node.interrupted, node.status()]).toEqual([['service cron'], 'complete'])
  })

  test('follow a config change only where configInterrupts match the changed keys', () => {
    for (const [key, expected] of [
      ['vars.sh', ['service cron']],
      ['other', []],
    ] as const) {
      const node = new NodeModel()
      const configInterrupts = { '*.sh': cron }
      node.apply('s', { packages: { a: pkgWith(undefined, { configInterrupts, configMap: { [key]: '1' } }) } })
      node.settleOver(3_000)
      expect(node.interrupted).toEqual([])
      node.apply('s', { packages: { a: pkgWith(undefined, { configInterrupts, configMap: { [key]: '2' } }) } })
      node.settleOver(5_000)
      expect(node.interrupted).toEqual(expected)
      expect([node.status(), cordoned(node)]).toEqual(['complete', false])
    }
  })

  test('added to or removed from a complete package run nothing', () => {
    const node = new NodeModel()
    node.apply('s', { packages: { a: pkgWith() } })
    node.settleOver(3_000)
    node.apply('s', { packages: { a: pkgWith(reboot) } })
    node.settleOver(3_000)
    expect([node.interrupted, node.status()]).toEqual([[], 'complete'])
  })

  test('are not owed after an uninstall', () => {
    const node = new NodeModel()
    node.apply('s', { packages: { a: pkgWith(cron) } })
    node.settleOver(5_000)
    node.apply('s', { packages: {} })
    node.settleOver(5_000)
    expect([node.interrupted, node.status(), cordoned(node)]).toEqual([['service cron'], 'complete', false])
  })
})

describe('a reboot', () => {
  test('is done when the boot id changed, also if the answer was lost', () => {
    const node = new NodeModel()
    node.interruptAnswers.set('reboot', { state: 'unknown', message: 'the connection ended' })
    node.apply('s', { packages: { a: pkgWith(reboot) } })
    node.settleOver(3_000)
    expect([node.state(), node.reason()]).toEqual([['a|1.0.0: interrupt/in_progress'], 'RebootPending'])
    node.reboot()
    node.settleOver(5_000)
    expect([node.interrupted.length, node.status()]).toEqual([1, 'complete'])
  })

  test('that never comes is a failure after five minutes, and asked for again', () => {
    const node = new NodeModel()
    node.interruptAnswers.set('reboot', { state: 'unknown', message: 'no reply' })
    node.apply('s', { packages: { a: pkgWith(reboot) } })
    node.settleOver(301_000)
    expect(node.annotation('reason_s')).toContain('the host did not reboot')
    node.settleOver(10_000)
    expect(node.interrupted).toHaveLength(2)
  })

  test('takes the bus away with it, which is no reason to call the node blocked', () => {
    const node = new NodeModel()
    node.interruptAnswers.set('reboot', { state: 'running' })
    node.apply('s', { packages: { a: pkgWith(reboot) } })
    node.settleOver(3_000)
    node.host = { state: 'unusable', reason: 'HostUnreachable', message: 'the system bus does not answer' }
    node.settleOver(3_000)
    expect([node.status(), node.reason()]).toEqual(['in_progress', 'RebootPending'])
  })

  test.each([
    ['a later', 'WaitingForPriority'],
    ['an earlier', 'RebootPending'],
  ])('takes the bus away, which is no trouble of %s Skyhook that waits', (order, reason) => {
    const node = new NodeModel()
    node.interruptAnswers.set('reboot', { state: 'unknown', message: 'accepted' })
    node.apply('s', { priority: 200, packages: { a: pkgWith(reboot) } })
    node.settleOver(1_000)
    node.apply('other', { priority: order === 'a later' ? 300 : 100, packages: { b: pkgWith() } })
    node.host = { state: 'unusable', reason: 'HostUnreachable', message: "the host's system bus does not answer" }
    node.settleOver(2_000)
    expect([node.reason('other'), node.status('other')]).toEqual([reason, 'waiting'])
    node.host = { state: 'usable' }
    node.reboot()
    node.settleOver(20_000)
    expect([node.status('s'), node.status('other')]).toEqual(['complete', 'complete'])
  })

  test('refused says so with its reason and keeps the slot', () => {
    const node = new NodeModel()
    node.interruptAnswers.set('reboot', { state: 'refused', message: 'blocked by backup (nightly)' })
    node.apply('s', { packages: { a: pkgWith(reboot) } })
    node.settleOver(2_000)
    expect([node.status(), node.reason(), node.slots.length]).toEqual(['erroring', 'RebootRefused', 1])
  })

  test('of the same spec happens at most three times', () => {
    const node = new NodeModel()
    node.interruptAnswers.set('reboot', { state: 'refused', message: 'no' })
    node.apply('s', { packages: { a: pkgWith(reboot) } })
    node.settleOver(400_000)
    expect(node.reason()).toBe('RebootLoop')
    expect([node.status(), node.slots.length, node.annotation('journal_s')?.includes('/a":3')]).toEqual(['erroring', 1, true])
  })

  test('is followed by service only when the node reports Ready from the new boot', () => {
    const node = new NodeModel()
    node.interruptAnswers.set('reboot', { state: 'unknown', message: '' })
    node.apply('s', { packages: { a: pkgWith(reboot) } })
    node.settle()
    node.powerCut() // up again, the kubelet has not reported yet
    node.settleOver(5_000)
    expect([node.status(), node.reason(), cordoned(node)]).toEqual(['in_progress', 'NodeNotReady', true])
    node.reportReady('False')
    node.settleOver(1_000)
    expect(cordoned(node)).toBe(true)
    node.reportReady()
    node.settleOver(1_000)
    expect([node.status(), cordoned(node)]).toEqual(['complete', false])
  })

  test('is not followed by service when the node is lost again before the patch arrives', () => {
    const node = new NodeModel()
    node.hangs.add('a')
    node.apply('s', { packages: { a: pkgWith(cron) } })
    node.settle()
    node.finishHanging('a')
    node.holdPatches = true
    for (let round = 0; round < 50; round++) node.step()
    expect([node.journal.skyhooks['s']?.lifecycle, cordoned(node)]).toEqual([undefined, true]) // complete, and nobody knows yet
    node.reportReady('False')
    node.holdPatches = false
    node.settleOver(2_000)
    expect([node.status(), node.reason(), cordoned(node), node.slots.length]).toEqual(['in_progress', 'NodeNotReady', true, 1])
    node.reportReady()
    node.settleOver(2_000)
    expect([node.status(), cordoned(node), node.slots]).toEqual(['complete', false, []])
  })

  test('of the container runtime: Ready has to hold for ten seconds', () => {
    const node = new NodeModel()
    node.interruptAnswers.set('service', { state: 'done', restartedRuntime: true })
    node.apply('s', { packages: { a: pkgWith({ type: 'service', services: ['containerd'] }) } })
    node.settleOver(5_000)
    expect([node.reason(), cordoned(node)]).toEqual(['NodeNotReady', true])
    node.settleOver(8_000)
    expect(node.status()).toBe('complete')
  })
})
