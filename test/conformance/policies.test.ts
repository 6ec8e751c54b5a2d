/** Rows C21 to C25, C30 and C35: budgets and DeploymentPolicies, on six nodes. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { type CompartmentStatus, conditionOf } from '../../src/census/model/skyhook-status.ts'
import { ApiError } from '../../src/kube/errors.ts'
import type { Slot } from '../../src/lease/slot.ts'
import { policiesPath, skyhookTypeMeta } from '../../src/schemas/api.ts'
import type { CompartmentSpec, DeploymentPolicySpec } from '../../src/schemas/deployment-policy.ts'
import type { SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { type NodeName, uniqueName } from '../kit/cluster/cluster.ts'
import { ignoreNotFound } from '../kit/cluster/kube.ts'
import type { View } from '../kit/cluster/moments.ts'
import { manifest, releaseFileOf } from '../kit/cluster/skyhooks.ts'
import { overBudget, slotsOf } from '../kit/cluster/slots.ts'
import { commandLine } from '../kit/tool/command-line.ts'
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import { awaitReady, expectComplete, nodeOf, statusOf, useConformance } from './conformance.ts'
import { row } from './rows.ts'

const cluster = useConformance({ name: 'six', nodes: 6, env: {} })
const nodes = ['node-1', 'node-2', 'node-3', 'node-4', 'node-5', 'node-6'] as const satisfies readonly NodeName[]
const stages = { 'test-pkg|6.2.0': 'config' }
/** Six hosts share a machine with everything else. */
const rolloutMs = 120_000

const packages = (): NonNullable<SkyhookSpec['packages']> => ({ 'test-pkg': cluster.pack('6.2.0') })
/** Its apply ends once a node has the release file. */
const waitingPackages = (name: string): NonNullable<SkyhookSpec['packages']> => ({
  'test-pkg': cluster.pack('6.2.0', { env: [{ name: 'APPLY_WAIT', value: releaseFileOf(name) }] }),
})
const release = async (name: string, on: readonly string[]): Promise<void> => {
  for (const node of on) await cluster.host(node as NodeName).write(releaseFileOf(name), '')
}

/** Creates a DeploymentPolicy and removes it after the test, when its Skyhooks are gone. */
async function createPolicy(spec: DeploymentPolicySpec): Promise<string> {
  const name = uniqueName('policy')
  const kind = 'DeploymentPolicy'
  onTestFinished(async () => void (await ignoreNotFound(cluster.api, 'DELETE', `${policiesPath}/${name}`)))
  await cluster.api.json('POST', policiesPath, { body: { ...skyhookTypeMeta, kind, metadata: { name }, spec } })
  return name
}

const ofNodes = (
  name: string,
  members: readonly NodeName[],
  rest: Pick<CompartmentSpec, 'budget' | 'strategy'>,
): CompartmentSpec => ({
  name,
  selector: { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [...members] }] },
  ...rest,
})

const compartmentOf = (view: View, skyhook: string, name = '__default__'): CompartmentStatus | undefined =>
  statusOf(view, skyhook).compartmentStatuses?.[name]
const currentBatch = (view: View, skyhook: string, name?: string): number =>
  compartmentOf(view, skyhook, name)?.batchState?.currentBatch ?? 0
const slotsIn = (view: View, skyhook: string, compartment: string): Slot[] =>
  slotsOf(view, skyhook).filter(({ compartmentName }) => compartmentName === compartment)
const isAtWork = ({ phase }: Slot): boolean => phase !== 'finished'

/** How many nodes each batch of a compartment had, in order. */
async function batchSizes(skyhook: string, compartment = '__default__'): Promise<number[]> {
  const batches = new Map<number, Set<string>>()
  for (const moment of await cluster.history.moments())
    for (const { epoch = 0, holder } of slotsIn(moment, skyhook, compartment))
      batches.set(epoch, (batches.get(epoch) ?? new Set()).add(holder))
  return [...batches].toSorted(([a], [b]) => a - b).map(([, holders]) => holders.size)
}

test(row('C21'), async () => {
  const name = uniqueName('budget')
  const spec = { interruptionBudget: { count: 3 }, priority: 100, packages: waitingPackages(name) }
  await cluster.apply(manifest(name, spec), ...nodes)
  await cluster.history.eventually('three nodes are at work', (view) => slotsOf(view, name).length === 3)
  await cluster.history.eventually('the others wait', (view) => {
    const waiting = nodes.filter((node) => {
      const { status, reason } = nodeOf(view, node, name)
      const isSaid = reason?.reason === 'WaitingForSlot' && reason.message === 'the budget of 3 nodes is used up'
      return status === 'waiting' && isSaid
    })
    return waiting.length === 3
  })
  // the oracle is not blind: under a budget of 2 this would be a fault
  await expect(cluster.history.never('more slots', overBudget(name, 2))).rejects.toThrow(/slots held by node-\d and /)
  await cluster.history.eventually('the status has the one compartment', (view) => {
    const { matched, ceiling, inProgress } = compartmentOf(view, name) ?? {}
    return matched === 6 && ceiling === 3 && inProgress === 3
  })
  await release(name, nodes)
  await expectComplete(cluster, name, stages, nodes, rolloutMs)
  expect(compartmentOf(cluster.history.now, name)).toEqual({
    matched: 6,
    ceiling: 3,
    inProgress: 0,
    completed: 6,
    progressPercent: 100,
  })
  await cluster.history.never('more slots than the budget', overBudget(name, 3))
  await cluster.history.never('more nodes at work than the budget', (moment) => {
    const busy = nodes.filter((node) => ['in_progress', 'erroring'].includes(nodeOf(moment, node, name).status ?? ''))
    return busy.length > 3 && busy.join()
  })
})

test(row('C22'), async () => {
  const name = uniqueName('linear')
  const linear = { initialBatch: 1, delta: 1, batchThreshold: 100, failureThreshold: 2, safetyLimit: 50 }
  const strategy = { linear }
  const deploymentPolicy = await createPolicy({
    default: { budget: { count: 1 }, strategy },
    compartments: [ofNodes('production', nodes, { budget: { count: 4 }, strategy })],
  })
  await cluster.apply(manifest(name, { deploymentPolicy, packages: waitingPackages(name) }), ...nodes)
  let completed = 0
  for (const size of [1, 2, 3]) {
    const atWork = (view: View): Slot[] => slotsIn(view, name, 'production').filter(isAtWork)
    await cluster.history.eventually(
      `batch ${size} is at work with ${size} nodes, and the status says so`,
      (view) => atWork(view).length === size && currentBatch(view, name, 'production') === size,
      rolloutMs,
    )
    expect(compartmentOf(cluster.history.now, name, 'production')).toMatchObject({ matched: 6, ceiling: 4 })
    await release(
      name,
      atWork(cluster.history.now).map(({ holder }) => holder),
    )
    completed += size
    await cluster.history.eventually(
      `${completed} nodes are completed`,
      (view) => (compartmentOf(view, name, 'production')?.completed ?? 0) >= completed,
      rolloutMs,
    )
  }
  await expectComplete(cluster, name, stages, nodes, rolloutMs)
  await cluster.history.eventually(
    'the last batch is over',
    (view) => slotsOf(view, name).length === 0 && currentBatch(view, name, 'production') === 4,
  )
  expect(compartmentOf(cluster.history.now, name, 'production')).toEqual({
    matched: 6,
    ceiling: 4,
    inProgress: 0,
    completed: 6,
    progressPercent: 100,
    batchState: { currentBatch: 4, completedNodes: 6, lastBatchSize: 3 },
  })
  expect(await batchSizes(name, 'production')).toEqual([1, 2, 3])
})

test(row('C23'), async () => {
  const name = uniqueName('tiers')
  const exponential = { initialBatch: 1, growthFactor: 2 }
  const ceilings = { critical: 2, standard: 1, test: 2 }
  const deploymentPolicy = await createPolicy({
    default: { budget: { count: 1 }, strategy: { exponential } },
    compartments: [
      ofNodes('critical', ['node-1', 'node-2'], { budget: { count: 2 }, strategy: { exponential } }),
      ofNodes('standard', ['node-3', 'node-4'], { budget: { percent: 66 }, strategy: { exponential } }),
      ofNodes('test', ['node-5', 'node-6'], {
        budget: { percent: 100 },
        strategy: { exponential: { initialBatch: 2, batchThreshold: 90 } },
      }),
    ],
  })
  await cluster.apply(manifest(name, { deploymentPolicy, packages: waitingPackages(name) }), ...nodes)
  await cluster.history.eventually(
    'the first batch of each compartment is at work',
    (view) =>
      slotsIn(view, name, 'critical').length === 1 &&
      slotsIn(view, name, 'standard').length === 1 &&
      slotsIn(view, name, 'test').length === 2,
    rolloutMs,
  )
  await cluster.history.eventually('the status has each compartment', (view) =>
    Object.entries(ceilings).every(
      ([compartment, ceiling]) => compartmentOf(view, name, compartment)?.ceiling === ceiling,
    ),
  )
  const matched = Object.keys(ceilings).map((each) => compartmentOf(cluster.history.now, name, each)?.matched)
  expect(matched).toEqual([2, 2, 2])
  await release(name, nodes)
  await expectComplete(cluster, name, stages, nodes, rolloutMs)
  for (const [compartment, ceiling] of Object.entries(ceilings)) {
    expect(compartmentOf(cluster.history.now, name, compartment)).toMatchObject({ progressPercent: 100, inProgress: 0 })
    await cluster.history.never(`more nodes of ${compartment} at work than its ceiling`, (moment) => {
      const held = slotsIn(moment, name, compartment)
      return held.length > ceiling && held.map(({ holder }) => holder).join()
    })
  }
  const sizes = await Promise.all(Object.keys(ceilings).map(async (each) => await batchSizes(name, each)))
  expect(sizes).toEqual([[1, 1], [1, 1], [2]])
})

test(row('C25'), async () => {
  const deploymentPolicy = await createPolicy({
    default: { budget: { count: 2 }, strategy: { exponential: { initialBatch: 1, growthFactor: 2 } } },
    resetBatchStateOnCompletion: true,
  })
  const isOver = (view: View, name: string): boolean =>
    slotsOf(view, name).length === 0 && compartmentOf(view, name)?.progressPercent === 100

  const first = uniqueName('reset')
  await cluster.apply(manifest(first, { deploymentPolicy, packages: packages() }), ...nodes)
  await expectComplete(cluster, first, stages, nodes, rolloutMs)
  await cluster.history.eventually(
    'the batches start over',
    (view) => isOver(view, first) && currentBatch(view, first) === 1,
  )
  expect((await batchSizes(first)).slice(0, 2)).toEqual([1, 2])
  await cluster.remove(first)

  const second = uniqueName('kept')
  const deploymentPolicyOptions = { resetBatchStateOnCompletion: false }
  await cluster.apply(manifest(second, { deploymentPolicy, deploymentPolicyOptions, packages: packages() }), ...nodes)
  await expectComplete(cluster, second, stages, nodes, rolloutMs)
  await cluster.history.eventually('the batches are over', (view) => isOver(view, second))
  const batches = (await batchSizes(second)).length
  expect(batches).toBeGreaterThan(1)
  await cluster.history.eventually('their number stays', (view) => currentBatch(view, second) === batches + 1)
})

test(row('C30'), async () => {
  const name = uniqueName('counted')
  const deploymentPolicy = await createPolicy({
    default: { budget: { count: 1 }, strategy: { exponential: { initialBatch: 1, growthFactor: 2 } } },
    resetBatchStateOnCompletion: true,
  })
  const deploymentPolicyOptions = { resetBatchStateOnCompletion: false }
  const two: readonly NodeName[] = ['node-1', 'node-2']
  await cluster.apply(manifest(name, { deploymentPolicy, deploymentPolicyOptions, packages: packages() }), ...two)
  await expectComplete(cluster, name, stages, two, rolloutMs)
  await cluster.history.eventually(
    'both batches are over',
    (view) => slotsOf(view, name).length === 0 && currentBatch(view, name) === 3,
  )
  const tool = commandLine({ client: cluster.api, clock: systemClock })
  expect(await tool.run(`deployment-policy reset ${name} --confirm -n skyhook`)).toMatchObject({ code: 0 })
  await cluster.history.eventually('the batches start over', (view) => currentBatch(view, name) === 1)
  expect(compartmentOf(cluster.history.now, name)).toMatchObject({ matched: 2, progressPercent: 100 })
  await awaitReady(cluster, name)
})

test(row('C35'), async () => {
  const budget = { count: 1 }
  const strategy = { fixed: {} }
  const group = ofNodes('group', ['node-1'], { budget })
  const refusal = async (request: Promise<unknown>): Promise<string> =>
    await request.then(
      () => 'accepted',
      (error: unknown) => (error instanceof ApiError ? `${error.status} ${error.message}` : String(error)),
    )
  const twice = createPolicy({ default: { budget, strategy }, compartments: [group, group] })
  expect(await refusal(twice)).toMatch(/^422 .*spec\.compartments\[1\]: Duplicate value/s)

  const name = uniqueName('absent')
  const deploymentPolicy = uniqueName('no-policy')
  await cluster.apply(manifest(name, { deploymentPolicy, packages: packages() }), 'node-1')
  await cluster.history.eventually('the Skyhook and the node say that there is no policy', (view) => {
    const missing = conditionOf(statusOf(view, name), 'skyhook.nvidia.com/DeploymentPolicyNotFound')
    return missing?.status === 'True' && nodeOf(view, 'node-1', name).reason?.reason === 'DeploymentPolicyNotFound'
  })
  expect(await cluster.lines('node-1', name)).toEqual([])
  await cluster.history.never('a wait for a slot without a policy', (moment) => {
    const { reason } = nodeOf(moment, 'node-1', name)
    return reason?.reason === 'WaitingForSlot' && reason.message
  })

  const used = await createPolicy({ default: { budget, strategy } })
  await cluster.edit(name, { deploymentPolicy: used })
  await expectComplete(cluster, name, stages, ['node-1'], rolloutMs)
  const isMissing = conditionOf(statusOf(cluster.history.now, name), 'skyhook.nvidia.com/DeploymentPolicyNotFound')
  expect(isMissing).toBeUndefined()
  const deletion = (): Promise<unknown> => cluster.api.json('DELETE', `${policiesPath}/${used}`)
  expect(await refusal(deletion())).toMatch(new RegExp(`^4\\d\\d .*is in use by Skyhook ${name}`, 's'))
  await cluster.remove(name)
  // the admission policy sees the deletion a moment later
  await vi.waitFor(async () => expect(await refusal(deletion())).toBe('accepted'), { timeout: 10_000, interval: 100 })
})
