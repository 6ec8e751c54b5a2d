import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import { decide } from '../../src/stages/decide.ts'
import type { InterruptObservation } from '../../src/stages/model/snapshot.ts'
import { isCordoned } from '../kit/node-simulator/node-simulator-dsl.ts'
import type { Decide } from '../kit/node-simulator/node-simulator.ts'
import type { NodeObserver } from '../kit/node-simulator/node-state.ts'
import { runsOf, seedOf } from '../kit/effort.ts'
import { counterexampleOf } from './counterexample.ts'
import { FaultyNode } from './faulty-node.ts'
import { rebootsAreMade } from './invariants/reboots-are-made.ts'

/**
 * One package that is about to need a reboot, on a host that refuses reboots, takes its time for them, accepts them and
 * stays up, boots by itself and loses its journal, at any moment. Its Skyhook is deleted and created again.
 */
type HostEvent =
  | { readonly kind: 'rounds'; readonly times: number }
  | { readonly kind: 'time passes'; readonly seconds: number }
  | { readonly kind: 'finish' | 'journal lost' | 'agent restarted' | 'host booted' | 'reset' }
  /** Where it matters most: while the Node says that a reboot is requested. */
  | { readonly kind: 'journal lost after the request' }
  | { readonly kind: 'reboots answered'; readonly answer: InterruptObservation | null }
  | { readonly kind: 'Skyhook deleted' | 'Skyhook applied' }
  /** The host has the request and stays up. */
  | { readonly kind: 'Skyhook deleted after the request' }

const hostEvent: fc.Arbitrary<HostEvent> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant('rounds' as const), times: fc.integer({ min: 1, max: 4 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('time passes' as const), seconds: fc.constantFrom(1, 11, 61, 400) }),
  },
  {
    weight: 9,
    arbitrary: fc.constantFrom<HostEvent[]>(
      { kind: 'finish' },
      { kind: 'finish' },
      { kind: 'journal lost' },
      { kind: 'journal lost after the request' },
      { kind: 'agent restarted' },
      { kind: 'host booted' },
      { kind: 'reset' },
      { kind: 'reboots answered', answer: { state: 'refused', message: 'backup blocks it' } },
      { kind: 'reboots answered', answer: { state: 'refused', message: 'backup blocks it' } },
      { kind: 'reboots answered', answer: { state: 'unknown', message: 'accepted' } },
      { kind: 'reboots answered', answer: null },
      { kind: 'Skyhook deleted' },
      { kind: 'Skyhook deleted after the request' },
      { kind: 'Skyhook applied' },
    ),
  },
)

const spec = { packages: { a: { version: '1.0.0', image: 'r/pkg', interrupt: { type: 'reboot' } } } } as const

function runLife(decideUnderTest: Decide, events: readonly HostEvent[]): void {
  const observers: NodeObserver[] = []
  const node = new FaultyNode(decideUnderTest, {
    decided: (...effect) => observers.forEach((observer) => observer.decided?.(...effect)),
    published: (...effect) => observers.forEach((observer) => observer.published?.(...effect)),
  })
  observers.push(rebootsAreMade({ node }))
  node.apply('s', spec)
  while (!node.journal.skyhooks['s']?.interrupt) if (!node.reconcile()) node.finish()
  for (const event of events) play(node, event)
  node.interruptAnswers.clear()
  if (!node.views.has('s')) {
    const isGone = (): boolean => node.slots.length === 0 && !isCordoned(node)
    liveUntil(node, 200_000, isGone)
    if (!isGone()) throw new Error('a deleted Skyhook keeps its slot or its cordon')
    node.apply('s', spec)
  }
  liveUntil(node, 4_000_000, () => node.status() === 'complete')
  if (node.status() !== 'complete') throw new Error(`never complete: ${JSON.stringify(node.lastReasons.get('s'))}`)
}

function liveUntil(node: FaultyNode, ms: number, isOver: () => boolean): void {
  const endMs = node.nowMs + ms
  while (node.nowMs < endMs && !isOver()) {
    node.nowMs += 10_000
    let turns = 0
    while (node.reconcile() || node.finish())
      if (++turns === 200) throw new Error(`does not settle: ${node.lastPlan?.actions.map(({ key }) => key).join(' ')}`)
  }
}

function play(node: FaultyNode, event: HostEvent): void {
  switch (event.kind) {
    case 'rounds':
      for (let round = 0; round < event.times; round++) node.reconcile()
      return
    case 'time passes':
      node.nowMs += event.seconds * 1_000
      return
    case 'finish':
      node.finish()
      return
    case 'journal lost':
      return node.loseJournal()
    case 'journal lost after the request':
      for (let round = 0; round < 5 && !isRebootAnnounced(node); round++) node.reconcile()
      node.reconcile()
      return node.loseJournal()
    case 'agent restarted':
      return node.restartAgent()
    case 'host booted':
      return node.reboot()
    case 'reset':
      return node.edit((annotations) => delete annotations['skyhook.nvidia.com/nodeState_s'])
    case 'reboots answered':
      if (event.answer) node.interruptAnswers.set('reboot', event.answer)
      else node.interruptAnswers.clear()
      return
    case 'Skyhook deleted after the request':
      node.interruptAnswers.set('reboot', { state: 'unknown', message: 'accepted' })
      for (let round = 0; round < 8 && !isRebootUnanswered(node); round++) node.reconcile()
      return node.remove('s')
    case 'Skyhook deleted':
      return node.remove('s')
    case 'Skyhook applied':
      return node.apply('s', spec)
  }
}

const isRebootAnnounced = (node: FaultyNode): boolean => node.annotation('journal_s')?.includes('askedInBoot') === true

const isRebootUnanswered = ({ interrupts }: FaultyNode): boolean =>
  [...interrupts.values()].some(({ state }) => state === 'unknown')

function search(decideUnderTest: Decide, numRuns: number): string | undefined {
  const life = fc.property(fc.array(hostEvent, { maxLength: 15 }), (events) => runLife(decideUnderTest, events))
  return counterexampleOf(life, { numRuns, seed: seedOf(20_261_122) })
}

test('a package that needs a reboot is never complete without it, and complete once the host reboots', () => {
  expect(search(decide, runsOf(30, 300))).toBeUndefined()
})

test('the search catches a decision that takes requested reboots for made ones', () => {
  const counting: Decide = (snapshot, reasons) => {
    const isLost = snapshot.journal.skyhooks['s'] === undefined
    return decide(isLost ? { ...snapshot, node: withRequestsCounted(snapshot.node) } : snapshot, reasons)
  }
  expect(search(counting, 1_000)).toContain('was not rebooted')
})

/** As if every reboot that was asked for had been so in an earlier boot. */
function withRequestsCounted(node: KubernetesNode): KubernetesNode {
  const key = 'skyhook.nvidia.com/journal_s'
  const text = node.metadata.annotations?.[key]?.replace(/"askedInBoot":"[^"]*"/, '"askedInBoot":"boot-0"')
  if (text === undefined) return node
  return { ...node, metadata: { ...node.metadata, annotations: { ...node.metadata.annotations, [key]: text } } }
}
