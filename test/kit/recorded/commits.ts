/**
 * The versions of objects that a campaign recorded, each with its author and the earliest time by which it was there. A
 * watch tells of a change later than the API server made it, by seconds when the API server was away. The answer to the
 * request that made it came before that, and no change came after a later one.
 */
import { readSlot } from '../../../src/lease/slot.ts'
import { apiGroup } from '../../../src/schemas/api.ts'
import { isEqual } from '../../../src/schemas/json.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import { isCordoned } from '../cluster/node-availability.ts'
import type { AuditedRequest } from './audit.ts'
import type { Evidence } from './evidence.ts'
import { keyOf, type Version } from '../cluster/moments.ts'

export type Commit = {
  readonly atMs: number
  /** As in `Fact`. */
  readonly client: string
  readonly version: Version
  readonly previous: Version['object'] | undefined
}

/** Of edits: they reach an agent, and its steps, before the recorder. */
export const slackMs = 1_000
/** Between a request and its watch event: longer only while the API server is away. */
const maxDelayMs = 10_000
/** Between the registration of a deletion by hand and its watch event. */
const maxDeletionMs = 3_000

/** In the order of the changes. */
export function commitsOf(evidence: Evidence): readonly Commit[] {
  const requestFor = requestsIn(evidence)
  const before = new Map<string, Version['object']>()
  const versions = [...initialOf(evidence), ...evidence.moments.map(({ change }) => change)]
  const commits = versions.map((version): Commit => {
    const previous = before.get(nameOf(version))
    if (version.type === 'DELETED') before.delete(nameOf(version))
    else before.set(nameOf(version), version.object)
    return { ...authorOf(version, previous), version, previous }
  })
  let nextMs = Infinity
  const bounded = commits.toReversed().map((commit) => {
    const atMs = Math.min(nextMs, commit.atMs)
    if (commit.client !== 'admin') nextMs = atMs // people's changes are as early as they may have been
    return { ...commit, atMs }
  })
  const lastMs = new Map<string, number>()
  return bounded.toReversed().map((commit) => {
    const atMs = Math.max(commit.atMs, lastMs.get(nameOf(commit.version)) ?? -Infinity)
    lastMs.set(nameOf(commit.version), atMs)
    return { ...commit, atMs }
  })

  function authorOf(version: Version, previous: Version['object'] | undefined): Pick<Commit, 'atMs' | 'client'> {
    const { kind, type, object, atMs } = version
    const byAgent = (node: string, request: AuditedRequest | undefined): Pick<Commit, 'atMs' | 'client'> => ({
      atMs: Math.min(atMs, request?.answeredMs ?? Infinity),
      client: `agent:${node}`,
    })
    const byHand = (node: string): number | undefined =>
      evidence.deletions.findLast((one) => one.node === node && one.atMs <= atMs && atMs - one.atMs < maxDeletionMs)
        ?.atMs
    switch (kind) {
      case 'skyhooks':
        if (object.metadata.generation === previous?.metadata.generation) return { atMs, client: 'census:' }
        return { atMs: previous === undefined ? atMs : atMs - slackMs, client: 'admin' }
      case 'nodes':
        if (type === 'DELETED') return { atMs: byHand(object.metadata.name) ?? atMs, client: 'admin' }
        if (isOfAgent(version, previous as KubernetesNode | undefined, evidence.ownVersions))
          return byAgent(object.metadata.name, requestFor(version, object.metadata.name))
        return { atMs, client: isOfAdmin(version, previous, evidence.ownVersions) ? 'admin' : 'kubelet' }
      case 'leases': {
        const holder = readSlot(object)?.holder
        if (holder === undefined) return { atMs, client: 'census:' }
        const request = requestFor(version, holder)
        if (type !== 'DELETED') return byAgent(holder, request)
        // the names of slots come again: of a person's deletion and an agent's the later one
        const handMs = byHand(holder)
        if (handMs !== undefined && handMs > (request?.receivedMs ?? 0)) return { atMs: handMs, client: 'admin' }
        return request ? byAgent(holder, request) : { atMs, client: 'garbage-collector' }
      }
      case 'pods':
      case 'events': {
        const isEnding = object.metadata.deletionTimestamp !== undefined && type === 'MODIFIED'
        const request = isEnding && !previous?.metadata.deletionTimestamp ? requestFor(version) : undefined
        return request ? byAgent(request.node, request) : { atMs, client: 'workload' }
      }
    }
  }
}

/** What was there when the recording began. */
function initialOf({ moments: [first] }: Evidence): readonly Version[] {
  if (first === undefined) return []
  const { change, nodes, skyhooks, leases, pods } = first
  const at = { type: 'ADDED', resourceVersion: 0, atMs: change.atMs } as const
  const all = (kind: Version['kind'], objects: ReadonlyMap<string, Version['object']>): readonly Version[] =>
    [...objects.values()].map((object) => ({ ...at, kind, object }) as Version)
  const initial = [...all('nodes', nodes), ...all('skyhooks', skyhooks), ...all('leases', leases), ...all('pods', pods)]
  return initial.filter((version) => nameOf(version) !== nameOf(change))
}

const nameOf = (version: Version): string => `${version.kind} ${keyOf(version)}`

const verbs = { ADDED: ['create'], MODIFIED: ['update', 'patch', 'eviction'], DELETED: ['delete'] }

/**
 * An agent's last one that can have made the version: one before it would say a time at which the version was not there
 * yet. A creation may be logged without a name. The log lacks a request whose API server was killed before the answer.
 */
function requestsIn({ audit }: Evidence): (version: Version, node?: string) => AuditedRequest | undefined {
  const writes = Map.groupBy(
    audit.filter(({ status }) => status >= 200 && status < 300),
    ({ verb, resource, subresource, name = '' }) =>
      `${subresource === 'eviction' ? subresource : verb} ${resource} ${name}`,
  )
  return ({ kind, type, object, atMs }, node) =>
    [object.metadata.name, '']
      .flatMap((name) => verbs[type].flatMap((verb) => writes.get(`${verb} ${kind} ${name}`) ?? []))
      .filter(
        (request) =>
          request.node === (node ?? request.node) &&
          request.receivedMs <= atMs &&
          request.answeredMs > Math.max(atMs - maxDelayMs, writtenMs(object)),
      )
      .toSorted((a, b) => a.receivedMs - b.receivedMs)
      .at(-1)
}

type WithManagedFields = { readonly managedFields?: readonly { readonly time?: string }[] }

/** When it was written at the earliest, by the clock of the API server: in whole seconds. */
function writtenMs({ metadata }: Version['object']): number {
  const { managedFields = [] }: WithManagedFields = metadata as object
  return Math.max(-Infinity, ...managedFields.map(({ time = '' }) => Date.parse(time) || -Infinity))
}

/** A write of the administrator that changes nothing is answered with the version of somebody else. */
function isOfAgent(
  { object, resourceVersion, type }: Version,
  previous: KubernetesNode | undefined,
  own: ReadonlySet<number>,
): boolean {
  if (type === 'ADDED' || previous === undefined) return false
  const annotationsOf = ({ metadata }: Version['object']): unknown =>
    Object.entries(metadata.annotations ?? {}).filter(([key]) => key.startsWith(apiGroup))
  if (!isEqual(annotationsOf(object), annotationsOf(previous))) return true
  return !own.has(resourceVersion) && isCordoned(object as KubernetesNode) !== isCordoned(previous)
}

const isOfAdmin = (
  { object, resourceVersion }: Version,
  previous: Version['object'] | undefined,
  own: ReadonlySet<number>,
): boolean => own.has(resourceVersion) || !isEqual(object.metadata.labels, previous?.metadata.labels)
