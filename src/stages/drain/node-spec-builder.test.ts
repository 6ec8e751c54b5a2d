import { describe, expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { cordonMarks, cron, isCordoned, packageWith } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import { cordonedBeforeKey, cordonKey } from '../../schemas/annotations.ts'
import { emptyJournal, type HeldCordon } from '../../schemas/journal.ts'
import { NodeSpecBuilder } from './node-spec-builder.ts'

type Forgetting =
  | 'is registered again'
  | 'is registered again, unschedulable'
  | 'loses all annotations'
  | 'loses its marks'

function forget(node: NodeSimulator, how: Forgetting): void {
  if (how === 'loses all annotations' || how === 'loses its marks')
    return node.edit((annotations) => {
      for (const key of Object.keys(annotations))
        if (how === 'loses all annotations' || key.startsWith('skyhook.nvidia.com/cordon')) delete annotations[key]
    })
  const { name } = node.node.metadata
  const spec = how === 'is registered again' ? {} : { unschedulable: true }
  node.node = { metadata: { name, uid: 'another-uid', resourceVersion: '1', labels: {}, annotations: {} }, spec }
  node.reportReady()
  node.slots = []
}

/** An apply that lasts, on a node that is out of service for it. */
function nodeAtWork(wasCordoned = false): NodeSimulator {
  const node = new NodeSimulator()
  node.node = { ...node.node, spec: wasCordoned ? { unschedulable: true } : {} }
  node.hangingPackages.add('a')
  node.apply('s', { packages: { a: packageWith(cron) } })
  node.settleFor(5_000)
  return node
}

const forgettings: readonly Forgetting[] = [
  'is registered again',
  'is registered again, unschedulable',
  'loses all annotations',
  'loses its marks',
]

describe('a Node that forgets the cordon of its work', () => {
  test.each(forgettings)('a Node that %s while a step runs has the cordon again by the next decision', (how) => {
    const node = nodeAtWork()
    forget(node, how)
    node.step()
    expect([isCordoned(node), node.annotation('cordon_s'), node.running().length]).toEqual([true, 'true', 1])
  })

  test.each<[Forgetting, boolean, boolean]>([
    ['is registered again', false, false],
    ['is registered again', true, false], // an administrator's cordon goes with the Node
    ['is registered again, unschedulable', false, true],
    ['loses all annotations', false, false],
    ['loses all annotations', true, true],
    ['loses its marks', false, false],
    ['loses its marks', true, true],
  ])('a Node that %s (cordoned before: %j) ends as it would without the work', (how, wasCordoned, isCordonedAfter) => {
    const node = nodeAtWork(wasCordoned)
    forget(node, how)
    node.settleFor(5_000)
    node.finishHanging('a')
    node.settleFor(60_000)
    expect([node.status(), isCordoned(node), cordonMarks(node)]).toEqual(['complete', isCordonedAfter, []])
  })

  test.each(forgettings)(
    'a Node that %s just before it leaves the selector is given back, and then its slot',
    (how) => {
      const node = new NodeSimulator({ pool: 'x' })
      node.hangingPackages.add('a')
      node.apply('s', { nodeSelectors: { matchLabels: { pool: 'x' } }, packages: { a: packageWith(cron) } })
      node.settleFor(5_000)
      forget(node, how)
      node.node = { ...node.node, metadata: { ...node.node.metadata, labels: {} } }
      node.finishHanging('a')
      node.settleFor(60_000)
      const isCordonedAfter = how === 'is registered again, unschedulable'
      expect([isCordoned(node), cordonMarks(node), node.slots]).toEqual([isCordonedAfter, [], []])
    },
  )

  test('an agent that starts again cordons the Node that was registered while it was away', () => {
    const node = nodeAtWork()
    forget(node, 'is registered again')
    node.restartAgent()
    node.step()
    expect(isCordoned(node)).toBe(true)
  })

  test('a Node that loses its marks at every moment of the work ends schedulable and without marks', () => {
    const steps = roundsToCompletion(() => undefined)
    for (let round = 1; round < steps; round++) {
      const node = new NodeSimulator({}, { takesTime: true })
      node.apply('s', { packages: { a: packageWith(cron) } })
      // a mark that no decision has seen yet, or that the last one takes off, is nobody's for sure
      const isSettled = (): boolean =>
        !node.lastPlan?.actions.some((one) => one.do === 'publish' && cordonKey('s') in one.patch.annotations)
      for (let count = 0; count < round; count++) if (!node.step()) node.finish()
      if (!isSettled()) continue
      forget(node, 'loses its marks')
      complete(node)
      expect([round, node.status(), isCordoned(node), cordonMarks(node)]).toEqual([round, 'complete', false, []])
    }
  })
})

function complete(node: NodeSimulator): void {
  for (let round = 0; round < 100; round++) {
    if (node.step() || node.finish()) continue
    if (node.status() === 'complete') return
    node.nowMs = Math.min(node.nowMs + 60_000, node.lastPlan?.requeueAtMs ?? Infinity)
  }
}

function roundsToCompletion(disturb: (node: NodeSimulator) => void): number {
  const node = new NodeSimulator({}, { takesTime: true })
  node.apply('s', { packages: { a: packageWith(cron) } })
  disturb(node)
  let rounds = 0
  while (node.status() !== 'complete' && rounds < 200) {
    rounds++
    if (!node.step()) node.finish()
  }
  return rounds
}

describe('what is written for a cordon, by what the Node shows and the journal remembers', () => {
  const mark = cordonKey('s')
  const held: HeldCordon = { skyhooks: ['s'], before: false }
  const heldOfAdministrator: HeldCordon = { skyhooks: ['s'], before: true }
  type Shown = {
    readonly unschedulable?: boolean
    readonly annotations?: Record<string, string>
    readonly uid?: string
  }
  type Written = {
    readonly unschedulable?: boolean
    readonly [mark]?: string | null
    readonly [cordonedBeforeKey]?: string | null
  }
  const marked = { [mark]: 'true', [cordonedBeforeKey]: 'false' }

  test.each<[string, HeldCordon | undefined, Shown, 'on' | 'off' | 'as-is', Written, HeldCordon | undefined]>([
    [
      'a first cordon is remembered when it is seen',
      undefined,
      {},
      'on',
      { unschedulable: true, [mark]: 'true', [cordonedBeforeKey]: 'false' },
      undefined,
    ],
    ['a cordon that is there is remembered', undefined, { unschedulable: true, annotations: marked }, 'on', {}, held],
    [
      'a cordon that only stays is not remembered',
      undefined,
      { unschedulable: true, annotations: marked },
      'as-is',
      {},
      undefined,
    ],
    [
      'a lost cordon comes back',
      held,
      { uid: 'other' },
      'on',
      { unschedulable: true, [mark]: 'true', [cordonedBeforeKey]: 'false' },
      { skyhooks: ['s'] },
    ],
    [
      'a lost cordon that stays comes back',
      held,
      { uid: 'other' },
      'as-is',
      { unschedulable: true, [mark]: 'true', [cordonedBeforeKey]: 'false' },
      { skyhooks: ['s'] },
    ],
    ['a lost cordon that goes is forgotten', held, { uid: 'other' }, 'off', {}, undefined],
    [
      'a lost mark comes back with its memory',
      held,
      { unschedulable: true },
      'on',
      { [mark]: 'true', [cordonedBeforeKey]: 'false' },
      held,
    ],
    [
      'a lost mark comes back before it goes',
      held,
      { unschedulable: true },
      'off',
      { [mark]: 'true', [cordonedBeforeKey]: 'false' },
      held,
    ],
    [
      "a lost mark beside an administrator's cordon comes back with that",
      heldOfAdministrator,
      { unschedulable: true },
      'on',
      { [mark]: 'true', [cordonedBeforeKey]: 'true' },
      heldOfAdministrator,
    ],
    [
      'a lost memory comes back',
      heldOfAdministrator,
      { unschedulable: true, annotations: { [mark]: 'true' } },
      'on',
      { [cordonedBeforeKey]: 'true' },
      heldOfAdministrator,
    ],
    [
      'a Node that registers unschedulable is cordoned by others',
      held,
      { uid: 'other', unschedulable: true },
      'on',
      { [mark]: 'true', [cordonedBeforeKey]: 'true' },
      { skyhooks: ['s'] },
    ],
    [
      'a cordon that is given back is forgotten',
      held,
      { unschedulable: true, annotations: marked },
      'off',
      { unschedulable: false, [mark]: null, [cordonedBeforeKey]: null },
      undefined,
    ],
  ])('%s', (_, cordon, { unschedulable = false, annotations = {}, uid = 'node-uid' }, desired, written, remembered) => {
    const simulator = new NodeSimulator()
    const metadata = { ...simulator.node.metadata, uid, annotations }
    simulator.node = { ...simulator.node, metadata, spec: { unschedulable } }
    simulator.journal = { ...emptyJournal('node-uid'), ...(cordon && { cordon, lastSeenUnschedulable: true }) }
    const builder = new NodeSpecBuilder(simulator.snapshot(), [])
    builder.cordon('s', desired)
    const { patch, journalFields } = builder.finish(simulator.journal)
    const ofCordon = Object.entries(patch.annotations).filter(([key]) => /cordon/.test(key))
    const unschedulableChange = patch.unschedulable === undefined ? {} : { unschedulable: patch.unschedulable }
    expect({ ...Object.fromEntries(ofCordon), ...unschedulableChange }).toEqual(written)
    expect(journalFields.cordon).toEqual(remembered)
  })
})
