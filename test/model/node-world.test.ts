/** Wrong decisions, each of which breaks one promise on the simulated node. */
import { expect, test } from 'vitest'
import { statusKey } from '../../src/schemas/annotations.ts'
import { decide } from '../../src/stages/decide.ts'
import type { Action, Plan, StartStep } from '../../src/stages/model/plan.ts'
import { known, type OwnSlot, type SkyhookView, type Snapshot } from '../../src/stages/model/snapshot.ts'
import { versionsOf } from '../../src/stages/skyhook/slot.ts'
import { cron, packageWith, pod } from '../kit/node-simulator/node-simulator-dsl.ts'
import type { Decide } from '../kit/node-simulator/node-simulator.ts'
import { ofOneNode } from '../promises/all.ts'
import { WatchedNode } from './invariants/index.ts'

const selector = { nodeSelectors: { matchLabels: { pool: 'x' } } }
const spec = { ...selector, packages: { a: packageWith(cron) } }
const withoutInterrupt = { ...selector, packages: { a: packageWith() } }

/** The first promise that the decisions break on a node which installs a package with an interrupt. */
function firstViolation(decideUnderTest: Decide, arrange: (node: WatchedNode) => void = () => {}): string | undefined {
  const node = new WatchedNode(decideUnderTest, [])
  node.apply('s', spec)
  arrange(node)
  try {
    for (let round = 0; round < 400; round++) {
      if (node.reconcile() || node.finish()) continue
      node.nowMs = Math.max(node.nowMs + 1, Math.min(node.lastPlan?.requeueAtMs ?? 0, node.nowMs + 10_000))
    }
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
  return undefined
}

/** The real decisions, and once something else, as soon as there is something that it can be done to. */
function andOnce(other: (snapshot: Snapshot, plan: Plan) => Action | undefined): Decide {
  let isDone = false
  return (snapshot, reasons) => {
    const plan = decide(snapshot, reasons)
    const action = isDone ? undefined : other(snapshot, plan)
    isDone ||= action !== undefined
    return action ? { ...plan, actions: [action, ...plan.actions] } : plan
  }
}

const without =
  (isLeftOut: (action: Action) => boolean): Decide =>
  (snapshot, reasons) => {
    const plan = decide(snapshot, reasons)
    return { ...plan, actions: plan.actions.filter((action) => !isLeftOut(action)) }
  }

const isRunning = ({ attempts }: Snapshot): boolean => [...attempts.values()].some(({ state }) => state === 'running')
const slotOf = ({ slots }: Snapshot): OwnSlot | undefined => (slots.known ? slots.value[0] : undefined)
const viewOf = ({ skyhooks }: Snapshot): SkyhookView | undefined => (skyhooks.known ? skyhooks.value[0] : undefined)
const isCordoned = ({ node }: Snapshot): boolean => node.spec?.unschedulable === true

function restart(snapshot: Snapshot): Action | undefined {
  const view = viewOf(snapshot)
  if (view === undefined) return undefined
  const run = { id: 'x', interrupt: cron, owners: [], bootId: snapshot.bootId, startedAtMs: snapshot.nowMs }
  return { do: 'interrupt', key: 'interrupt/x', run, view }
}

/** Its first step once more, when `isTime`. */
function startAgain(isTime: (snapshot: Snapshot) => boolean): Decide {
  let first: StartStep | undefined
  return andOnce((snapshot, { actions }) => {
    first ??= actions.find((action) => action.do === 'startStep')
    if (first === undefined || !isTime(snapshot)) return undefined
    return { ...first, attempt: { ...first.attempt, id: 'again' } }
  })
}

const release = (snapshot: Snapshot): Action | undefined => {
  const slot = slotOf(snapshot)
  return slot && { do: 'releaseSlot', key: 'slot/x', slot }
}

const isRestarting = ({ interrupts }: Snapshot): boolean =>
  [...interrupts.values()].some(({ state }) => state === 'running')
const isOver = (snapshot: Snapshot): boolean =>
  slotOf(snapshot) === undefined && snapshot.node.metadata.annotations?.[statusKey('s')] === 'complete'

test('the real decisions break no promise, and each has something to judge', () => {
  const node = new WatchedNode(decide, [])
  node.apply('s', spec)
  node.apply('t', withoutInterrupt)
  for (let round = 0; round < 100; round++) if (!node.reconcile()) node.finish()
  expect([node.status('s'), node.status('t')]).toEqual(['complete', 'complete'])
  const late = ['evictions', 'progress', 'slots-owned', 'slots-true'] // need time or pods
  const unchecked = [...node.world.checks()].filter(([, checks]) => checks === 0).map(([name]) => name)
  expect(unchecked.filter((name) => !late.includes(name))).toEqual([])
  expect(ofOneNode.map(({ name }) => name)).toEqual([...node.world.checks().keys()])
})

test.each<[what: string, violation: RegExp, decideUnderTest: Decide, arrange?: (node: WatchedNode) => void]>([
  [
    'restarts a service while a step runs',
    /restarts cron while a apply run.sh runs/,
    andOnce((snapshot) => (isRunning(snapshot) ? restart(snapshot) : undefined)),
  ],
  ['starts a step while a service restarts', /starts a apply run.sh while cron restarts/, startAgain(isRestarting)],
  [
    'gives its slot back while a step runs',
    /gives back .* while it runs a apply/,
    andOnce((snapshot) => (isRunning(snapshot) && !isCordoned(snapshot) ? release(snapshot) : undefined)),
    (node) => node.apply('s', withoutInterrupt),
  ],
  [
    'gives its slot back under the cordon',
    /gives back .* while its Node carries the cordon mark of s/,
    andOnce((snapshot) => (isCordoned(snapshot) ? release(snapshot) : undefined)),
  ],
  [
    'keeps the slot of finished work',
    /is finished and keeps a slot/,
    without(({ do: what }) => what === 'releaseSlot'),
  ],
  [
    'does not look at a slot',
    /its agent has not written it/,
    without(({ do: what }) => what === 'renewSlot' || what === 'releaseSlot'),
    (node) => {
      node.apply('s', spec, { 'skyhook.nvidia.com/pause': 'true' })
      node.slotAppears('s', 'skyhook')
    },
  ],
  [
    'stands still and says nothing',
    /says no reason/,
    (snapshot, reasons) => ({ ...decide(snapshot, reasons), actions: [], requeueAtMs: Infinity }),
  ],
  ['repeats a step that has succeeded', /succeeds a second time/, startAgain(isOver)],
  [
    'evicts without a cordon',
    /evicts shop\/p without a cordon/,
    andOnce(({ node: { spec: nodeSpec } }) =>
      nodeSpec?.unschedulable === true ? undefined : { do: 'evict', key: 'evict/x', pod: pod('p') },
    ),
    (node) => void (node.pods = [pod('p')]),
  ],
  [
    'starts on a slot that it has not confirmed',
    /its agent has read none since its slot was granted/,
    (snapshot, reasons) => {
      const [slot, view] = [slotOf(snapshot), viewOf(snapshot)]
      if (slot === undefined || view === undefined) return decide(snapshot, reasons)
      const confirmed: OwnSlot = { ...slot, ownership: 'confirmed', admittedUnder: versionsOf(view) }
      return decide({ ...snapshot, slots: known([confirmed]) }, reasons)
    },
    (node) => node.apply('s', withoutInterrupt),
  ],
  [
    "takes off an administrator's cordon",
    /takes off the cordon that an administrator set/,
    andOnce((snapshot) =>
      isCordoned(snapshot)
        ? {
            do: 'publish',
            key: 'publish',
            computedFrom: '',
            patch: { annotations: {}, labels: {}, conditions: [], removedConditions: [], unschedulable: false },
          }
        : undefined,
    ),
    (node) => node.setUnschedulable(true),
  ],
])('a node breaks a promise that %s', (_, violation, decideUnderTest, arrange) => {
  expect(firstViolation(decideUnderTest, arrange)).toMatch(violation)
})
