/** Histories made by hand, for tests of the verdicts. Seconds since some beginning. */
import { skyhookScope } from '../../../src/lease/names.ts'
import { newLease, type Lease } from '../../../src/lease/slot.ts'
import { cordonKey, journalKey, nodeStateKey, statusKey } from '../../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import type { SlotPhase } from '../../../src/schemas/skyhook.ts'
import { emptyView, moments, type Pod, type Version } from '../../e2e/moments.ts'
import type { AuditedRequest } from '../audit.ts'
import type { StepLine } from '../steps.ts'
import type { Evidence } from './evidence.ts'

export const skyhook = 'kernels'
const skyhookUid = 'uid-of-kernels'
const beginningMs = Date.UTC(2026, 0, 1)
const ms = (seconds: number): number => beginningMs + seconds * 1000

type Change = { readonly kind: Version['kind']; readonly type: Version['type']; readonly object: object }

/** Collects what happened and makes the evidence of it. */
export function createSample(...nodes: readonly string[]) {
  const versions: Version[] = []
  const audit: AuditedRequest[] = []
  const steps = new Map<string, StepLine[]>(nodes.map((node) => [node, []]))
  const ownVersions = new Set<number>()
  const deletions: Evidence['deletions'][number][] = []
  const actions: Evidence['actions'][number][] = []
  let revision = 0

  const add = (seconds: number, { kind, type, object }: Change): number => {
    const resourceVersion = versions.length + 1
    const named = object as { metadata: object }
    const versioned = { ...named, metadata: { ...named.metadata, resourceVersion: String(resourceVersion) } }
    versions.push({ kind, type, object: versioned, resourceVersion, atMs: ms(seconds) } as unknown as Version)
    return resourceVersion
  }
  const request = (seconds: number, node: string, more: Partial<AuditedRequest>): void => {
    const atMs = ms(seconds)
    const none = { subresource: undefined, namespace: undefined, name: undefined }
    const base = { node, verb: 'get', resource: '', ...none, uri: '/', receivedMs: atMs, answeredMs: atMs, status: 200 }
    audit.push({ ...base, ...more })
  }
  const lease = (node: string, index: number, phase: SlotPhase): Lease => {
    const identity = { name: node, uid: node, bootId: 'boot' }
    const made = newLease(
      skyhookScope({ name: skyhook, uid: skyhookUid }),
      { index },
      identity,
      { phase, generation: 1, packages: [] },
      0,
    )
    return { ...made, metadata: { ...made.metadata, uid: made.metadata.name, resourceVersion: '0' } }
  }

  return {
    skyhook(seconds: number, spec: object, more: object = {}): void {
      const metadata = { name: skyhook, uid: skyhookUid, generation: versions.length + 1 }
      add(seconds, { kind: 'skyhooks', type: 'MODIFIED', object: { metadata, spec, ...more } })
    },
    node(
      seconds: number,
      name: string,
      shown: {
        marked?: boolean
        cordoned?: boolean
        status?: string
        /** Of its only package. */
        stage?: 'apply' | 'config' | 'post-interrupt'
        boot?: string
        reason?: string
        own?: boolean
        labels?: Readonly<Record<string, string>>
      },
    ): void {
      const {
        marked = false,
        cordoned = marked,
        status = 'in_progress',
        stage,
        boot = 'boot',
        reason,
        own = false,
        labels = {},
      } = shown
      const annotations = {
        [statusKey(skyhook)]: status,
        [journalKey(skyhook)]: JSON.stringify({ v: 1, rev: ++revision, sha256: '', nodeUID: name }),
        ...(stage && { [nodeStateKey(skyhook)]: JSON.stringify({ 'p|1.0.0': { stage, state: 'complete' } }) }),
        ...(marked && { [cordonKey(skyhook)]: 'true' }),
        ...(reason !== undefined && {
          [`skyhook.nvidia.com/reason_${skyhook}`]: JSON.stringify({ reason, message: '', since: '' }),
        }),
      }
      const object: Omit<KubernetesNode, 'metadata'> & { metadata: object } = {
        metadata: { name, uid: name, annotations, labels },
        spec: { unschedulable: cordoned },
        status: { nodeInfo: { bootID: boot } },
      }
      const version = add(seconds, { kind: 'nodes', type: 'MODIFIED', object })
      if (own) ownVersions.add(version)
    },
    slot(seconds: number, node: string, index: number, phase: SlotPhase = 'working'): void {
      add(seconds, { kind: 'leases', type: 'ADDED', object: lease(node, index, phase) })
    },
    /** The agent gives it back. */
    release(seconds: number, node: string, index: number): void {
      const object = lease(node, index, 'working')
      request(seconds, node, { verb: 'delete', resource: 'leases', name: object.metadata.name })
      add(seconds, { kind: 'leases', type: 'DELETED', object })
    },
    /** It goes without a request of the agent. */
    collect(seconds: number, node: string, index: number): void {
      add(seconds, { kind: 'leases', type: 'DELETED', object: lease(node, index, 'working') })
    },
    pod(seconds: number, pod: Pod): void {
      add(seconds, { kind: 'pods', type: 'MODIFIED', object: pod })
    },
    /** The confirming read. */
    reads(seconds: number, node: string): void {
      request(seconds, node, { resource: 'skyhooks', name: skyhook, uri: `/skyhooks/${skyhook}` })
    },
    request,
    step(seconds: number, node: string, mode = 'apply'): void {
      const line = { skyhook, package: 'kernel', version: '1.0.0', mode, round: '1' } as const
      const lines = steps.get(node) ?? []
      lines.push({ ...line, atMs: ms(seconds), what: 'begins' }, { ...line, atMs: ms(seconds + 0.4), what: 'ends' })
      steps.set(node, lines)
    },
    deletes(seconds: number, node: string): void {
      deletions.push({ node, atMs: ms(seconds), what: 'slot' })
    },
    action(seconds: number, kind: string, detail: string): void {
      const atMs = ms(seconds)
      actions.push({ number: 1, kind, detail, startedMs: atMs, endedMs: atMs, hasMissed: false })
    },
    evidence: (): Evidence => ({
      moments: [...moments(emptyView(), versions)],
      audit: audit.toSorted((a, b) => a.receivedMs - b.receivedMs),
      steps,
      actions,
      deletions,
      ownVersions,
      skyhooks: [skyhook],
      endedMs: versions.at(-1)?.atMs ?? beginningMs,
    }),
  }
}
