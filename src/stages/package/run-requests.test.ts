import { describe, expect, test } from 'vitest'
import { emptyJournal } from '../../schemas/journal.ts'
import type { NodeCondition } from '../../schemas/kubernetes.ts'
import type { StatusRead } from '../../schemas/package-status.ts'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import { NodeModel } from '../../../test/support/node-simulator.ts'
import { known, unknown } from '../model/snapshot.ts'

const day = 24 * 3_600_000
const pkg = (change: Partial<PackageSpec> = {}): PackageSpec => ({ version: '1.0.0', image: 'r/pkg', ...change })
const listening = pkg({ rerunOnRequest: { minInterval: '24h' } })
const wishing = (
  requests: { readonly run: boolean; readonly interrupt: boolean },
  writtenAtMs: number,
  change: object = {},
): StatusRead => ({
  state: 'read',
  status: { bootId: 'boot-1', message: 'a line', requests, ...change },
  writtenAtMs,
})
const run = { run: true, interrupt: false }
const interrupt = { run: false, interrupt: true }
const nothing = { run: false, interrupt: false }

/** Complete for an hour, and what its package then writes about itself. */
function restingNode(spec: PackageSpec, status?: StatusRead): NodeModel {
  const node = new NodeModel()
  node.statusFiles.set('a', wishing(nothing, 0))
  node.apply('s', { packages: { a: spec } })
  node.settleOver(3_600_000)
  expect(node.status()).toBe('complete')
  node.ran.length = 0
  if (status) write(node, status)
  return node
}
function write(node: NodeModel, status: StatusRead): void {
  const now: StatusRead = status.state === 'read' && status.writtenAtMs === 1 ? { ...status, writtenAtMs: node.nowMs } : status
  node.statuses = known(new Map([['s/a', now]]))
  node.statusFiles.set('a', now)
}
const configs = (node: NodeModel): number => node.ran.filter((line) => line === 'a config run.sh').length

describe('a run that the host asks for', () => {
  test.each<[string, PackageSpec, StatusRead | undefined, number]>([
    ['runs config once', listening, wishing(run, 1), 1],
    ['is not listened to where the spec does not say so', pkg(), wishing(run, 1), 0],
    ['comes of updates, not of an interrupt that no run would make', listening, wishing(interrupt, 1), 0],
    ['comes of a required interrupt as well', { ...listening, interrupt: { type: 'reboot', when: 'required' } }, wishing(interrupt, 1), 1],
    ['does not come of an earlier boot', listening, wishing(run, 1, { bootId: 'boot-0' }), 0],
    ['does not come of what was written before the last run', listening, wishing(run, 999_999), 0],
    ['does not come of a file that cannot be read', listening, { state: 'unusable', why: '' }, 0],
    ['does not come of nothing', listening, wishing(nothing, 1), 0],
  ])('%s', (_, spec, status, times) => {
    const node = restingNode(spec, status)
    node.settleOver(10_000)
    expect([configs(node), node.status(), node.slots]).toEqual([times, 'complete', []])
  })

  test('interrupts only what is found to need it, on a node that was in service until then', () => {
    const node = restingNode({ ...listening, interrupt: { type: 'reboot', when: 'required' } }, wishing(interrupt, 1))
    node.settleOver(10_000)
    expect([configs(node), node.interrupted, node.status()]).toEqual([1, ['reboot'], 'complete'])
  })

  test('interrupts a host that was imaged anew and had its reboots before, but needed none since', () => {
    const node = new NodeModel()
    const spec = { packages: { a: { ...listening, interrupt: { type: 'reboot', when: 'required' } as const } } }
    const life = (isRequired: boolean): void => {
      node.statusFiles.set('a', wishing(isRequired ? interrupt : nothing, 0, { bootId: node.bootId }))
      node.journal = emptyJournal('node-uid')
      node.apply('s', spec)
      node.settleOver(20_000)
    }
    life(true)
    life(false)
    expect([node.interrupted, node.status()]).toEqual([['reboot'], 'complete'])
    write(node, wishing(interrupt, 1, { bootId: node.bootId }))
    node.settleOver(20_000)
    expect(node.interrupted).toEqual(['reboot', 'reboot'])
  })

  test('comes at most as often as the spec says, however often it is asked for', () => {
    const node = restingNode(listening)
    for (let hour = 0; hour < 49; hour++) {
      write(node, wishing(run, 1))
      node.settleOver(3_600_000)
    }
    expect(configs(node)).toBe(3)
  })

  test('comes when its time has come, though nothing else happens then', () => {
    const node = restingNode(listening, wishing(run, 1))
    node.settleOver(10_000)
    node.nowMs += 1
    write(node, wishing(run, 1))
    node.settleOver(day - 60_000)
    expect(configs(node)).toBe(1)
    node.settleOver(60_000)
    expect(configs(node)).toBe(2)
  })

  test('is not silenced by a clock that was set back', () => {
    const node = restingNode(listening, wishing(run, 1))
    node.settleOver(10_000)
    node.nowMs -= 3_000_000
    write(node, wishing(run, 1))
    node.settleOver(10_000)
    expect(configs(node)).toBe(2)
  })

  test('waits for a slot like any other work, says so, and is over when the wish is', () => {
    const node = restingNode(listening)
    node.grantSlots = false
    write(node, wishing(run, 1))
    node.settleOver(2_000)
    expect([configs(node), node.status(), node.reason()]).toEqual([0, 'waiting', 'WaitingForSlot'])
    write(node, wishing(nothing, 1))
    node.settleOver(2_000)
    expect([configs(node), node.status(), node.reason()]).toEqual([0, 'complete', undefined])
  })

  test('waits while the Skyhook is paused', () => {
    const node = restingNode(listening)
    node.apply('s', { packages: { a: listening } }, { 'skyhook.nvidia.com/pause': 'true' })
    write(node, wishing(run, 1))
    node.settleOver(2_000)
    expect([configs(node), node.status()]).toEqual([0, 'paused'])
  })

  test('that fails is tried again like any config, and keeps its slot', () => {
    const node = restingNode(listening)
    node.exits.set('a config', 1)
    write(node, wishing(run, 1))
    node.settleOver(4_000)
    expect([node.status(), node.reason(), node.slots.length]).toEqual(['erroring', 'StepFailed', 1])
    node.exits.clear()
    node.settleOver(20_000)
    expect([node.status(), node.slots.length]).toEqual(['complete', 0])
  })
})

describe('what a package says about itself', () => {
  const shown = (node: NodeModel): NodeCondition | undefined =>
    node.node.status?.conditions?.find(({ type }) => type === 'skyhook.nvidia.com/s/a')

  test.each<[StatusRead, Partial<NodeCondition>]>([
    [wishing(run, 1), { status: 'True', reason: 'RunRequested', message: 'a line' }],
    [wishing({ run: true, interrupt: true }, 1), { status: 'True', reason: 'InterruptRequired', message: 'a line' }],
    [wishing(nothing, 1), { status: 'False', reason: 'NoActionRequired', message: 'a line' }],
    [wishing(run, 1, { bootId: 'boot-0' }), { status: 'Unknown', reason: 'StaleSinceBoot', message: 'a line' }],
    [
      { state: 'unusable', why: 'the file is empty' },
      { status: 'Unknown', reason: 'StatusInvalid', message: 'the file is empty' },
    ],
  ])('stands on the Node: %j', (status, condition) => {
    const node = restingNode(pkg(), status)
    node.settle()
    expect(shown(node)).toMatchObject(condition)
  })

  test('is written at once when what it wants changes, and its words alone at most once an hour', () => {
    const node = restingNode(pkg(), wishing(nothing, 1))
    node.settle()
    const { patches } = node
    const first = shown(node)
    for (let minute = 0; minute < 59; minute++) {
      write(node, wishing(nothing, 1, { message: `line ${minute}` }))
      node.settleOver(60_000)
    }
    expect([node.patches - patches, shown(node)?.message]).toEqual([0, 'a line'])
    node.settleOver(60_000)
    expect([node.patches - patches, shown(node)]).toMatchObject([1, { message: 'line 58', lastTransitionTime: first?.lastTransitionTime }])
    write(node, wishing(run, 1))
    node.settle()
    expect([node.patches - patches, shown(node)]).toMatchObject([2, { status: 'True' }])
    expect(shown(node)?.lastTransitionTime).not.toBe(first?.lastTransitionTime)
  })

  test('goes with the file, the package and the Skyhook, and not before anybody looked', () => {
    const node = restingNode(pkg(), wishing(run, 1))
    node.settle()
    node.statuses = unknown('not looked yet')
    node.settle()
    expect(shown(node)).toBeDefined()
    node.statuses = known(new Map())
    node.settle()
    expect(shown(node)).toBeUndefined()

    write(node, wishing(run, 1))
    node.settle()
    node.apply('s', { packages: {} })
    node.settleOver(10_000)
    expect([shown(node), node.status()]).toEqual([undefined, 'complete'])

    const other = restingNode(pkg(), wishing(run, 1))
    other.settle()
    other.views.clear()
    other.settle()
    expect(other.node.status?.conditions?.map(({ type }) => type)).toEqual(['Ready'])
  })
})
