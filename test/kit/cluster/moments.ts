/**
 * What a cluster looked like after each change, in the order in which the changes happened. Watches of different kinds
 * arrive in any order; resourceVersions come from one counter of etcd, so they give the true one.
 */
import type { Lease } from '../../../src/lease/slot.ts'
import type { KubernetesNode, ObjectMeta } from '../../../src/schemas/kubernetes.ts'
import type { Skyhook } from '../../../src/schemas/skyhook.ts'

export type Pod = {
  readonly metadata: ObjectMeta
  readonly spec?: { readonly nodeName?: string }
  readonly status?: {
    readonly phase?: string
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly reason?: string }[]
    readonly containerStatuses?: readonly { readonly containerID?: string }[]
  }
}
export type KubeEvent = {
  readonly metadata: ObjectMeta
  readonly involvedObject?: { readonly kind?: string; readonly name?: string }
  readonly type?: string
  readonly reason?: string
  readonly message?: string
  /** How often, if more than once. */
  readonly count?: number
}

type Objects = {
  readonly nodes: KubernetesNode
  readonly leases: Lease
  readonly skyhooks: Skyhook
  readonly pods: Pod
  readonly events: KubeEvent
}
export type Kind = keyof Objects

/** For a deletion, `object` is its last version. */
export type Version = {
  [K in Kind]: {
    readonly kind: K
    readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
    readonly object: Objects[K]
    readonly resourceVersion: number
    readonly atMs: number
  }
}[Kind]

/** By name; pods and events by namespace/name. */
export type View = { readonly [K in Kind]: ReadonlyMap<string, Objects[K]> }

/** A state and the change that led to it. */
export type Moment = View & { readonly change: Version }

export const emptyView = (): View => ({
  nodes: new Map(),
  leases: new Map(),
  skyhooks: new Map(),
  pods: new Map(),
  events: new Map(),
})

export function keyOf({ kind, object: { metadata } }: Pick<Version, 'kind' | 'object'>): string {
  return kind === 'pods' || kind === 'events' ? `${metadata.namespace}/${metadata.name}` : metadata.name
}

/** The view after a change; the given view is not changed. */
export function applyVersion(view: View, version: Version): View {
  const map = new Map<string, Version['object']>(view[version.kind])
  if (version.type === 'DELETED') map.delete(keyOf(version))
  else map.set(keyOf(version), version.object)
  return { ...view, [version.kind]: map }
}

/** All moments from the first change after `start` on. */
export function* moments(start: View, versions: readonly Version[]): Generator<Moment, void> {
  let view = start
  for (const change of versions.toSorted((a, b) => a.resourceVersion - b.resourceVersion)) {
    view = applyVersion(view, change)
    yield { ...view, change }
  }
}
