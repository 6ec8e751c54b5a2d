/** Plans an edit on a simulated node, makes it, and compares what the plan said with what the node then did. */
import type { Manifest } from '../../../src/cli/reason/dry-run/manifests.ts'
import type { FilePlan } from '../../../src/cli/reason/dry-run/plan-file.ts'
import type { PlanGroup } from '../../../src/cli/reason/plan/skyhook-plan.ts'
import { lastAppliedKey } from '../../../src/cli/reason/plan/three-way-merge.ts'
import {
  cordonKey,
  disableKey,
  journalKey,
  nodeStateKey,
  pauseKey,
  statusKey,
} from '../../../src/schemas/annotations.ts'
import { bootstrapLimit } from '../../../src/lease/rule.ts'
import { skyhookTypeMeta } from '../../../src/schemas/api.ts'
import { isRetrying, isRunning } from '../../../src/schemas/package-record.ts'
import type { JsonObject } from '../../../src/schemas/json.ts'
import type { PackageSpec, Skyhook, SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import { decide } from '../../../src/stages/decide.ts'
import type { NodeState } from '../../kit/node-simulator/node-state.ts'
import { type Deed, deedText, differenceOf, foretoldDeeds } from '../../kit/plan/deeds.ts'
import { failBySpec } from '../failing-specs.ts'
import type { Invariant } from '../invariants/invariant.ts'
import { Scenario } from '../played-scenario.ts'
import type { Asked, Beginning, Case, Edit } from './case.ts'
import { planOf } from './door.ts'
import { NodeHistory } from './history.ts'

const skyhook = 's'
const taint = { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' } as const

export type Verdict =
  | { readonly verdict: 'right'; readonly deeds: number }
  /** The plan is refused, or says that it cannot know. */
  | { readonly verdict: 'not judged'; readonly why: string }
  | { readonly verdict: 'wrong'; readonly why: string; readonly report: string }

export async function judge({ beginning, spec, life, asked, requires }: Case): Promise<Verdict> {
  const history = new NodeHistory()
  const recorder: Invariant = () => history.observer
  const scenario = new Scenario(decide, spec, [recorder])
  const { node } = scenario
  failBySpec(node)
  begin(scenario, beginning, spec)
  const hasAgent = !(typeof beginning === 'object' && 'left' in beginning)
  if (hasAgent) for (const event of life) scenario.play(event)
  // which slots a closed node gets depends on its pods: what ends after the plan would change the answer
  if (isClosed(node)) endProtectedPods(node)
  if (hasAgent) publishState(scenario)

  const before = node.views.get(skyhook)
  if (before === undefined) return { verdict: 'not judged', why: 'no Skyhook' }
  const edited = afterEdit({ metadata: before.metadata, spec: before.spec }, asked)
  const manifest = { kind: 'Skyhook', name: skyhook, object: manifestOf(edited) } as const satisfies Manifest
  const plan = await planOf(node, [manifest], asked === 'deletion')
  if (plan.isRefused)
    return { verdict: 'not judged', why: `refused ${plan.writes[0]?.admission.refusals[0]?.slice(0, 150)}` }
  const foretold = foretoldOf(plan, requires)
  const shown = shownState(node)
  // which of several is tried first, no plan knows
  const packages = Object.values(node.journal.skyhooks[skyhook]?.packages ?? {})
  const failures = packages.filter(isRetrying).length
  // begun before the Skyhook was serial: a package that waits in a stage looks the same on the Node
  const areSideBySide = packages.filter(isRunning).length > 1

  const { after } = plan.writes[0] ?? {}
  const object = after as unknown as Skyhook | undefined
  history.start(node)
  calm(scenario, object?.spec, requires)
  if (asked === 'deletion') node.requestDeletion(skyhook)
  else if (object) node.apply(skyhook, object.spec, withoutApplied(object))
  live(scenario)
  const done = history.deeds(node)

  const isKnownFirst = failures < 2 && !areSideBySide && !history.isOvertaken
  const isSerial = before.spec.serial === true && object?.spec.serial === true && isKnownFirst
  const why = differenceOf(foretold.deeds, done, isSerial ? 'serial' : 'side by side')
  if (why === undefined) return { verdict: 'right', deeds: done.length }
  if ((plan.plans[0]?.doubtful ?? []).length > 0) return { verdict: 'not judged', why: 'doubtful' }
  if (history.isRebootedByOther && object) {
    const [expected, found] = [foretold.deeds, done].map((deeds) => withoutAsked(deeds, object.spec))
    if (expected && found && differenceOf(expected, found, isSerial ? 'serial' : 'side by side') === undefined)
      return { verdict: 'not judged', why: 'a reboot of another Skyhook' }
  }
  const report = [
    `state    ${shown}`,
    `before   ${JSON.stringify(before?.spec)}`,
    `edit     ${JSON.stringify(asked)}`,
    `plan     ${foretold.deeds.map(deedText).join(', ')} ${JSON.stringify(foretold.group?.obstacle ?? '')}`,
    `history  ${done.map(deedText).join(', ')}`,
  ].join('\n')
  return { verdict: 'wrong', why, report }
}

/** Without interrupts that packages asked for at run time, and without drains, which come with them. */
const withoutAsked = (deeds: readonly Deed[], { packages = {} }: SkyhookSpec): readonly Deed[] =>
  deeds.filter(
    (one) =>
      one.deed !== 'drain' &&
      !(one.deed === 'interrupt' && one.packages.every((name) => packages[name]?.interrupt?.when === 'required')),
  )

/** What the Node says of the Skyhook when the plan is made. */
const shownState = (node: NodeState): string =>
  [nodeStateKey, journalKey, statusKey, cordonKey]
    .flatMap((keyOf) => node.node.metadata.annotations?.[keyOf(skyhook)] ?? [])
    .join(' ')

function foretoldOf(plan: FilePlan, requires: boolean) {
  const found = plan.plans.find((one) => one.skyhook === skyhook)
  const groups: readonly PlanGroup[] = found?.groups.known ? found.groups.value : []
  const [group] = groups
  return {
    group,
    deeds: group?.mayStart ? foretoldDeeds(requires ? (group.stepsIfAsked ?? group.steps) : group.steps) : [],
  }
}

function begin({ node }: Scenario, beginning: Beginning, { packages = {} }: SkyhookSpec): void {
  if (beginning === 'empty') return
  if (beginning === 'joining') {
    node.node = { ...node.node, spec: { taints: [taint] } }
    return
  }
  const words = 'left' in beginning ? beginning.left : beginning.adopted
  const entries = Object.entries(words).map(([key, { stage, state }]) => {
    const [name, version] = key.split('|')
    return [key, { name, version, image: 'r/pkg', stage, state }]
  })
  node.hostFolders = new Set([skyhook])
  node.edit((annotations) => {
    annotations[nodeStateKey(skyhook)] = JSON.stringify(Object.fromEntries(entries))
  })
  if (!('left' in beginning)) return
  // as the operator leaves them in its ConfigMaps
  const configs = Object.entries(packages).flatMap(([name, { configMap = {} }]) =>
    Object.keys(configMap).length > 0 ? [[name, configMap] as const] : [],
  )
  node.rolledOutConfigs = new Map([[skyhook, Object.fromEntries(configs)]])
}

/** The agent sees what has happened, and the Node shows it: what is under way does not end meanwhile. */
function publishState(scenario: Scenario): void {
  const { node } = scenario
  for (const endMs = node.nowMs + 3_000; node.nowMs < endMs; node.nowMs += 500) scenario.settle()
}

function calm({ node }: Scenario, spec: SkyhookSpec | undefined, requires: boolean): void {
  node.exitCodes.clear()
  node.failingServices.clear()
  node.exitCodeOf = () => undefined
  node.refusingPods.clear()
  endProtectedPods(node)
  const limit = spec?.interruptionBudget?.count ?? 'unlimited'
  node.areSlotsGranted = limit !== 0
  node.areJoiningSlotsGranted = bootstrapLimit(spec?.bootstrap?.count, limit, { matched: 1 }) !== 0
  node.requiringPackages.clear()
  if (requires) for (const name of ['pa', 'pb', 'pc']) node.requiringPackages.add(name)
}

function endProtectedPods(node: NodeState): void {
  node.pods = node.pods.filter(({ metadata }) => metadata.labels?.['workload'] !== 'never')
}

const isClosed = ({ node }: NodeState): boolean => node.spec?.taints?.some(({ key }) => key === taint.key) === true

const restMs = 900_000

function live(scenario: Scenario): void {
  const { node } = scenario
  const isComplete = (): boolean =>
    [...node.views.keys()].every((name) => node.annotation(`status_${name}`) === 'complete') && node.slots.length === 0
  scenario.liveUntil(node.nowMs + restMs, (next) => isComplete() && next > node.nowMs + 10_000)
}

function withoutApplied({ metadata }: Skyhook): Readonly<Record<string, string>> {
  const { [lastAppliedKey]: _applied, ...annotations } = metadata.annotations ?? {}
  return annotations
}

const manifestOf = ({ metadata, spec }: Skyhook): JsonObject => ({
  ...skyhookTypeMeta,
  metadata: { name: metadata.name, annotations: metadata.annotations ?? {} },
  spec: spec as unknown as JsonObject,
})

function afterEdit(before: Skyhook, asked: Asked): Skyhook {
  if (asked === 'nothing' || asked === 'deletion') return before
  if ('replaced' in asked) return { ...before, spec: asked.replaced }
  return asked.reduce(withEdit, before)
}

function withEdit(before: Skyhook, edit: Edit): Skyhook {
  const { metadata, spec } = before
  const { packages = {} } = spec
  switch (edit.edit) {
    case 'package': {
      const found = packages[edit.of] ?? { version: '1.0.0', image: 'r/pkg' }
      return {
        ...before,
        spec: { ...spec, packages: { ...packages, [edit.of]: defined({ ...found, ...edit.change }) } },
      }
    }
    case 'removed': {
      const { [edit.of]: _removed, ...left } = packages
      return { ...before, spec: { ...spec, packages: left } }
    }
    case 'spec':
      return { ...before, spec: { ...spec, ...edit.change } }
    case 'annotation': {
      const key = edit.key === 'pause' ? pauseKey : disableKey
      return { ...before, metadata: { ...metadata, annotations: { ...metadata.annotations, [key]: String(edit.on) } } }
    }
  }
}

const defined = (spec: PackageSpec): PackageSpec =>
  Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined)) as PackageSpec
