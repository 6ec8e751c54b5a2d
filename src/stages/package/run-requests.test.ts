import { describe, expect, test } from 'vitest'
import { emptyJournal } from '../../schemas/journal.ts'
import type { NodeCondition } from '../../schemas/kubernetes.ts'
import type { StatusReadResult } from '../../schemas/package-status.ts'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'

const day = 24 * 3_600_000
const pkg = (change: Partial<PackageSpec> = {}): PackageSpec => ({ version: '1.0.0', image: 'r/pkg', ...change })
const specWithRunRequests = pkg({ rerunOnRequest: { minInterval: '24h' } })
const statusRequesting = (
  requests: { readonly run: boolean; readonly interrupt: boolean },
  writtenAtMs: number,
  change: object = {},
): StatusReadResult => ({
  state: 'read',
  status: { bootId: 'boot-1', message: 'a line', requests, ...change },
  writtenAtMs,
})
const run = { run: true, interrupt: false }
const interrupt = { run: false, interrupt: true }
const nothing = { run: false, interrupt: false }

/** Complete for an hour, and what its package then writes about itself. */
function completeNode(spec: PackageSpec, status?: StatusReadResult): NodeSimulator {
  const node = new NodeSimulator()
  node.statusFiles.set('s/a', statusRequesting(nothing, 0))
  node.readsStatuses = false
  node.apply('s', { packages: { a: spec } })
  node.settleFor(3_600_000)
  expect(node.status()).toBe('complete')
  node.executedSteps.length = 0
  if (status) write(node, status)
  return node
}
function write(node: NodeSimulator, status: StatusReadResult): void {
  const now: StatusReadResult =
    status.state === 'read' && status.writtenAtMs === 1 ? { ...status, writtenAtMs: node.nowMs } : status
  node.statusFiles.set('s/a', now)
  node.readsStatuses = true
}
const countConfigs = (node: NodeSimulator): number =>
  node.executedSteps.filter((line) => line === 'a config run.sh').length

describe('requested runs', () => {
  test.each<[string, PackageSpec, StatusReadResult | undefined, number]>([
    ['runs config once', specWithRunRequests, statusRequesting(run, 1), 1],
    ['is ignored where the spec does not allow it', pkg(), statusRequesting(run, 1), 0],
    [
      'follows updates, but not an interrupt that no run would execute',
      specWithRunRequests,
      statusRequesting(interrupt, 1),
      0,
    ],
    [
      'follows a required interrupt as well',
      { ...specWithRunRequests, interrupt: { type: 'reboot', when: 'required' } },
      statusRequesting(interrupt, 1),
      1,
    ],
    [
      'does not follow a status of an earlier boot',
      specWithRunRequests,
      statusRequesting(run, 1, { bootId: 'boot-0' }),
      0,
    ],
    ['does not follow a status from before the last run', specWithRunRequests, statusRequesting(run, 999_999), 0],
    ['does not follow an unreadable file', specWithRunRequests, { state: 'unusable', why: '' }, 0],
    ['does not follow a status without requests', specWithRunRequests, statusRequesting(nothing, 1), 0],
  ])('a requested run %s', (_, spec, status, times) => {
    const node = completeNode(spec, status)
    node.settleFor(10_000)
    expect([countConfigs(node), node.status(), node.slots]).toEqual([times, 'complete', []])
  })

  test('a requested run interrupts only if required, on a node that was in service until then', () => {
    const node = completeNode(
      { ...specWithRunRequests, interrupt: { type: 'reboot', when: 'required' } },
      statusRequesting(interrupt, 1),
    )
    node.settleFor(10_000)
    expect([countConfigs(node), node.executedInterrupts, node.status()]).toEqual([1, ['reboot'], 'complete'])
  })

  test('a requested run interrupts a reinstalled host that needed no reboot since', () => {
    const node = new NodeSimulator()
    const spec = {
      packages: { a: { ...specWithRunRequests, interrupt: { type: 'reboot', when: 'required' } as const } },
    }
    const life = (isRequired: boolean): void => {
      node.statusFiles.set('s/a', statusRequesting(isRequired ? interrupt : nothing, 0, { bootId: node.bootId }))
      node.journal = emptyJournal('node-uid')
      node.apply('s', spec)
      node.settleFor(20_000)
    }
    life(true)
    life(false)
    expect([node.executedInterrupts, node.status()]).toEqual([['reboot'], 'complete'])
    write(node, statusRequesting(interrupt, 1, { bootId: node.bootId }))
    node.settleFor(20_000)
    expect(node.executedInterrupts).toEqual(['reboot', 'reboot'])
  })

  test('a requested run happens at most as often as the spec allows', () => {
    const node = completeNode(specWithRunRequests)
    for (let hour = 0; hour < 49; hour++) {
      write(node, statusRequesting(run, 1))
      node.settleFor(3_600_000)
    }
    expect(countConfigs(node)).toBe(3)
  })

  test('a requested run starts when its interval has passed, without any other event', () => {
    const node = completeNode(specWithRunRequests, statusRequesting(run, 1))
    node.settleFor(10_000)
    node.nowMs += 1
    write(node, statusRequesting(run, 1))
    node.settleFor(day - 60_000)
    expect(countConfigs(node)).toBe(1)
    node.settleFor(60_000)
    expect(countConfigs(node)).toBe(2)
  })

  test('a requested run waits for a slot like other work, and ends when the request does', () => {
    const node = completeNode(specWithRunRequests)
    node.areSlotsGranted = false
    write(node, statusRequesting(run, 1))
    node.settleFor(2_000)
    expect([countConfigs(node), node.status(), node.reason()]).toEqual([0, 'waiting', 'WaitingForSlot'])
    write(node, statusRequesting(nothing, 1))
    node.settleFor(2_000)
    expect([countConfigs(node), node.status(), node.reason()]).toEqual([0, 'complete', undefined])
  })

  test('a requested run waits while the Skyhook is paused', () => {
    const node = completeNode(specWithRunRequests)
    node.apply('s', { packages: { a: specWithRunRequests } }, { 'skyhook.nvidia.com/pause': 'true' })
    write(node, statusRequesting(run, 1))
    node.settleFor(2_000)
    expect([countConfigs(node), node.status()]).toEqual([0, 'paused'])
  })

  test('a requested run that fails is retried like any config, and keeps its slot', () => {
    const node = completeNode(specWithRunRequests)
    node.exitCodes.set('a config', 1)
    write(node, statusRequesting(run, 1))
    node.settleFor(4_000)
    expect([node.status(), node.reason(), node.slots.length]).toEqual(['erroring', 'StepFailed', 1])
    node.exitCodes.clear()
    node.settleFor(20_000)
    expect([node.status(), node.slots.length]).toEqual(['complete', 0])
  })
})

test('a status file and the last run are compared by the wall clock, which files go by', () => {
  const node = completeNode(specWithRunRequests)
  node.wallOffsetMs = -3 * day
  write(node, statusRequesting(run, node.nowMs - 3 * day))
  node.settleFor(10_000)
  expect(countConfigs(node)).toBe(1)
  write(node, statusRequesting(run, node.nowMs - 3 * day - 60_000)) // of before that run
  node.settleFor(2 * day)
  expect(countConfigs(node)).toBe(1)
})

describe('package conditions', () => {
  const shown = (node: NodeSimulator): NodeCondition | undefined =>
    node.node.status?.conditions?.find(({ type }) => type === 'skyhook.nvidia.com/s/a')

  test.each<[StatusReadResult, Partial<NodeCondition>]>([
    [statusRequesting(run, 1), { status: 'True', reason: 'RunRequested', message: 'a line' }],
    [
      statusRequesting({ run: true, interrupt: true }, 1),
      { status: 'True', reason: 'InterruptRequired', message: 'a line' },
    ],
    [statusRequesting(nothing, 1), { status: 'False', reason: 'NoActionRequired', message: 'a line' }],
    [
      statusRequesting(run, 1, { bootId: 'boot-0' }),
      { status: 'Unknown', reason: 'StaleSinceBoot', message: 'a line' },
    ],
    [
      { state: 'unusable', why: 'the file is empty' },
      { status: 'Unknown', reason: 'StatusInvalid', message: 'the file is empty' },
    ],
  ])('the Node shows the status file %j as a condition', (status, condition) => {
    const node = completeNode(pkg(), status)
    node.settle()
    expect(shown(node)).toMatchObject(condition)
  })

  test('a condition is written immediately when its requests change, and at most once an hour when only its message does', () => {
    const node = completeNode(pkg(), statusRequesting(nothing, 1))
    node.settle()
    const { patches } = node
    const first = shown(node)
    for (let minute = 0; minute < 59; minute++) {
      write(node, statusRequesting(nothing, 1, { message: `line ${minute}` }))
      node.settleFor(60_000)
    }
    expect([node.patches - patches, shown(node)?.message]).toEqual([0, 'a line'])
    node.settleFor(60_000)
    expect([node.patches - patches, shown(node)]).toMatchObject([
      1,
      { message: 'line 58', lastTransitionTime: first?.lastTransitionTime },
    ])
    write(node, statusRequesting(run, 1))
    node.settle()
    expect([node.patches - patches, shown(node)]).toMatchObject([2, { status: 'True' }])
    expect(shown(node)?.lastTransitionTime).not.toBe(first?.lastTransitionTime)
  })

  test('words whose time is in the future, by a clock that was wrong, are written when they change', () => {
    const node = completeNode(pkg())
    node.wallOffsetMs = day
    write(node, statusRequesting(nothing, 1))
    node.settle()
    node.wallOffsetMs = 0
    write(node, statusRequesting(nothing, 1, { message: 'another line' }))
    node.settleFor(1_000)
    expect(shown(node)?.message).toBe('another line')
  })

  test('a condition disappears with the file, the package and the Skyhook, and not before the first look', () => {
    const node = completeNode(pkg(), statusRequesting(run, 1))
    node.settle()
    node.readsStatuses = false
    node.restartAgent()
    node.settle()
    expect(shown(node)).toBeDefined()
    node.readsStatuses = true
    node.statusFiles.clear()
    node.settle()
    expect(shown(node)).toBeUndefined()

    write(node, statusRequesting(run, 1))
    node.settle()
    node.apply('s', { packages: {} })
    node.settleFor(10_000)
    expect([shown(node), node.status()]).toEqual([undefined, 'complete'])

    const other = completeNode(pkg(), statusRequesting(run, 1))
    other.settle()
    other.views.clear()
    other.settle()
    expect(other.node.status?.conditions?.map(({ type }) => type)).toEqual(['Ready'])
  })
})
