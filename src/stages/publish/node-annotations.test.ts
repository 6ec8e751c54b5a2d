import { describe, expect, test } from 'vitest'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'

const singlePackage: Readonly<Record<string, PackageSpec>> = { a: { version: '1.0.0', image: 'r/a' } }

/** What the Node shows over some time, each change with its time since then: status and reason. */
function shownDuring(node: NodeSimulator, ms: number): [number, string | undefined, string | undefined][] {
  const startMs = node.nowMs
  const shown: [number, string | undefined, string | undefined][] = []
  const observe = (): void => {
    const reason = node.annotation('reason_s')
    const now = [
      node.status(),
      reason === undefined ? undefined : (JSON.parse(reason) as { reason: string }).reason,
    ] as const
    if (shown.at(-1)?.slice(1).join() !== now.join()) shown.push([node.nowMs - startMs, ...now])
  }
  for (;;) {
    // a refused slot is known in the next decision
    for (let idle = 0; idle < 2; observe()) idle = node.step() ? 0 : idle + 1
    const next = node.lastPlan?.requeueAtMs ?? Infinity
    if (next > startMs + ms) break
    node.nowMs = Math.max(node.nowMs + 1, next)
  }
  return shown
}

describe('what the Node shows', () => {
  test('a failure and its repetition are published with their reasons', () => {
    const node = new NodeSimulator()
    node.exitCodes.set('a apply', 1)
    node.apply('s', { packages: singlePackage })
    expect(shownDuring(node, 6_000)).toEqual([
      [0, undefined, undefined],
      [0, 'in_progress', undefined],
      [0, 'erroring', 'StepFailed'],
      [expect.any(Number), 'in_progress', undefined],
      [expect.any(Number), 'erroring', 'StepFailed'],
    ])
  })

  test('a wait that has only just started is not published yet', () => {
    const node = new NodeSimulator()
    node.areSlotsGranted = false
    node.apply('s', { packages: singlePackage })
    expect(shownDuring(node, 1_000)).toEqual([
      [0, undefined, undefined],
      [700, 'waiting', 'WaitingForSlot'],
    ])
  })

  test('a wait whose message changes again and again is published', () => {
    const node = new NodeSimulator()
    node.areSlotsGranted = false
    node.apply('s', { packages: singlePackage })
    const startMs = node.nowMs
    for (let change = 0; node.annotation('reason_s') === undefined && change < 10; change++) {
      node.slotDenials.set('s', { message: `reason ${change}`, nextRequestAtMs: node.nowMs + 60_000, sinceMs: startMs })
      shownDuring(node, 400)
      node.nowMs = startMs + 400 * (change + 1)
    }
    expect(node.nowMs - startMs).toBe(800)
  })

  test('a wait is published later while the API server is slow, and a failure at once', () => {
    const node = new NodeSimulator()
    node.answerMs = 400
    node.areSlotsGranted = false
    node.exitCodes.set('a apply', 1)
    node.apply('s', { packages: singlePackage })
    expect(shownDuring(node, 2_500)).toEqual([
      [0, undefined, undefined],
      [2_000, 'waiting', 'WaitingForSlot'],
    ])
    node.areSlotsGranted = true
    node.slotDenials.clear()
    expect(shownDuring(node, 100).at(-1)).toEqual([0, 'erroring', 'StepFailed'])
  })

  test.each<[string, (annotations: Record<string, string>) => void]>([
    ['a reset', (annotations) => delete annotations['skyhook.nvidia.com/nodeState_s']],
    ['one package that should run again', (annotations) => (annotations['skyhook.nvidia.com/nodeState_s'] = '{}')],
  ])('the Node no longer shows complete after the answer to %s', (_, edit) => {
    const node = new NodeSimulator()
    node.apply('s', { packages: singlePackage })
    node.settleFor(5_000)
    node.areSlotsGranted = false
    node.edit(edit)
    expect(node.status()).toBe('complete')
    expect(shownDuring(node, 5_000)[0]).toEqual([0, 'waiting', 'WaitingForSlot'])
  })

  test('the Node shows complete for the previous spec while new work has only just started to wait', () => {
    const node = new NodeSimulator()
    node.apply('s', { packages: singlePackage })
    node.settleFor(5_000)
    node.areSlotsGranted = false
    node.apply('s', { packages: { a: { version: '2.0.0', image: 'r/a' } } })
    expect(shownDuring(node, 1_000)).toEqual([
      [0, 'complete', undefined],
      [700, 'waiting', 'WaitingForSlot'],
    ])
  })
})
