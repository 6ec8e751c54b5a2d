/** The recorded history of a cluster: what its objects said at any time of the recording. */
import { censusLeaseName } from '../../src/lease/names.ts'
import { cordonKey, nodeStateKey, reasonKey, statusKey } from '../../src/schemas/annotations.ts'
import { isObject, parseJson } from '../../src/schemas/json.ts'
import type { ObjectMeta } from '../../src/schemas/kubernetes.ts'
import { selects } from '../../src/schemas/selectors.ts'
import type { Skyhook } from '../../src/schemas/skyhook.ts'
import type { KubeObject } from '../../src/kube/objects.ts'
import type { RecordedChange, RecordedKind } from './recording.ts'

/** Objects by name, pods by namespace/name. */
export type View = { readonly [K in RecordedKind]: ReadonlyMap<string, KubeObject> }

/** What was true from `atMs` on. */
export type Moment = View & {
  readonly atMs: number
  /** Nodes without a Ready agent, with the time since when. */
  readonly agentAwaySinceMs: ReadonlyMap<string, number>
}

/** One per change, in their order. The view of a moment is complete; nobody changes it later. */
export function momentsOf(history: readonly RecordedChange[]): readonly Moment[] {
  let view: View = { nodes: new Map(), leases: new Map(), skyhooks: new Map(), pods: new Map() }
  let away: ReadonlyMap<string, number> = new Map()
  return history.map(({ kind, type, object, atMs }) => {
    const { namespace, name } = object.metadata
    const objects = new Map(view[kind])
    const key = kind === 'pods' ? `${namespace}/${name}` : name
    if (type === 'DELETED') objects.delete(key)
    else objects.set(key, object)
    view = { ...view, [kind]: objects }
    if (kind === 'nodes' || kind === 'pods') away = agentsAway(view, away, atMs)
    return { ...view, atMs, agentAwaySinceMs: away }
  })
}

function agentsAway(view: View, before: ReadonlyMap<string, number>, atMs: number): ReadonlyMap<string, number> {
  const ready = new Set([...view.pods.values()].filter(isReadyAgent).map((pod) => specOf(pod)['nodeName']))
  const away = [...view.nodes.keys()].filter((name) => !ready.has(name))
  return new Map(away.map((name) => [name, before.get(name) ?? atMs]))
}

type Fields = Readonly<Record<string, unknown>>
const specOf = (object: KubeObject): Fields => (object as { readonly spec?: Fields }).spec ?? {}

function isReadyAgent(pod: KubeObject): boolean {
  const { conditions = [] } = (pod as { readonly status?: { readonly conditions?: readonly Fields[] } }).status ?? {}
  return (
    pod.metadata.labels?.['app.kubernetes.io/name'] === 'skyhookd' &&
    conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
  )
}

/** The moments that a scrape at some time between the two may tell of: the last one before, and all in between. */
export function momentsBetween(moments: readonly Moment[], fromMs: number, toMs: number): readonly Moment[] {
  const first = Math.max(
    0,
    moments.findLastIndex(({ atMs }) => atMs <= fromMs),
  )
  const last = moments.findLastIndex(({ atMs }) => atMs <= toMs)
  return moments.slice(first, last + 1)
}

/** Who is elected for the census, by its Lease; undefined: nobody, or a node whose agent is away. */
export function censusNode({ leases, agentAwaySinceMs }: Moment): string | undefined {
  const lease = leases.get(censusLeaseName)
  const holder = lease && specOf(lease)['holderIdentity']
  return typeof holder === 'string' && holder !== '' && !agentAwaySinceMs.has(holder) ? holder : undefined
}

/** How long an agent has to be away to count as silent. */
const silentAfterMs = 10 * 60_000

/** Annotations hardly change from one moment to the next. */
const parsed = new Map<string, unknown>()
function parseOnce(text: string): unknown {
  if (!parsed.has(text)) parsed.set(text, parseJson(text))
  return parsed.get(text)
}

/** What a Node shows of a Skyhook, whether it selects the Node or not. */
export type NodeView = {
  readonly name: string
  readonly annotations: Readonly<Record<string, string>>
  readonly agent: 'ready' | 'unready' | 'silent'
  /** As published; undefined: nothing yet. */
  readonly status: string | undefined
  readonly reason: { readonly reason: string; readonly since: string } | undefined
  readonly entries: readonly Entry[]
  readonly hasCordonMark: boolean
}

export type Entry = {
  readonly name: string
  readonly version: string
  readonly stage: string
  readonly state?: string
  readonly restarts?: number
}

export const skyhooksOf = (moment: Moment): readonly Skyhook[] => [...moment.skyhooks.values()] as unknown as Skyhook[]

/** All Nodes as they look for one Skyhook, with those that it selects marked. */
export function nodesFor(
  moment: Moment,
  { metadata, spec }: Pick<Skyhook, 'metadata' | 'spec'>,
  atMs: number,
): readonly (NodeView & { readonly isSelected: boolean })[] {
  return [...moment.nodes.values()].map(
    ({ metadata: { name, labels = {}, annotations = {} } }: { metadata: ObjectMeta }) => {
      const sinceMs = moment.agentAwaySinceMs.get(name)
      const state = parseOnce(annotations[nodeStateKey(metadata.name)] ?? '')
      const reason = parseOnce(annotations[reasonKey(metadata.name)] ?? '')
      return {
        name,
        annotations,
        agent: sinceMs === undefined ? 'ready' : atMs - sinceMs >= silentAfterMs ? 'silent' : 'unready',
        status: annotations[statusKey(metadata.name)],
        reason: isObject(reason) ? (reason as NodeView['reason']) : undefined,
        entries: isObject(state) ? (Object.values(state) as Entry[]) : [],
        hasCordonMark: cordonKey(metadata.name) in annotations,
        isSelected: selects(spec.nodeSelectors, labels),
      }
    },
  )
}
