import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type FilePlan, planFile } from '../../../src/cli/reason/dry-run/plan-file.ts'
import { lastAppliedKey } from '../../../src/cli/reason/plan/three-way-merge.ts'
import { nodeStateKey, pauseKey, statusKey } from '../../../src/schemas/annotations.ts'
import { skyhookTypeMeta } from '../../../src/schemas/api.ts'
import { isEqual, type JsonObject } from '../../../src/schemas/json.ts'
import type { Skyhook } from '../../../src/schemas/skyhook.ts'
import { runsOf, seedOf } from '../../kit/effort.ts'
import { type FleetScene, specOf, startScene } from '../../kit/fleet/fleet-scene.ts'
import { unsettledReason } from '../../kit/fleet/settled.ts'
import { type Deed, deedText, differenceOf, foretoldDeeds } from '../../kit/plan/deeds.ts'
import { type FleetCase, fleetCase } from './fleet-case.ts'
import { type FleetHistory, followFleet } from './fleet-history.ts'
import { isUpToDate } from './up-to-date.ts'

/**
 * In a fleet of whole agents, what a plan foretells of each node is what its host then does, on no other node, and
 * never on more at once than it said.
 */
const seed = seedOf(20_260_602)
const runs = runsOf(20, 200)
const cases = fc.sample(fleetCase, { numRuns: runs, seed })

/** Who is first in a serial Skyhook the search of single nodes judges. */
const order = 'side by side'

test.each(cases.map((one, at) => [at, one] as const))(
  'the nodes of fleet %i do what the plan foretold',
  async (at, one) => {
    const why = await judge(one)
    const file = 'test/fleet/foretold/plans.test.ts'
    const again = `SEARCH_SEED=${seed} SEARCH_RUNS=${at + 1} vitest run --project search ${file} -t 'fleet ${at} '`
    expect(why === undefined ? '' : `seed ${seed}, case ${at}: ${why}\ncase ${JSON.stringify(one)}\n${again}`).toBe('')
  },
)

async function judge(one: FleetCase): Promise<string | undefined> {
  const nodes = Array.from({ length: one.nodes }, (_, at) => ({ name: `host${at + 1}` }))
  const scene = startScene({ nodes, skyhooks: one.state === 'new' ? {} : { s: one.spec } })
  const history = followFleet(scene, 's')
  const { clock, hosts, server } = scene.simulation
  await reach(scene, one)
  markApplied(scene, one)
  const object = { ...skyhookTypeMeta, metadata: { name: 's' }, spec: merged(specNow(scene, one), one.edit) }
  const plan = await planUpToDate(scene, history, object)
  const [found] = plan.plans
  if (plan.isRefused || found === undefined || !found.groups.known) return `no plan: ${JSON.stringify(plan.writes)}`
  const plannedAtMs = clock.monotonicMs()
  const states = statesOf(scene)
  const outBefore = [...hosts.values()].filter(({ truth }) => truth.isOut()).length
  if (one.state === 'new') scene.simulation.createSkyhook({ name: 's', spec: object.spec })
  else scene.editSkyhook('s', { spec: one.edit })
  await rest(scene)

  const { groups, compartments } = found
  for (const host of hosts.values()) {
    const group = groups.value.find(({ nodes: members }) => members.includes(host.nodeName()))
    const foretold = group?.mayStart ? hostDeeds(foretoldDeeds(group.steps)) : []
    const isStopped = (deed: Deed): boolean => isReplaced(object.spec, deed) && !includes(foretold, deed)
    const done = history.deeds(host.name, plannedAtMs, isStopped)
    const why = differenceOf(foretold, done, order)
    if (why !== undefined)
      return [
        `${host.nodeName()}: ${why}`,
        `states ${states.join(' ')}`,
        `plan ${foretold.map(deedText).join(', ')} ${group?.obstacle?.reason ?? ''}`,
        `history ${done.map(deedText).join(', ')}`,
      ].join('\n')
  }
  const limit = compartments[0]?.limit
  const most = history.mostOut(plannedAtMs)
  if (typeof limit === 'number' && most > Math.max(limit, outBefore)) return `${most} out at once, foretold ${limit}`
  return server.isAway() ? 'the API server is away' : undefined
}

/**
 * What a node has done and not published no plan knows (docs/usage/plan.md), so it is made at a moment when the Nodes
 * show everything.
 */
async function planUpToDate(scene: FleetScene, history: FleetHistory, object: JsonObject): Promise<FilePlan> {
  const { clock, hosts } = scene.simulation
  const areUpToDate = (): boolean =>
    [...hosts.values()].every((host) => isUpToDate(scene, host, history.running(host.name), 's'))
  for (;;) {
    await scene.until(areUpToDate, 'Nodes show what their hosts do')
    const shown = statesOf(scene)
    const plan = await planFile(
      { manifests: [{ kind: 'Skyhook', name: 's', object }], others: [] },
      {
        transport: scene.transport,
        namespace: 'skyhook',
        clock,
        signal: new AbortController().signal,
        isDelete: false,
        checkEvictions: false,
      },
    )
    // requests take some ms, in which a step may have ended
    if (areUpToDate() && isEqual(statesOf(scene), shown)) return plan
  }
}

/** What the Nodes say of their packages. */
const statesOf = (scene: FleetScene): readonly string[] =>
  [...scene.simulation.hosts.values()].map((host) => scene.annotation(host.nodeName(), nodeStateKey('s')) ?? '{}')

/** How a step ends its host decides when it starts: one that runs when the plan is made succeeds. */
const longestStepMs = 2_000

async function reach(scene: FleetScene, { state, atMs }: FleetCase): Promise<void> {
  const isComplete = (): boolean => unsettledReason(scene.simulation) === undefined
  if (state === 'new') return await scene.pass(8_000)
  if (state === 'failing') {
    const ends = [...scene.simulation.hosts.values()].map(({ conditions }) =>
      conditions.change({ isFailing: (step) => step.package === 'p0b' && step.mode === 'config' }),
    )
    await scene.pass(15_000 + atMs - longestStepMs)
    for (const end of ends) end()
    return await scene.pass(longestStepMs)
  }
  if (state === 'under way') {
    await scene.until(() => scene.simulation.server.object('skyhooks', undefined, 's') !== undefined, 'there')
    return await scene.pass(1_000 + atMs)
  }
  await scene.until(() => scene.annotation('node1', statusKey('s')) === 'complete' && isComplete(), 'complete')
  await scene.pass(2_000)
  if (state === 'paused') scene.editSkyhook('s', { metadata: { annotations: { [pauseKey]: 'true' } } })
  if (state === 'waiting')
    scene.editSkyhook('s', { spec: { interruptionBudget: { count: 0 }, packages: { p0b: { configMap: { w: '1' } } } } })
  await scene.pass(4_000)
}

/** As kubectl does, so that what the file no longer has is removed. */
function markApplied(scene: FleetScene, one: FleetCase): void {
  if (one.state === 'new') return
  const applied = JSON.stringify({ ...skyhookTypeMeta, metadata: { name: 's' }, spec: specNow(scene, one) })
  scene.editSkyhook('s', { metadata: { annotations: { [lastAppliedKey]: applied } } })
}

/** Until nothing is left to do, or nothing happens for a while. */
async function rest(scene: FleetScene): Promise<void> {
  for (let quiet = 0, passed = 0; quiet < 100 && passed < 4_000; passed++) {
    await scene.pass(100)
    const isOver = unsettledReason(scene.simulation) === undefined
    const isAtWork = [...scene.simulation.hosts.values()].some(({ truth }) => truth.isOut())
    quiet = isAtWork ? 0 : quiet + (isOver ? 5 : 0.5)
  }
}

function specNow(scene: FleetScene, { state, spec }: FleetCase): object {
  const found = scene.simulation.server.object('skyhooks', undefined, 's') as { readonly spec: object } | undefined
  return state === 'new' || found === undefined ? specOf(spec) : found.spec
}

/** RFC 7386. */
function merged(target: object, patch: object): Skyhook['spec'] & JsonObject {
  const result: Record<string, unknown> = { ...target }
  for (const [key, value] of Object.entries(patch) as [string, unknown][]) {
    const before = result[key]
    const isDeep = typeof value === 'object' && value !== null && !Array.isArray(value)
    if (value === null) delete result[key]
    else result[key] = isDeep ? merged((before as object | undefined) ?? {}, value) : value
  }
  return result as Skyhook['spec'] & JsonObject
}

/**
 * A node stops the step of such a stage once the images of its successor are there. Whether it ends before that no plan
 * knows (docs/usage/plan.md).
 */
const isReplaced = ({ packages = {} }: Skyhook['spec'], deed: Deed): boolean =>
  deed.deed === 'stage' && packages[deed.package]?.version !== deed.version

const includes = (deeds: readonly Deed[], one: Deed): boolean => deeds.some((deed) => isEqual(deed, one))

/** Of these packages only p0a has steps of its installation; which package an interrupt is for a host does not know. */
const hostDeeds = (deeds: readonly Deed[]): readonly Deed[] =>
  deeds.flatMap((deed): readonly Deed[] => {
    if (deed.deed === 'interrupt') return [{ ...deed, packages: [] }]
    const isInstall = deed.deed === 'stage' && (deed.stage === 'apply' || deed.stage === 'upgrade')
    return isInstall && deed.package !== 'p0a' ? [] : [deed]
  })
