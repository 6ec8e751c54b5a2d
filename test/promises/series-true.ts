/**
 * What the agent of the census serves of the fleet is what the Nodes say: at the end of a run, its series are counted
 * again from the objects, apart from the product's arithmetic. Series of what is gone are gone.
 */
import { nodeStateKey } from '../../src/schemas/annotations.ts'
import type { DeploymentPolicySpec } from '../../src/schemas/deployment-policy.ts'
import { isObject, parseJson } from '../../src/schemas/json.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import { selects } from '../../src/schemas/selectors.ts'
import { entryStates, type Skyhook, stageNames } from '../../src/schemas/skyhook.ts'
import { publishedOf } from '../../src/schemas/published.ts'
import { completionHash } from '../../src/stages/model/package-inputs.ts'
import { parseExposition, type Sample } from '../kit/objects/exposition.ts'
import type { Change } from '../kit/api-server/store.ts'
import type { WorldView } from '../kit/fleet/world-view.ts'
import { isSelected, nodeOf, skyhooksOf } from './cluster.ts'
import type { Invariant } from './promised.ts'

/** A change, or a census that begins, is on the page well within this. */
const publishedMs = 10_000
/** A watch of the census that was interrupted for long is back within this (src/kube/retry.ts: 30 s, and a half). */
const watchingAgainMs = 50_000
const interruptsWatches = (kind: string): boolean => /^(api|watches|network)-/.test(kind)

function mayNotWatchYet({ clock, plan, faultsEndedAtMs }: WorldView): boolean {
  const quietMs = clock.monotonicMs() - (faultsEndedAtMs() ?? Infinity)
  return quietMs < watchingAgainMs && plan.actions.some(({ kind }) => interruptsWatches(kind))
}

const isOurs = ({ name }: Sample): boolean => name.startsWith('skyhook_')

export const seriesTrue: Invariant = {
  name: 'series-true',
  watch(world, violate) {
    let changedAtMs = 0
    let checks = 0
    return {
      on(event, atMs) {
        const isCensus = event.kind === 'host' && 'kind' in event.event && event.event.kind === 'census'
        if (isCensus || event.kind === 'restored' || (event.kind === 'commit' && isCounted(event.change)))
          changedAtMs = atMs
      },
      async end(atMs) {
        if (atMs - changedAtMs < publishedMs) return
        for (const view of world.hosts.values()) {
          const { agents, name } = view
          if (nodeOf(world, view) === undefined) continue // a census that does not see its own Node does not count
          const page = await agents()[0]?.metrics()
          const served = parseExposition(page ?? '').filter(isOurs)
          if (served.length === 0) continue // it does not lead
          checks++
          let problem = firstDifference(served, expectedSeries(world))
          while (problem !== undefined && mayNotWatchYet(world)) {
            await world.clock.advance(5_000)
            const later = parseExposition((await agents()[0]?.metrics()) ?? '')
            problem = firstDifference(later.filter(isOurs), expectedSeries(world))
          }
          if (problem !== undefined) violate(`the agent of ${name} serves ${problem}`)
        }
      },
      checks: () => checks,
    }
  },
}

/** Also of another object of the name; heartbeats are no change. */
function isCounted({ resource: { plural }, version, previous }: Change): boolean {
  if (plural !== 'nodes') return plural === 'skyhooks' || plural === 'deploymentpolicies'
  const [after, before] = [version.object, previous?.object].map((object) => {
    const { uid, labels, annotations } = object?.metadata ?? {}
    return JSON.stringify([uid, labels, annotations])
  })
  return after !== before
}

type Expected = ReadonlyMap<string, number>

/** Labels in the order of their names. */
const keyOf = (name: string, labels: Readonly<Record<string, string>>): string => {
  const pairs = Object.entries(labels).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return `${name}{${pairs.map(([label, value]) => `${label}="${value}"`).join(',')}}`
}

/** Names and labels of all series of these names, and their values. The operator's others depend on more than Nodes. */
const judged = new Set([
  'skyhook_node_target_count',
  'skyhook_package_state_count',
  'skyhook_package_stage_count',
  'skyhook_rollout_matched_nodes',
  'skyhook_rollout_completed',
])

function firstDifference(served: readonly Sample[], expected: Expected): string | undefined {
  const values = new Map<string, number>()
  for (const { name, labels, value } of served) {
    const key = keyOf(name, withoutStrategy(labels))
    if (name === 'skyhook_node_status_count') {
      const total = `${name}{skyhook_name="${labels['skyhook_name']}"}`
      values.set(total, (values.get(total) ?? 0) + value)
      if (labels['status'] === 'complete') values.set(key, value)
    } else if (judged.has(name)) values.set(key, value)
  }
  for (const [key, value] of values)
    if (expected.get(key) !== value) return `${key} ${value}, and the objects say ${expected.get(key) ?? 'nothing'}`
  for (const [key, value] of expected) if (!values.has(key)) return `no ${key}, and the objects say ${value}`
  return undefined
}

/** One that a compartment inherits is written elsewhere. */
const withoutStrategy = (labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(labels).filter(([label]) => label !== 'strategy'))

/** Counted from Nodes, Skyhooks and policies as they are now. */
function expectedSeries(world: WorldView): Expected {
  const expected = new Map<string, number>()
  const nodes = world.server.objects('nodes') as unknown as readonly KubernetesNode[]
  for (const skyhook of skyhooksOf(world)) {
    const skyhook_name = skyhook.metadata.name
    const add = (name: string, labels: object, value: number): void =>
      void expected.set(keyOf(name, { skyhook_name, ...labels }), value)
    const selected = nodes.filter((node) => isSelected(skyhook, node))
    const complete = selected.filter((node) => isComplete(skyhook, node))
    add('skyhook_node_target_count', {}, selected.length)
    add('skyhook_node_status_count', {}, selected.length)
    add('skyhook_node_status_count', { status: 'complete' }, complete.length)
    for (const [policy_name, compartment_name, isMember] of compartmentsOf(world, skyhook, selected)) {
      const labels = { policy_name, compartment_name }
      add('skyhook_rollout_matched_nodes', labels, selected.filter(isMember).length)
      add('skyhook_rollout_completed', labels, complete.filter(isMember).length)
    }
    const entries = selected.flatMap((node) => entriesOf(skyhook, node))
    const versions = new Map<string, { readonly package_name: string; readonly package_version: string }>()
    const see = (package_name: string, package_version: string): void =>
      void versions.set(`${package_name}|${package_version}`, { package_name, package_version })
    for (const [name, { version }] of Object.entries(skyhook.spec.packages ?? {})) see(name, version)
    for (const { name, version } of entries) see(name, version)
    for (const labels of versions.values()) {
      const own = entries.filter(
        ({ name, version }) => name === labels.package_name && version === labels.package_version,
      )
      for (const state of entryStates)
        add('skyhook_package_state_count', { ...labels, state }, own.filter((one) => one.state === state).length)
      for (const stage of stageNames)
        add('skyhook_package_stage_count', { ...labels, stage }, own.filter((one) => one.stage === stage).length)
    }
  }
  return expected
}

function isComplete(skyhook: Skyhook, node: KubernetesNode): boolean {
  const { status, companion } = publishedOf(node, skyhook.metadata.name)
  return status === 'complete' && companion?.applied === completionHash(skyhook)
}

type Entry = { readonly name: string; readonly version: string; readonly stage: string; readonly state: string }

function entriesOf({ metadata }: Skyhook, node: KubernetesNode): readonly Entry[] {
  const state = parseJson(node.metadata.annotations?.[nodeStateKey(metadata.name)] ?? '')
  return isObject(state) ? (Object.values(state) as readonly Entry[]) : []
}

type Compartment = readonly [policy: string, name: string, isMember: (node: KubernetesNode) => boolean]

function compartmentsOf(
  { server }: WorldView,
  skyhook: Skyhook,
  selected: readonly KubernetesNode[],
): readonly Compartment[] {
  const named = skyhook.spec.deploymentPolicy
  if (!named) return [['legacy', '__default__', () => true]]
  const policy = server.object('deploymentpolicies', undefined, named)?.['spec'] as DeploymentPolicySpec | undefined
  if (policy === undefined) return []
  const compartments = (policy.compartments ?? []).toSorted(safestFirst(selected))
  const compartmentOf = ({ metadata }: KubernetesNode): string =>
    compartments.find(({ selector }) => selects(selector, metadata.labels ?? {}))?.name ?? '__default__'
  return [...compartments.map(({ name }) => name), '__default__'].map((name) => [
    named,
    name,
    (node) => compartmentOf(node) === name,
  ])
}

type PolicyCompartment = NonNullable<DeploymentPolicySpec['compartments']>[number]

/** A node that several compartments select is in the safest: by strategy, by what its budget allows, by name. */
function safestFirst(selected: readonly KubernetesNode[]) {
  const rankOf = ({ strategy }: PolicyCompartment): number =>
    strategy?.fixed ? 0 : strategy?.linear ? 1 : strategy?.exponential ? 2 : 3
  const ceilingOf = ({ selector, budget: { count, percent, maxCount } }: PolicyCompartment): number => {
    if (typeof count === 'number') return count
    if (typeof percent !== 'number') return Infinity
    const candidates = selected.filter(({ metadata }) => selects(selector, metadata.labels ?? {})).length
    return percent === 0 ? 0 : Math.min(maxCount ?? Infinity, Math.max(1, Math.floor((percent * candidates) / 100)))
  }
  return (one: PolicyCompartment, other: PolicyCompartment): number =>
    rankOf(one) - rankOf(other) || ceilingOf(one) - ceilingOf(other) || (one.name < other.name ? -1 : 1)
}
