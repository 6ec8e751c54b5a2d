/** Plans a whole file: all its objects change together. Skyhooks that use a policy of the file are planned, too. */
import type { KubeTransport } from '../../../kube/transport.ts'
import type { Clock } from '../../../schemas/clock.ts'
import type { DeploymentPolicy } from '../../../schemas/deployment-policy.ts'
import { type JsonObject, messageOf, isObject } from '../../../schemas/json.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import type { Skyhook } from '../../../schemas/skyhook.ts'
import { known, type Known, unknown } from '../../../stages/model/snapshot.ts'
import type { FleetView } from '../../fleet/fleet-view/fleet-view.ts'
import { readNodeEvents, readPodsOf } from '../../fleet/fleet-view/node-detail.ts'
import { slimNode, slimSkyhook } from '../../fleet/fleet-view/project.ts'
import { readFleet } from '../../fleet/fleet-view/collections.ts'
import { valueOr, UnreadError } from '../../fleet/fleet-view/readable.ts'
import { defaultSettings } from '../../fleet/fleet-view/settings.ts'
import { refusedError } from '../../base/framework/command-error.ts'
import { type DrainedPods, drainedPods, podsToEvict, type EvictionAnswer } from '../plan/drained-pods.ts'
import type { Edit, Fleets, NodePlan } from '../plan/plan-node.ts'
import { nodePlanner } from '../plan/plan-nodes.ts'
import { joiningNodes, type PlanGroup, type SkyhookPlan, skyhookPlan, wouldDisrupt } from '../plan/skyhook-plan.ts'
import { type Manifests, collections } from './manifests.ts'
import { rehearseApply, rehearseDelete, type RehearsedWrite, withDefaultsOf } from './rehearsed-write.ts'
import { ApiError } from '../../../kube/errors.ts'
import { evict } from '../../../kube/evict.ts'
import type { Pod } from '../../../stages/model/pods.ts'
import { skyhookTypeMeta } from '../../../schemas/api.ts'
import { lastAppliedKey } from '../plan/three-way-merge.ts'

export type FilePlan = {
  readonly writes: readonly RehearsedWrite[]
  readonly plans: readonly SkyhookPlan[]
  readonly others: readonly string[]
  readonly isRefused: boolean
  /** Whether workloads on some node would be disrupted; undefined if that is unknown. */
  readonly disrupts: boolean | undefined
}

export type PlanOptions = {
  readonly transport: KubeTransport
  readonly namespace: string
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly isDelete: boolean
  readonly checkEvictions: boolean
  /** Called between two nodes, each of which takes some ms: a server may handle other requests there. */
  readonly betweenNodes?: () => Promise<void>
}

/** Throws if the API server does not answer, or if the user may not read Skyhooks. */
export async function planFile({ manifests, others }: Manifests, options: PlanOptions): Promise<FilePlan> {
  const { transport, namespace, clock, signal, isDelete } = options
  const around = { transport, signal, now: new Date(clock.wallMs()).toISOString() }
  const writes: RehearsedWrite[] = []
  for (const manifest of manifests)
    writes.push(isDelete ? await rehearseDelete(manifest, around) : await rehearseApply(manifest, around))
  const isRefused = writes.some(({ admission }) => admission.refusals.length > 0)
  if (isRefused) return { writes, plans: [], others, isRefused, disrupts: undefined }

  const fleet = await readFleet(transport, { namespace, clock, signal, nodeOf: slimNode })
  if (!fleet.skyhooks.known) throw refusedError(`cannot plan: ${fleet.skyhooks.why}`)
  const fleets = { before: fleet, after: editedFleet(fleet, writes) }
  const edits = editsOf(fleets, writes)
  const plansBySkyhook = await nodePlans(options, fleets, edits)
  const closed = [...plansBySkyhook.values()].flat().flatMap(({ isJoining, node }) => (isJoining ? [node] : []))
  const { pods: podsOfClosed } =
    closed.length === 0 ? { pods: known([]) } : await readPodsOf(transport, [...new Set(closed)], signal)
  const { skipNamespaces } = valueOr(fleet.settings, defaultSettings)
  const plans: SkyhookPlan[] = []
  for (const edit of edits) {
    const own = plansBySkyhook.get(edit.name) ?? []
    const rules = (edit.after ?? edit.before)?.spec ?? {}
    const plan = skyhookPlan(fleets, edit, own, joiningNodes(own, rules, podsOfClosed, skipNamespaces))
    plans.push({ ...plan, pods: await podsOfGroups(options, fleet, edit, valueOr(plan.groups, [])) })
  }
  const disrupting = plans.map(wouldDisrupt)
  const disrupts = disrupting.includes(true) ? true : disrupting.includes(undefined) ? undefined : false
  return { writes, plans, others, isRefused, disrupts }
}

/** The fleet with all objects after the file is applied. */
function editedFleet(fleet: FleetView<KubernetesNode>, writes: readonly RehearsedWrite[]): FleetView<KubernetesNode> {
  const ofKind = <T extends Skyhook | DeploymentPolicy>(
    kind: RehearsedWrite['kind'],
    present: Known<readonly T[]>,
    slim: (object: T) => T,
  ): Known<readonly T[]> => {
    const written = writes.filter((one) => one.kind === kind)
    const isWritten = ({ metadata }: T): boolean => written.some(({ name }) => name === metadata.name)
    const after = written.flatMap((one) => (one.after ? [slim(identified(one.after, one.name) as unknown as T)] : []))
    if (!present.known) return written.length === 0 ? present : known(after)
    return known([...present.value.filter((one) => !isWritten(one)), ...after])
  }
  return {
    ...fleet,
    skyhooks: ofKind<Skyhook>('Skyhook', fleet.skyhooks, slimSkyhook),
    policies: ofKind<DeploymentPolicy>('DeploymentPolicy', fleet.policies, (policy) => policy),
  }
}

/** Adds a uid to an object that does not exist yet. */
function identified(object: JsonObject, name: string): JsonObject {
  const metadata = { uid: `planned-${name}`, resourceVersion: '', generation: 1, ...(object['metadata'] as object) }
  return { ...object, metadata }
}

/** Skyhooks of the file, and Skyhooks that use a policy that the file changes. */
function editsOf({ before, after }: Fleets, writes: readonly RehearsedWrite[]): readonly Edit[] {
  const named = (fleet: FleetView<KubernetesNode>, name: string): Skyhook | undefined =>
    valueOr(fleet.skyhooks, []).find(({ metadata }) => metadata.name === name)
  const changed = (kind: RehearsedWrite['kind']): readonly string[] =>
    writes.filter((one) => one.kind === kind && one.change !== 'unchanged').map(({ name }) => name)
  const policies = new Set(changed('DeploymentPolicy'))
  const users = valueOr(after.skyhooks, [])
    .filter(({ spec }) => policies.has(spec.deploymentPolicy ?? ''))
    .map(({ metadata }) => metadata.name)
  const own = writes.filter(({ kind }) => kind === 'Skyhook').map(({ name }) => name)
  return [...new Set([...own, ...users])]
    .map((name) => ({ name, before: named(before, name), after: named(after, name) }))
    .filter(({ before: old, after: next }) => old !== undefined || next !== undefined)
}

async function nodePlans(
  { transport, signal, betweenNodes }: PlanOptions,
  fleets: Fleets,
  edits: readonly Edit[],
): Promise<ReadonlyMap<string, readonly NodePlan[]>> {
  const plans = new Map<string, NodePlan[]>(edits.map(({ name }) => [name, []]))
  const eventsOf = await readNodeEvents(transport, signal)
  const unread = unknown('pods are read for nodes that would be drained')
  const planOf = nodePlanner(fleets, edits)
  for (const node of valueOr(fleets.before.nodes, [])) {
    signal.throwIfAborted()
    const detail = { pods: unread, budgets: unread, events: eventsOf(node.metadata.name) }
    for (const [name, plan] of planOf(node, detail)) plans.get(name)?.push(plan)
    await betweenNodes?.()
  }
  return plans
}

async function podsOfGroups(
  { transport, signal, checkEvictions }: PlanOptions,
  fleet: FleetView<KubernetesNode>,
  { before, after }: Edit,
  groups: readonly PlanGroup[],
): Promise<SkyhookPlan['pods']> {
  const drained = [...groups.entries()].filter(([, { steps }]) => steps.some((step) => step.do === 'drain'))
  const names = drained.flatMap(([, { nodes }]) => nodes)
  if (names.length === 0) return new Map()
  const detail = await readPodsOf(transport, names, signal)
  const { skipNamespaces } = valueOr(fleet.settings, defaultSettings)
  const rules = (after ?? before)?.spec ?? {}
  const found = new Map<number, Known<DrainedPods>>()
  for (const [index, group] of drained) {
    if (!detail.pods.known || !detail.budgets.known) {
      found.set(index, detail.pods.known ? (detail.budgets as Known<never>) : detail.pods)
      continue
    }
    const onNodes = new Set(group.nodes)
    const pods = detail.pods.value.filter(({ spec }) => onNodes.has(spec?.nodeName ?? ''))
    const question = { pods, budgets: detail.budgets.value, rules, skipNamespaces }
    const answers = checkEvictions ? await askEvictions(transport, podsToEvict(question), signal) : undefined
    found.set(index, known(drainedPods({ ...question, answers })))
  }
  return found
}

/** Each pod needs two requests. More pods add little information. */
const maxAsked = 500
const concurrency = 4

/**
 * Asks for each pod whether it could be evicted now, without evicting it. Each answer assumes that no other pod is
 * evicted. Returns answers by uid; only the first 500 pods have one.
 */
async function askEvictions(
  transport: KubeTransport,
  pods: readonly Pod[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, EvictionAnswer>> {
  const answers = new Map<string, EvictionAnswer>()
  const waiting = pods.slice(0, maxAsked).values()
  const work = async (): Promise<void> => {
    for (const { metadata } of waiting) {
      const { uid, namespace, name } = metadata
      answers.set(uid, await askEviction(transport, { namespace, name, uid }, signal))
    }
  }
  await Promise.all(Array.from({ length: concurrency }, work))
  return answers
}

async function askEviction(
  transport: KubeTransport,
  pod: { readonly namespace: string; readonly name: string; readonly uid: string },
  signal: AbortSignal,
): Promise<EvictionAnswer> {
  try {
    const result = await evict(transport, pod, signal, true)
    if (result.outcome !== 'blocked') return { answer: 'granted' }
    // refusals of budgets are reliable; the answer of a webhook to a dry run may differ from its later answer
    return { answer: result.by === 'budget' ? 'refused' : 'unknown', message: result.message }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { answer: 'unknown', message: messageOf(error) }
  }
}

/**
 * Plans a file with the data of a support archive: `transport` is the archive in place of an API server. This tool
 * checks the rules itself. An archive does not contain the last applied configuration. The whole archived spec is used
 * in its place: fields that the file lacks would be removed. @throws CommandError if it has no Skyhooks
 */
export async function planArchivedFile(manifests: Manifests, options: PlanOptions): Promise<FilePlan> {
  try {
    return await planFile(complete(manifests), { ...options, transport: withLastApplied(options.transport) })
  } catch (error) {
    if (error instanceof UnreadError) throw refusedError(`cannot plan: ${error.message}`)
    throw error
  }
}

/** Adds defaults, so that fields which the file leaves to them are not removed. */
const complete = ({ manifests, others }: Manifests): Manifests => ({
  manifests: manifests.map((one) => ({ ...one, object: withDefaultsOf(one.object) })),
  others,
})

/** Returns single objects like an API server, as if their spec had been applied. */
const withLastApplied = (transport: KubeTransport): KubeTransport => ({
  ...transport,
  async json<T>(...[method, path, options]: Parameters<KubeTransport['json']>): Promise<T> {
    const found = await transport.json<JsonObject>(method, path, options)
    const [kind] = Object.entries(collections).find(([, collection]) => path.startsWith(`${collection}/`)) ?? []
    return (method === 'GET' && kind !== undefined ? applied(kind, found) : found) as T
  },
})

/** Items of a LIST have no kind, and those of an older resource definition lack newer defaults. */
function applied(kind: string, object: JsonObject): JsonObject {
  const metadata = isObject(object['metadata']) ? object['metadata'] : {}
  const annotations = isObject(metadata['annotations']) ? metadata['annotations'] : {}
  const last = JSON.stringify({ spec: object['spec'] })
  return withDefaultsOf({
    ...object,
    apiVersion: skyhookTypeMeta.apiVersion,
    kind,
    metadata: { ...metadata, annotations: { ...annotations, [lastAppliedKey]: last } },
  })
}
