import { describe, expect, test } from 'vitest'
import type { Companion } from '../../schemas/annotations.ts'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import {
  cron,
  install,
  installedNode,
  isCordoned,
  packageWith,
  pkg,
  reboot,
} from '../../../test/kit/node-simulator/node-simulator-dsl.ts'

const requested = { state: 'unknown', message: 'logind accepted the request' } as const
const refused = { state: 'refused', message: 'backup (pid 321) blocks it: nightly' } as const

/** A node whose package needs a reboot, and what the host says to the request; it stays up by itself. */
function nodeWithReboot(answer: typeof requested | typeof refused): NodeSimulator {
  const node = new NodeSimulator()
  node.interruptAnswers.set('reboot', answer)
  node.apply('s', { packages: { a: packageWith(reboot) } })
  return node.settleFor(2_000)
}
/** As the Node shows them. */
function shownReboots(node: NodeSimulator): unknown[] {
  const { reboots = {} } = JSON.parse(node.annotation('journal_s') ?? '{}') as Pick<Companion, 'reboots'>
  return Object.values(reboots)
}
const rebootCount = (node: NodeSimulator): number => node.executedInterrupts.length

describe('reboots', () => {
  test('a reboot that is refused for two hours stays refused, is not complete and is not a reboot loop', () => {
    const node = nodeWithReboot(refused)
    const reasons = new Set<string | undefined>()
    for (let minute = 0; minute < 120; minute++) {
      node.settleFor(60_000)
      reasons.add(node.reason())
    }
    expect([[...reasons], node.status(), node.state(), node.slots.length]).toEqual([
      ['RebootRefused'],
      'erroring',
      ['a|1.0.0: interrupt/erroring'],
      1,
    ])
    expect(shownReboots(node)).toEqual([])
    node.interruptAnswers.clear()
    node.settleFor(310_000)
    expect([node.executedInterrupts, node.status()]).toEqual([['reboot'], 'complete'])
  })

  test('a reboot is announced on the Node before it is requested', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    node.interruptAnswers.set('reboot', requested)
    node.apply('s', { packages: { a: packageWith(reboot) } })
    node.settle()
    node.finishHanging('a')
    node.arePatchesDelayed = true
    for (let round = 0; round < 50; round++) node.step()
    expect(rebootCount(node)).toBe(0)
    node.arePatchesDelayed = false
    node.settle()
    expect([rebootCount(node), shownReboots(node)]).toEqual([1, [{ done: 0, askedInBoot: 'boot-1' }]])
  })

  test('a shutdown of 20 minutes is waited for, and counts as one reboot', () => {
    const node = nodeWithReboot(requested)
    node.shutdown = 'under-way'
    node.settleFor(1_200_000)
    expect([node.reason(), node.status(), rebootCount(node)]).toEqual(['RebootPending', 'in_progress', 1])
    expect(node.annotation('reason_s')).toContain('the host is shutting down')
    node.reboot()
    node.settleFor(5_000)
    expect([rebootCount(node), node.status(), shownReboots(node)]).toEqual([1, 'complete', [{ done: 1 }]])
  })

  test('a host that does not answer after the request is waited for', () => {
    const node = nodeWithReboot(requested)
    node.shutdown = 'no-answer'
    node.settleFor(1_200_000)
    expect([node.reason(), rebootCount(node)]).toEqual(['RebootPending', 1])
    expect(node.annotation('reason_s')).toContain('does not answer')
  })

  test('a host that is not shutting down a minute after the request is asked again', () => {
    const node = nodeWithReboot(requested)
    node.settleFor(50_000)
    expect([node.reason(), rebootCount(node)]).toEqual(['RebootPending', 1])
    node.settleFor(12_000)
    expect([node.reason(), node.annotation('reason_s')]).toEqual([
      'RebootRefused',
      expect.stringContaining('the host is not shutting down') as string,
    ])
    node.settleFor(10_000)
    expect(rebootCount(node)).toBe(2)
  })

  test.each<[string, (node: NodeSimulator) => void]>([
    ['the agent restarts', (node) => node.restartAgent()],
    ['the journal is lost in the same boot', (node) => node.loseJournal()],
  ])('a reboot that was refused is made later, also if %s', (_, disturb) => {
    const node = nodeWithReboot(refused)
    disturb(node)
    node.settleFor(2_000)
    expect([node.status(), rebootCount(node)]).toEqual(['erroring', 0])
    node.interruptAnswers.clear()
    node.settleFor(400_000)
    expect([node.executedInterrupts, node.bootId, node.status()]).toEqual([['reboot'], 'boot-2', 'complete'])
  })

  test('a reboot that was refused is not made once somebody else has rebooted the host', () => {
    const node = nodeWithReboot(refused)
    node.reboot()
    node.interruptAnswers.clear()
    node.settleFor(400_000)
    expect([node.status(), rebootCount(node), node.bootId]).toEqual(['complete', 0, 'boot-2'])
    expect(node.events).toContainEqual({
      type: 'interrupted',
      skyhook: 's',
      interrupt: 'reboot, replaced by a boot',
    })
  })

  test('a reboot that was requested is requested again if the journal is lost in the same boot', () => {
    const node = nodeWithReboot(requested)
    node.loseJournal()
    node.settleFor(10_000)
    expect([node.status(), rebootCount(node)]).toEqual(['in_progress', 2])
    node.reboot()
    node.settleFor(5_000)
    expect([rebootCount(node), node.status(), shownReboots(node)]).toEqual([2, 'complete', [{ done: 1 }]])
  })

  test('a reboot that was made is not repeated if the journal is lost in the shutdown', () => {
    const node = nodeWithReboot(requested)
    node.loseJournal()
    node.reboot()
    node.settleFor(10_000)
    expect([rebootCount(node), node.status(), shownReboots(node)]).toEqual([1, 'complete', [{ done: 1 }]])
    expect(node.events).toContainEqual({ type: 'rebootNotRepeated', skyhook: 's' })
  })

  test('a second reboot that was not made is made, also if the journal is lost in the same boot', () => {
    const node = new NodeSimulator()
    node.exitCodes.set('a post-interrupt-check', 1)
    node.apply('s', { packages: { a: packageWith(reboot) } })
    node.settleFor(3_000)
    node.interruptAnswers.set('reboot', refused)
    requestInterruptAgain(node)
    node.settleFor(2_000)
    expect([rebootCount(node), node.reason()]).toEqual([1, 'RebootRefused'])
    node.interruptAnswers.set('reboot', requested)
    node.settleFor(20_000)
    node.loseJournal()
    node.settleFor(20_000)
    expect(rebootCount(node)).toBe(3) // the first, the one that was requested, and again
    expect(node.bootId).toBe('boot-2')
  })

  test('a fourth reboot of the same packages for the same spec is not made', () => {
    const node = new NodeSimulator()
    node.exitCodes.set('a post-interrupt-check', 1)
    node.apply('s', { packages: { a: packageWith(reboot) } })
    for (let round = 1; round <= 3; round++) {
      node.settleFor(20_000)
      requestInterruptAgain(node)
    }
    node.settleFor(400_000)
    expect([node.reason(), node.status(), node.slots.length, rebootCount(node), node.bootId]).toEqual([
      'RebootLoop',
      'erroring',
      1,
      3,
      'boot-4',
    ])
    expect(shownReboots(node)).toEqual([{ done: 3 }])
    expect(node.annotation('reasons_s')).toContain('{"a":{"reason":"RebootLoop"')
  })
})

/** As a person does who sets the stage on the Node. */
function requestInterruptAgain(node: NodeSimulator): void {
  node.edit((annotations) => {
    const state = JSON.parse(annotations['skyhook.nvidia.com/nodeState_s'] ?? '') as Record<string, object>
    state['a|1.0.0'] = { ...state['a|1.0.0'], stage: 'interrupt', state: 'in_progress' }
    annotations['skyhook.nvidia.com/nodeState_s'] = JSON.stringify(state)
  })
}

describe('a host that must not be rebooted', () => {
  const barrier = 'the host is a container'
  const facts = (node: NodeSimulator): unknown => [node.status(), node.reason(), node.slots.length, isCordoned(node)]

  test('a package that reboots is refused before slot, cordon and drain', () => {
    const node = new NodeSimulator()
    node.rebootBarrier = barrier
    node.apply('s', { packages: { a: packageWith(reboot) } })
    node.settleFor(60_000)
    expect(facts(node)).toEqual(['erroring', 'RebootRefused', 0, false])
    expect([node.executedSteps, node.executedInterrupts]).toEqual([[], []])
    node.apply('s', { packages: { a: packageWith() } })
    node.settleFor(60_000)
    expect([node.status(), node.executedSteps]).toEqual(['complete', install])
  })

  test('services are restarted there', () => {
    const node = new NodeSimulator()
    node.rebootBarrier = barrier
    node.apply('s', { packages: { a: packageWith(cron) } })
    node.settleFor(60_000)
    expect([node.status(), node.executedInterrupts]).toEqual(['complete', ['service cron']])
  })

  test('a reboot that a changed key needs is refused before the package is configured', () => {
    const node = installedNode({ configMap: { key: '1' }, configInterrupts: { key: reboot } })
    node.rebootBarrier = barrier
    node.apply('s', { packages: { a: pkg('1.0.0', { configMap: { key: '2' }, configInterrupts: { key: reboot } }) } })
    node.settleFor(60_000)
    expect(facts(node)).toEqual(['erroring', 'RebootRefused', 0, false])
    expect([node.executedSteps, node.executedInterrupts]).toEqual([[], []])
  })
})
