import { expect, test } from 'vitest'
import { type FleetScene, pod, type SceneOptions, specOf, startScene } from '../../../../test/kit/fleet/fleet-scene.ts'
import { reasonKey, reasonsKey, statusKey, stepKey } from '../../../schemas/annotations.ts'
import type { Skyhook, SkyhookSpec } from '../../../schemas/skyhook.ts'
import { readNodeDetail } from '../../fleet/fleet-view/node-detail.ts'
import { slimNode } from '../../fleet/fleet-view/project.ts'
import { readFleet } from '../../fleet/fleet-view/collections.ts'
import { valueOr } from '../../fleet/fleet-view/readable.ts'
import { known } from '../../../stages/model/snapshot.ts'
import { type NodePlan, planNode } from './plan-node.ts'
import { planText, terminal } from './plan-text.ts'
import { planGroups } from './skyhook-plan.ts'

/** What an apply of the spec would do on the node; `undefined` deletes nothing: the Skyhook is new. */
async function planOf(scene: FleetScene, nodeName: string, spec: SkyhookSpec, name = 's'): Promise<NodePlan> {
  const { transport, simulation } = scene
  const { clock } = simulation
  const fleet = await readFleet(transport, { namespace: 'skyhook', clock, nodeOf: slimNode })
  const before = fleet.skyhooks.known ? fleet.skyhooks.value.find(({ metadata }) => metadata.name === name) : undefined
  const metadata = before?.metadata ?? { name, uid: 'new', resourceVersion: '' }
  const after: Skyhook = { metadata: { ...metadata, generation: (metadata.generation ?? 0) + 1 }, spec }
  const detail = await readNodeDetail(transport, nodeName)
  const others = valueOr(fleet.skyhooks, []).filter((one) => one !== before)
  const fleets = { before: fleet, after: { ...fleet, skyhooks: known([...others, after]) } }
  const plans = planNode(fleets, [{ name, before, after }], { node: slimNode(scene.node(nodeName)), detail })
  const plan = plans.get(name)
  if (plan === undefined) throw new Error('the node is selected')
  return plan
}

const stepsOf = ({ steps }: NodePlan): readonly string[] =>
  steps.map((step) => {
    switch (step.do) {
      case 'taint':
      case 'drain':
        return step.do
      case 'stage':
        return `${step.package} ${step.version} ${step.stage}`
      case 'interrupt':
        return `${step.type} for ${step.packages.join()}`
    }
  })

const packages = (rest: object = {}): SkyhookSpec =>
  specOf({ packages: { p0a: { version: '1.0.0', image: 'registry.test/p0a', ...rest } } })

async function completed(options: SceneOptions = {}): Promise<FleetScene> {
  const scene = startScene({ nodes: [{ name: 'host1' }], ...options })
  await scene.until(() => scene.annotation('node1', statusKey('s')) === 'complete', 'complete')
  await scene.pass(2_000)
  return scene
}

test('an apply of what is there does nothing', async () => {
  const plan = await planOf(await completed(), 'node1', specOf())
  expect(plan).toMatchObject({ steps: [], isDueAnyway: true, selection: 'stays', obstacle: undefined })
})

test('a new package with a reboot is applied, drains the node and reboots it', async () => {
  const scene = startScene({ nodes: [{ name: 'host1', pods: [pod('shop')] }], skyhooks: {} })
  await scene.pass(8_000)
  const plan = await planOf(scene, 'node1', packages({ interrupt: { type: 'reboot' } }), 'new')
  expect(stepsOf(plan)).toEqual([
    'drain',
    'p0a 1.0.0 apply',
    'p0a 1.0.0 config',
    'reboot for p0a',
    'p0a 1.0.0 post-interrupt',
  ])
  expect(plan.causes).toEqual([
    { package: 'p0a', type: 'reboot', field: 'packages.p0a.interrupt', isConditional: false },
  ])
  const placed = (mayStart: boolean) => planGroups([plan], () => ({ compartment: '', isJoining: false, mayStart }))[0]
  expect(placed(true)).toMatchObject({ nodes: ['node1'], selection: 'joins', isDisruptive: true })
  expect(placed(false)).toMatchObject({ isDisruptive: false })
})

test('a change of configuration runs config alone, and its interrupt only where a pattern matches', async () => {
  const scene = await completed({
    skyhooks: {
      s: packages({ configMap: { 'a.conf': '1', 'b.txt': '1' }, configInterrupts: { '*.conf': { type: 'reboot' } } }),
    },
  })
  const edited = (configMap: object): SkyhookSpec =>
    packages({ configMap, configInterrupts: { '*.conf': { type: 'reboot' } } })
  const calm = await planOf(scene, 'node1', edited({ 'a.conf': '1', 'b.txt': '2' }))
  expect(stepsOf(calm)).toEqual(['p0a 1.0.0 config'])
  const rough = await planOf(scene, 'node1', edited({ 'a.conf': '2', 'b.txt': '1' }))
  expect(stepsOf(rough)).toEqual(['drain', 'p0a 1.0.0 config', 'reboot for p0a', 'p0a 1.0.0 post-interrupt'])
  expect(rough.causes).toMatchObject([{ field: 'packages.p0a.configInterrupts["*.conf"]', key: 'a.conf' }])
})

test('an upgrade, an uninstall and a removed package run the stages of the host', async () => {
  const scene = await completed()
  const upgraded = await planOf(scene, 'node1', packages({ version: '1.1.0' }))
  expect(stepsOf(upgraded)).toEqual(['p0a 1.1.0 upgrade', 'p0a 1.1.0 config'])
  const removed = await planOf(
    scene,
    'node1',
    specOf({ packages: { p0b: { version: '1.0.0', image: 'registry.test/p0b' } } }),
  )
  expect(stepsOf(removed).toSorted()).toEqual(['p0a 1.0.0 uninstall', 'p0b 1.0.0 apply', 'p0b 1.0.0 config'])
})

test('the plan of an edit is what the node then does', async () => {
  const scene = await completed()
  const seen = observedSteps(scene)
  const spec = packages({ version: '1.2.0', interrupt: { type: 'reboot' } })
  const plan = await planOf(scene, 'node1', spec)
  scene.editSkyhook('s', { spec: { packages: spec.packages } })
  await scene.until(() => seen.includes('p0a post-interrupt'), 'the last stage')
  const stages = plan.steps.flatMap((step) => (step.do === 'stage' ? [`${step.package} ${step.stage}`] : []))
  expect(stages).toEqual(seen)
})

test('a paused Skyhook says so instead of a plan', async () => {
  const scene = await completed()
  scene.editSkyhook('s', { metadata: { annotations: { 'skyhook.nvidia.com/pause': 'true' } } })
  await scene.pass(1_000)
  const plan = await planOf(scene, 'node1', packages({ version: '2.0.0' }))
  expect(plan).toMatchObject({ steps: [], obstacle: { reason: 'Paused' } })
})

test('a plan of autoTaintNewNodes names the nodes that it closes, also those long in service', async () => {
  const scene = startScene({ skyhooks: {} })
  await scene.pass(60_000)
  const asking = { ...packages(), runtimeRequired: true, autoTaintNewNodes: true }
  expect(stepsOf(await planOf(scene, 'node1', asking))).toEqual(['taint', 'p0a 1.0.0 apply', 'p0a 1.0.0 config'])
  const other = await completed()
  expect(stepsOf(await planOf(other, 'node1', asking, 'next'))).toEqual(['p0a 1.0.0 apply', 'p0a 1.0.0 config'])
})

/** What the node did for the Skyhook since, without checks. */
function observedSteps(scene: FleetScene): readonly string[] {
  const seen: string[] = []
  scene.host('host1').host.observe((event) => {
    if (event.event === 'stepStarted' && !event.step.mode.endsWith('-check'))
      seen.push(`${event.step.package} ${event.step.mode}`)
  })
  return seen
}

test('a downgrade that uninstalls continues with the lower version, its drain and its interrupt', async () => {
  const lowered = { interrupt: { type: 'reboot' }, uninstall: { enabled: true } } as const
  const scene = await completed({ skyhooks: { s: packages({ version: '1.2.0', ...lowered }) } })
  const plan = await planOf(scene, 'node1', packages({ version: '1.1.0', ...lowered }))
  expect(stepsOf(plan)).toEqual([
    'p0a 1.2.0 uninstall',
    'drain',
    'p0a 1.1.0 apply',
    'p0a 1.1.0 config',
    'reboot for p0a',
    'p0a 1.1.0 post-interrupt',
  ])
})

const keyed = {
  version: '1.0.0',
  image: 'registry.test/p0a',
  configMap: { 'a.conf': '1' },
  configInterrupts: { '*.conf': { type: 'reboot' } },
} as const
const besideKeyed = (x: string, rest: Partial<SkyhookSpec> = {}): SkyhookSpec =>
  specOf({ packages: { p0a: keyed, p0b: { version: '1.0.0', image: 'registry.test/p0b', configMap: { x } } }, ...rest })

test('the plan of a correction touches no package that is complete', async () => {
  const scene = startScene({ nodes: [{ name: 'host1' }], skyhooks: { s: besideKeyed('1') } })
  scene.host('host1').conditions.change({ isFailing: (step) => step.package === 'p0b' && step.mode === 'config' })
  await scene.until(() => scene.annotation('node1', reasonKey('s'))?.includes('StepFailed') === true, 'failing')
  await scene.pass(20_000)
  const plan = await planOf(scene, 'node1', besideKeyed('2'))
  expect(stepsOf(plan)).toEqual(['p0b 1.0.0 config'])
})

test('the plan of a second edit touches no package that is complete, while the node waits for the first', async () => {
  const scene = await completed({ skyhooks: { s: besideKeyed('1') } })
  scene.editSkyhook('s', { spec: besideKeyed('2', { interruptionBudget: { count: 0 } }) })
  await scene.until(() => scene.annotation('node1', reasonKey('s'))?.includes('WaitingForSlot') === true, 'waits')
  const seen = observedSteps(scene)
  const plan = await planOf(scene, 'node1', besideKeyed('3'))
  expect(stepsOf(plan)).toEqual(['p0b 1.0.0 config'])
  scene.editSkyhook('s', { spec: besideKeyed('3') })
  await scene.until(() => scene.annotation('node1', statusKey('s')) === 'complete', 'complete')
  expect(seen).toEqual(['p0b config'])
})

test('the plan of a package that says itself whether it needs its interrupt has both answers', async () => {
  const scene = await completed()
  const plan = await planOf(
    scene,
    'node1',
    packages({ version: '1.1.0', interrupt: { type: 'reboot', when: 'required' } }),
  )
  expect(stepsOf(plan)).toEqual(['p0a 1.1.0 upgrade', 'p0a 1.1.0 config'])
  expect(stepsOf({ ...plan, steps: plan.stepsIfAsked ?? [] })).toEqual([
    'p0a 1.1.0 upgrade',
    'p0a 1.1.0 config',
    'drain',
    'reboot for p0a',
    'p0a 1.1.0 post-interrupt',
  ])
})

test('the plan has both answers also where the edit removes what asks for the interrupt', async () => {
  const asking = { configMap: { a: '1' }, configInterrupts: { '*': { type: 'reboot', when: 'required' } } } as const
  const plan = await planOf(await completed({ skyhooks: { s: packages(asking) } }), 'node1', packages())
  expect(stepsOf(plan)).toEqual(['p0a 1.0.0 config'])
  expect(stepsOf({ ...plan, steps: plan.stepsIfAsked ?? [] })).toContain('reboot for p0a')
})

test('the plan has a step that runs, and what follows it', async () => {
  const scene = startScene({ nodes: [{ name: 'host1' }] })
  scene.host('host1').conditions.change({ stepMs: 60_000 })
  await scene.until(() => scene.annotation('node1', statusKey('s')) === 'in_progress', 'at work')
  await scene.pass(3_000)
  expect(stepsOf(await planOf(scene, 'node1', specOf()))).toEqual(['p0a 1.0.0 apply', 'p0a 1.0.0 config'])
})

test('the plan of a node that is no longer selected has the step that runs, and nothing of the edit', async () => {
  const scene = startScene({ nodes: [{ name: 'host1' }] })
  scene.host('host1').conditions.change({ stepMs: 60_000 })
  await scene.until(() => scene.annotation('node1', statusKey('s')) === 'in_progress', 'at work')
  await scene.pass(3_000)
  scene.editNode('node1', { metadata: { labels: { pool: 'other' } } })
  await scene.pass(3_000)
  const plan = await planOf(scene, 'node1', packages({ version: '1.1.0' }))
  expect(stepsOf(plan)).toEqual(['p0a 1.0.0 apply'])
  expect(plan).toMatchObject({ selection: 'leaves', isDueAnyway: true })
})

test('the plan of a node that is unreachable for a moment is that of the node when it is back', async () => {
  const scene = await completed()
  const unreachable = { key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' }
  scene.editNode('node1', { spec: { taints: [unreachable] } })
  expect(stepsOf(await planOf(scene, 'node1', packages({ version: '1.1.0' })))).toEqual([
    'p0a 1.1.0 upgrade',
    'p0a 1.1.0 config',
  ])
})

test('the plan of a node whose work is suspended does not have a step that has ended', async () => {
  const scene = startScene({ nodes: [{ name: 'host1' }] })
  scene.host('host1').conditions.change({ stepMs: 60_000 })
  await scene.until(() => scene.annotation('node1', statusKey('s')) === 'in_progress', 'at work')
  await scene.pass(3_000)
  scene.editNode('node1', { metadata: { labels: { 'skyhook.nvidia.com/ignore': 'true' } } })
  await scene.pass(3_000)
  expect(stepsOf(await planOf(scene, 'node1', packages()))).toEqual(['p0a 1.0.0 apply'])
  await scene.pass(60_000)
  // as where it has ended before the Node says why nothing starts
  scene.editNode('node1', { metadata: { annotations: { [stepKey('s')]: null } } })
  await scene.pass(3_000)
  expect(stepsOf(await planOf(scene, 'node1', packages()))).toEqual([])
})

test('packages that failed owe their interrupts one after the other where they are tried again so', async () => {
  const interrupt = { type: 'service', services: ['web.service'] } as const
  const failing = (name: string) => [name, { version: '1.0.0', image: `registry.test/${name}`, interrupt }] as const
  const spec = specOf({ packages: Object.fromEntries(['p0a', 'p0b'].map(failing)) })
  const scene = startScene({ nodes: [{ name: 'host1' }], skyhooks: { s: spec } })
  const { conditions } = scene.host('host1')
  conditions.change({ isFailing: ({ mode }) => mode === 'config' })
  const failures = () =>
    JSON.parse(scene.annotation('node1', reasonsKey('s')) ?? '{}') as Record<
      string,
      { attempts: number; nextTry: string }
    >
  await scene.until(() => ['p0a', 'p0b'].every((name) => (failures()[name]?.attempts ?? 0) > 3), 'both failed')
  await scene.pass(3_000)
  const inOrder = Object.entries(failures()).toSorted(([, a], [, b]) => (a.nextTry < b.nextTry ? -1 : 1))
  const seen = observedSteps(scene)
  const steps = stepsOf(await planOf(scene, 'node1', spec))
  expect(steps).toEqual([
    'drain',
    ...inOrder.flatMap(([name]) => [`${name} 1.0.0 config`, `service for ${name}`, `${name} 1.0.0 post-interrupt`]),
  ])
  conditions.change({ isFailing: () => false })
  await scene.until(() => scene.annotation('node1', statusKey('s')) === 'complete', 'complete')
  const stages = steps.flatMap((step) => (/^p0. 1/.test(step) ? [step.replace('1.0.0 ', '')] : []))
  expect(seen).toEqual(stages)
})

test('an interrupt that restarts services and reads kernel settings names both, in text and in steps', async () => {
  const interrupts = [{ type: 'service', services: ['web.service'] }, { type: 'restartAllServices' }] as const
  const spec = specOf({
    packages: Object.fromEntries(
      interrupts.map((interrupt, at) => [
        `p0${'ab'[at]}`,
        { version: '1.0.0', image: `registry.test/p0${'ab'[at]}`, interrupt },
      ]),
    ),
  })
  const scene = startScene({ nodes: [{ name: 'host1' }], skyhooks: {} })
  await scene.pass(8_000)
  const plan = await planOf(scene, 'node1', spec)
  expect(plan.steps).toContainEqual({
    do: 'interrupt',
    type: 'service',
    services: ['web.service'],
    alsoRestartAllServices: true,
    packages: ['p0a', 'p0b'],
  })
  const [group] = planGroups([plan], () => ({ compartment: '', isJoining: false, mayStart: true }))
  const groups = known(group ? [group] : [])
  const text = planText(
    {
      skyhook: 's',
      compartments: [],
      groups,
      pods: new Map(),
      duration: { state: 'none' },
      doubtful: [],
      warnings: [],
    },
    terminal,
  )
  expect(text).toContain(
    'interrupt: service web.service and restartAllServices, ' +
      'because of packages.p0a.interrupt and packages.p0b.interrupt',
  )
})
