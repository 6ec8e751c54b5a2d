import { describe, expect, test } from 'vitest'
import type { PublishedReason } from '../../schemas/annotations.ts'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { plainStep, simplePackage } from '../../../test/kit/node-simulator/package-content.ts'
import { pkg } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'

describe('failures', () => {
  test('a failing action stops the attempt, is published and retried after a pause', () => {
    const node = new NodeSimulator()
    node.exitCodes.set('a apply', 3)
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(1_500)
    expect(node.executedSteps).toEqual(['a apply run.sh'])
    expect(node.state()).toEqual(['a|1.0.0: apply/erroring'])
    expect(node.status()).toBe('erroring')
    expect(node.annotation('reason_s')).toContain('apply run.sh exited 3, expected 0')
    expect(node.slots).toHaveLength(1) // the host is half changed: the slot stays
    node.exitCodes.clear()
    node.settleFor(6_000)
    expect(node.status()).toBe('complete')
  })

  test('a stage that keeps failing says since when, how often it has failed, and when it is tried again', () => {
    const node = new NodeSimulator()
    node.exitCodes.set('a apply', 3)
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    const startMs = node.nowMs
    node.settleFor(60_000)
    const { since, attempts, nextTry } = JSON.parse(node.annotation('reason_s') ?? '{}') as PublishedReason
    expect(Date.parse(since)).toBe(startMs)
    expect(attempts).toBe(4) // after 5, 10 and 20 s, and less
    expect(Date.parse(nextTry ?? '') - node.nowMs).toBeGreaterThan(0)
    node.exitCodes.clear()
    node.settleFor(60_000)
    node.exitCodes.set('a config', 3)
    node.apply('s', { packages: { a: pkg('1.0.0', { configMap: { x: 'y' } }) } })
    node.settleFor(1_000)
    expect(JSON.parse(node.annotation('reason_s') ?? '{}')).toMatchObject({ attempts: 1 })
  })

  test('all checks run before the stage fails, and the stage restarts from its first step', () => {
    const node = new NodeSimulator()
    node.images.set(
      'r/pkg:1.0.0',
      simplePackage({
        apply: [plainStep('run.sh')],
        'apply-check': [plainStep('one_check.sh'), plainStep('two_check.sh')],
      }),
    )
    node.exitCodes.set('a apply-check', 1)
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(1_000)
    expect(node.executedSteps).toEqual(['a apply run.sh', 'a apply-check one_check.sh', 'a apply-check two_check.sh'])
    expect(node.reason()).toBe('CheckFailed')
    node.settleFor(5_000)
    expect(node.executedSteps.slice(3)).toEqual([
      'a apply run.sh',
      'a apply-check one_check.sh',
      'a apply-check two_check.sh',
    ])
  })

  test('a corrected configuration is tried immediately', () => {
    const node = new NodeSimulator()
    node.exitCodes.set('a apply-check', 1)
    node.apply('s', { packages: { a: pkg('1.0.0', { configMap: { x: 'bad' } }) } })
    node.settle()
    node.exitCodes.clear()
    node.apply('s', { packages: { a: pkg('1.0.0', { configMap: { x: 'good' } }) } })
    node.settle()
    expect(node.status()).toBe('complete')
  })

  test('another configuration counts its failed attempts from zero, and the same one does not', () => {
    const restarts = (node: NodeSimulator): unknown =>
      (JSON.parse(node.annotation('nodeState_s') ?? '{}') as Record<string, { restarts?: number }>)['a|1.0.0']?.restarts
    const node = new NodeSimulator()
    node.exitCodes.set('a apply', 1)
    node.apply('s', { packages: { a: pkg('1.0.0', { configMap: { x: 'bad' } }) } })
    node.settleFor(30_000)
    expect(restarts(node)).toBe(3)
    node.apply('s', { packages: { a: pkg('1.0.0', { configMap: { x: 'worse' } }) } })
    node.settleFor(1_500)
    expect(restarts(node)).toBe(1)
    node.exitCodes.clear()
    node.settleFor(5_000)
    expect(node.status()).toBe('complete')
  })

  test('a step that takes longer than stageTimeout says so by a code', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0', { stageTimeout: '1m' }) } })
    node.settle()
    node.finishHanging('a', { outcome: 'timeout' })
    node.settleFor(1_500)
    expect(JSON.parse(node.annotation('reason_s') ?? '{}')).toMatchObject({
      reason: 'StepFailed',
      code: 'stage-timeout',
    })
  })

  test.each([
    [[{ key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }], 'node-condition'],
    [[{ key: 'dedicated', value: 'db', effect: 'NoSchedule' }], undefined],
    [
      [
        { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' },
        { key: 'dedicated', value: 'db', effect: 'NoSchedule' },
      ],
      undefined,
    ],
  ] as const)('the taints %j have the code %s', (taints, code) => {
    const node = new NodeSimulator()
    node.node = { ...node.node, spec: { taints } }
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(3_000)
    const reason = JSON.parse(node.annotation('reason_s') ?? '{}') as { reason: string; code?: string; message: string }
    expect([reason.reason, reason.code]).toEqual(['TaintNotTolerated', code])
    expect(reason.message.includes('tolerate it')).toBe(code === undefined)
  })

  test('a slot has the phase failed after three failed attempts', () => {
    const node = new NodeSimulator()
    node.exitCodes.set('a apply', 1)
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(30_000)
    expect(node.slots[0]?.phase).toBe('failed')
  })

  test('the exit code is compared with returncodes', () => {
    const node = new NodeSimulator()
    node.images.set(
      'r/pkg:1.0.0',
      simplePackage({ apply: [plainStep('run.sh', { returncodes: [0, 3] })], 'apply-check': [plainStep('c.sh')] }),
    )
    node.exitCodes.set('a apply', 3)
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(1_000)
    expect(node.status()).toBe('complete')
  })

  test('an image that cannot be pulled releases the slot when nothing on the host is half changed', () => {
    const node = new NodeSimulator()
    node.images.set('r/other:1.0.0', 'denied')
    node.apply('s', { packages: { a: pkg('1.0.0'), b: { version: '1.0.0', image: 'r/other' } } })
    node.settleFor(3_000)
    expect(node.state()).toEqual(['a|1.0.0: config/complete'])
    expect(node.slots).toEqual([])
    expect(node.reason()).toBe('ImagePull')
  })
})

describe('a missing reference of env', () => {
  const valueFrom = { secretKeyRef: { name: 's', key: 'k' } }
  const packages = (more: Partial<PackageSpec> = {}): Readonly<Record<string, PackageSpec>> => ({
    a: pkg('1.0.0', { env: [{ name: 'A', valueFrom }], interrupt: { type: 'reboot' }, ...more }),
  })

  test('a missing reference is reported before a slot is requested, and retried until it exists', () => {
    const node = new NodeSimulator()
    node.missingReferences.add('A')
    node.apply('s', { packages: packages() })
    node.settleFor(5_000)
    expect([node.reason(), node.status(), node.slots, node.executedSteps, node.node.spec?.unschedulable]).toEqual([
      'ReferenceMissing',
      'waiting',
      [],
      [],
      undefined,
    ])
    expect(node.annotation('reason_s')).toContain('package a: it is not there')
    node.missingReferences.clear()
    node.settleFor(60_000)
    expect([node.status(), node.executedInterrupts]).toEqual(['complete', ['reboot']])
  })

  test('a missing reference of a change leaves a complete node in service, and is not read before work starts', () => {
    const node = new NodeSimulator()
    node.apply('s', { packages: packages() })
    node.settleFor(60_000)
    node.missingReferences.add('A')
    node.settleFor(60_000)
    expect(node.status()).toBe('complete')
    node.apply('s', { packages: packages({ configMap: { x: '1' } }) })
    node.settleFor(5_000)
    expect([node.reason(), node.slots]).toEqual(['ReferenceMissing', []])
    node.apply('s', { packages: {} })
    node.settleFor(10_000)
    expect([node.status(), node.executedSteps.at(-1)]).toEqual(['complete', 'a uninstall-check run_check.sh'])
  })
})
