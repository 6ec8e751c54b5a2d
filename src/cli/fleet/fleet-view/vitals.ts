/**
 * What shows whether the kubelets live, and why the pod of an agent does not start. The API server reports a Node as
 * NotReady only after 40 to 50 s of silence. The Lease of its kubelet shows it after two missed renewals.
 */
import type { KubeObject } from '../../../kube/objects.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import { leasesPathOf } from '../../../lease/slot-reads.ts'
import type { Lease } from '../../../lease/slot.ts'
import { type Known, unknown } from '../../../stages/model/snapshot.ts'
import { type Collection, readerOf } from './collections.ts'
import { mapped } from './readable.ts'

export type Vitals = {
  /** By node: when its kubelet has renewed its Lease, in ms since 1970 by the clock of its host. */
  readonly heartbeats: Known<ReadonlyMap<string, number>>
  /** About the DaemonSet of the agents and its pods, the newest first. */
  readonly warnings: Known<readonly Warning[]>
}

/** An Event of type Warning. */
export type Warning = {
  readonly kind: string
  readonly name: string
  readonly reason: string
  readonly message: string
  readonly atMs: number
}

export const unreadVitals: Vitals = {
  heartbeats: unknown('Leases of kubelets are not read'),
  warnings: unknown('Events of agents are not read'),
}

type Heartbeat = { readonly node: string; readonly atMs: number }

const kubeletLeases = {
  what: 'Leases in namespace kube-node-lease',
  path: leasesPathOf({ namespace: 'kube-node-lease' }),
  keep: ({ metadata, spec }: Lease): Heartbeat => ({ node: metadata.name, atMs: Date.parse(spec?.renewTime ?? '') }),
} satisfies Collection<Heartbeat>

const warningsIn = (namespace: string): Collection<Warning> => ({
  what: `Events in namespace ${namespace}`,
  path: `/api/v1/namespaces/${namespace}/events`,
  query: { fieldSelector: 'type=Warning' },
  keep: warningOf,
})

/** `namespace`: of the agents. Throws for an API server that does not answer. */
export async function readVitals(
  transport: KubeTransport,
  { namespace, signal }: { readonly namespace: string; readonly signal?: AbortSignal | undefined },
): Promise<Vitals> {
  const read = readerOf(transport, signal)
  const [heartbeats, warnings] = await Promise.all([read(kubeletLeases), read(warningsIn(namespace))])
  return {
    heartbeats: mapped(
      heartbeats,
      (all) => new Map(all.flatMap(({ node, atMs }) => (Number.isNaN(atMs) ? [] : [[node, atMs] as const]))),
    ),
    warnings: mapped(warnings, (all) => all.toSorted((a, b) => b.atMs - a.atMs)),
  }
}

type EventObject = KubeObject & {
  readonly involvedObject?: { readonly kind?: string; readonly name?: string }
  readonly reason?: string
  readonly message?: string
  readonly firstTimestamp?: string | null
  readonly lastTimestamp?: string | null
  readonly eventTime?: string | null
}

function warningOf(event: EventObject): Warning {
  const { reason = '', message = '', involvedObject, firstTimestamp, lastTimestamp, eventTime, metadata } = event
  const atMs = Date.parse(lastTimestamp ?? eventTime ?? firstTimestamp ?? metadata.creationTimestamp ?? '')
  return {
    kind: involvedObject?.kind ?? '',
    name: involvedObject?.name ?? '',
    reason,
    message,
    atMs: Number.isNaN(atMs) ? 0 : atMs,
  }
}
