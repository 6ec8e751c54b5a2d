import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { disableKey, ignoreLabel, pauseKey } from '../../schemas/annotations.ts'
import { finalizerName, type PackageSpec, type Skyhook } from '../../schemas/skyhook.ts'
import { finalizersAfter, type HolderLook, lookedAt, planFinalizer, type FinalizerPlan } from './finalizer.ts'
import type { CensusNode } from './node-facts.ts'
import { countsOf, entry, nodeReporting, skyhookWith } from '../../../test/kit/objects/census-objects.ts'

const packageWith = (uninstall?: PackageSpec['uninstall']): PackageSpec => ({
  version: '1.1.0',
  image: 'x',
  ...(uninstall && { uninstall }),
})
const specWith = (uninstall?: PackageSpec['uninstall']) => ({ packages: { tuning: packageWith(uninstall) } })
const enabled = specWith({ enabled: true })

type Scenario = {
  dead?: readonly string[]
  deletionObservedAtMs?: number
  /** Null: nobody has looked. */
  look?: HolderLook | null
  nowMs?: number
}
const nobody: HolderLook = { slots: [], looks: 1, atMs: 0 }
const held = (...holders: string[]): HolderLook => ({
  slots: holders.map((holder) => ({ uid: `slot of ${holder}`, holder })),
  looks: 1,
  atMs: 59_500,
})
function plan(
  skyhook: Skyhook,
  nodes: readonly CensusNode[],
  { dead = [], deletionObservedAtMs = 0, look = nobody, nowMs = 60_000 }: Scenario = {},
): FinalizerPlan {
  return planFinalizer({
    skyhook,
    counts: countsOf(skyhook, nodes),
    isDead: (name) => dead.includes(name),
    deletionObservedAtMs,
    look: look ?? undefined,
    nowMs,
  })
}
const live = (spec: Skyhook['spec'], finalizers?: string[]): Skyhook =>
  skyhookWith({ spec, metadata: { ...(finalizers && { finalizers }) } })
const deleting = (spec: Skyhook['spec'] = enabled, metadata: object = {}): Skyhook =>
  skyhookWith({
    spec,
    metadata: {
      deletionTimestamp: '2026-11-20T14:00:00Z',
      finalizers: ['example.com/theirs', finalizerName],
      ...metadata,
    },
  })
const installed = (name: string, more: object = {}): CensusNode => nodeReporting(name, { of: enabled, ...more })
const ignoring = { [ignoreLabel]: 'true' }
const clean = (name: string): CensusNode => nodeReporting(name, { of: enabled, entries: [] })

describe('a live Skyhook', () => {
  test.each<[string, Skyhook, CensusNode[], FinalizerPlan]>([
    ['gets the finalizer when a package asks to be uninstalled', live(enabled), [], { action: 'add' }],
    ['keeps the finalizer that it has', live(enabled, [finalizerName]), [], { action: 'nothing' }],
    ['needs no finalizer where no package asks', live(specWith()), [installed('a')], { action: 'nothing' }],
    [
      'needs no finalizer where uninstalling is disabled',
      live(specWith({ enabled: false })),
      [],
      { action: 'nothing' },
    ],
    [
      'loses the finalizer that an earlier release always set',
      live(specWith(), [finalizerName]),
      [nodeReporting('a', { of: specWith() })],
      { action: 'remove', skipped: [] },
    ],
    [
      'keeps the finalizer while a package taken out of the spec may be uninstalling',
      live(specWith(), [finalizerName]),
      [installed('a')],
      { action: 'nothing' },
    ],
  ])('a live Skyhook %s', (_, skyhook, nodes, expected) => {
    expect(plan(skyhook, nodes)).toEqual(expected)
  })
})

describe('a Skyhook being deleted', () => {
  const paused = deleting(enabled, { annotations: { [pauseKey]: 'true' } })
  const disabled = deleting(enabled, { annotations: { [disableKey]: 'true' } })
  const waits = (nodes: string[], more: object = {}): FinalizerPlan => ({
    action: 'wait',
    nodes,
    skipped: [],
    recheckAtMs: Infinity,
    looksAtMs: Infinity,
    ...more,
  })

  test.each<[string, Skyhook, CensusNode[], Scenario, FinalizerPlan]>([
    [
      'waits for every node that has something left',
      deleting(),
      [installed('a'), clean('b'), installed('c')],
      {},
      waits(['a', 'c']),
    ],
    [
      'goes when nothing is left',
      deleting(),
      [clean('a'), nodeReporting('b', { status: '' })],
      {},
      { action: 'remove', skipped: [] },
    ],
    [
      'goes when no package asks to be uninstalled',
      deleting(specWith()),
      [installed('a')],
      {},
      { action: 'remove', skipped: [] },
    ],
    [
      'goes when an uninstall was given up',
      deleting(),
      [nodeReporting('a', { of: enabled, entries: [entry({ stage: 'uninstall', state: 'unknown' })] })],
      {},
      { action: 'remove', skipped: [] },
    ],
    [
      'goes when unfinished work of an earlier Skyhook needs no uninstall',
      deleting(),
      [nodeReporting('a', { of: enabled, entries: [entry({ name: 'other', stage: 'uninstall', state: 'skipped' })] })],
      {},
      { action: 'remove', skipped: [] },
    ],
    [
      'waits for the uninstall of unfinished work of an earlier Skyhook',
      deleting(),
      [nodeReporting('a', { of: enabled, entries: [entry({ stage: 'uninstall', state: 'skipped' })] })],
      {},
      waits(['a']),
    ],
    ['goes when it selects no node', deleting(), [], {}, { action: 'remove', skipped: [] }],
    [
      'is left alone without our finalizer',
      deleting(enabled, { finalizers: ['example.com/theirs'] }),
      [installed('a')],
      {},
      { action: 'nothing' },
    ],
    [
      'skips dead nodes and lists them',
      deleting(),
      [installed('a'), installed('b'), clean('c')],
      { dead: ['a', 'b', 'c'] },
      { action: 'remove', skipped: ['a', 'b'] },
    ],
    [
      'waits for live nodes beside dead ones',
      deleting(),
      [installed('a'), installed('b')],
      { dead: ['a'] },
      waits(['b'], { skipped: ['a'] }),
    ],
    ['says that a pause holds it', paused, [installed('a')], {}, waits(['a'], { blockedBy: 'pause' })],
    ['says that it is disabled', disabled, [installed('a')], {}, waits(['a'], { blockedBy: 'disable' })],
    [
      'says that an ignored node holds it',
      deleting(),
      [installed('a', { labels: ignoring }), installed('b', { labels: ignoring })],
      {},
      waits(['a', 'b'], { blockedBy: 'ignore' }),
    ],
    [
      'is not held by an ignored node while others uninstall',
      deleting(),
      [installed('a', { labels: ignoring }), installed('b')],
      {},
      waits(['a', 'b']),
    ],
    [
      'is released when only dead nodes are left',
      paused,
      [installed('a')],
      { dead: ['a'] },
      { action: 'remove', skipped: ['a'] },
    ],
    [
      'treats an unreadable state as packages left',
      deleting(),
      [nodeReporting('a', { stateText: '{"tuning' })],
      {},
      waits(['a']),
    ],
    [
      'waits for packages that left the spec before',
      deleting(specWith()),
      [nodeReporting('a', { entries: [entry({ name: 'old', stage: 'uninstall', state: 'erroring' })] })],
      {},
      waits(['a']),
    ],
    [
      'waits for an uninstall that is not finished',
      deleting(),
      [installed('a', { entries: [entry({ stage: 'uninstall', state: 'in_progress' })] })],
      {},
      waits(['a']),
    ],
    [
      'goes when every uninstall is finished',
      deleting(),
      [installed('a', { entries: [entry({ stage: 'uninstall' })] })],
      {},
      { action: 'remove', skipped: [] },
    ],
    [
      'does not wait for what is uninstalled already',
      deleting(specWith()),
      [nodeReporting('a', { entries: [entry({ name: 'old', stage: 'uninstall', state: 'complete' })] })],
      {},
      { action: 'remove', skipped: [] },
    ],
    [
      'is kept until somebody has looked who holds its slots',
      deleting(),
      [clean('a')],
      { look: null },
      waits([], { looksAtMs: 60_000 }),
    ],
    [
      'gives what a node wrote before it gave its slot back time to be observed',
      deleting(),
      [clean('a')],
      { look: { ...nobody, atMs: 59_000 } },
      waits([], { recheckAtMs: 61_000 }),
    ],
    [
      'waits for a node that holds a slot and shows nothing yet, and looks again',
      deleting(),
      [clean('a')],
      { look: held('a'), dead: [] },
      waits(['a'], { recheckAtMs: 61_500, looksAtMs: 60_500 }),
    ],
    [
      'looks for slots again only when no Node has anything left',
      deleting(),
      [installed('a'), clean('b')],
      { look: { ...held('a', 'b'), atMs: 0 } },
      waits(['a', 'b']),
    ],
    [
      'does not wait for the slot of a dead node',
      deleting(),
      [clean('a')],
      { look: { ...held('a'), atMs: 0 }, dead: ['a'] },
      { action: 'remove', skipped: [] },
    ],
    [
      'goes without a look where no package asks to be uninstalled',
      deleting(specWith()),
      [clean('a')],
      { look: null },
      { action: 'remove', skipped: [] },
    ],
  ])('a Skyhook being deleted %s', (_, skyhook, nodes, scenario, expected) => {
    expect(plan(skyhook, nodes, scenario)).toEqual(expected)
  })

  test('a Skyhook being deleted is never released while a live node shows a package that asked to be uninstalled', () => {
    const node = fc.record({ has: fc.boolean(), isDead: fc.boolean() })
    fc.assert(
      fc.property(fc.array(node, { maxLength: 6 }), fc.boolean(), (all, isPaused) => {
        const nodes = all.map(({ has }, at) => (has ? installed(`n${at}`) : clean(`n${at}`)))
        const dead = all.flatMap(({ isDead }, at) => (isDead ? [`n${at}`] : []))
        const made = plan(isPaused ? paused : deleting(), nodes, { dead })
        const isLeft = all.some(({ has, isDead }) => has && !isDead)
        expect(made.action).toBe(isLeft ? 'wait' : 'remove')
        if (made.action === 'remove')
          expect(made.skipped).toEqual(all.flatMap(({ has, isDead }, at) => (has && isDead ? [`n${at}`] : [])))
      }),
    )
  })
})

test('finalizers of others stay in their order', () => {
  expect(finalizersAfter('add', ['b', 'a'])).toEqual(['b', 'a', finalizerName])
  expect(finalizersAfter('add', [finalizerName, 'a'])).toEqual(['a', finalizerName])
  expect(finalizersAfter('remove', ['b', finalizerName, 'a'])).toEqual(['b', 'a'])
  expect(finalizersAfter('add')).toEqual([finalizerName])
})

test('a slot that is taken after the first look does not keep a Skyhook', () => {
  const [before, later] = [
    { uid: '1', holder: 'a' },
    { uid: '2', holder: 'b' },
  ]
  const first = lookedAt(undefined, [before], 1_000)
  const second = lookedAt(first, [before, later], 2_000)
  expect([second, lookedAt(second, [later], 5_000)]).toEqual([
    { slots: [before], looks: 2, atMs: 2_000 },
    { slots: [], looks: 3, atMs: 5_000 },
  ])
})
