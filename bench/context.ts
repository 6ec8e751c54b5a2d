/** The measured cluster, and how to apply and time work on it. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../src/daemon/platform/system-clock.ts'
import type { KubeTransport } from '../src/kube/transport.ts'
import { watchEvents } from '../src/kube/watch.ts'
import { readSlot, type Lease } from '../src/lease/slot.ts'
import type { PackageSpec, Skyhook, SkyhookSpec } from '../src/schemas/skyhook.ts'
import { appliedHash } from '../src/stages/model/package-inputs.ts'
import type { History } from '../test/kit/history.ts'
import { ignoreNotFound, patch, paths } from '../test/kit/cluster/kube.ts'
import { manifest, selectorLabel, publishedState, traces } from '../test/kit/cluster/skyhooks.ts'
import { slotsOf } from '../test/kit/cluster/slots.ts'
import type { Sandbox } from '../test/sandbox/sandbox.ts'

export type BenchContext = {
  readonly box: Sandbox
  readonly api: KubeTransport
  readonly history: History
  readonly nodes: readonly string[]
  /** Repetitions of measurements that vary; the median counts. */
  readonly runs: number
  readonly registry: string
  readonly auditLog: string
}

const timeoutMs = 60_000
/** Events follow a little later and belong to the work. */
export const eventFlushMs = 3_000
let nextNumber = 0

/** Hosts remember Skyhooks by name, so each run takes a new one. */
const uniqueName = (): string => `bench-${Date.now().toString(36)}-${nextNumber++}`

export const shellscriptImage = 'skyhook-packages/shellscript'
export const pushShellscript = async ({ box }: BenchContext): Promise<void> => {
  await box.must([
    'push',
    join(import.meta.dirname, '../test/fixtures/packages/shellscript'),
    `${shellscriptImage}:1.1.0`,
  ])
}

/** The package without scripts: all four of its steps start, run bash and end. */
export const noopPackage = ({ registry }: BenchContext): { readonly packages: { readonly noop: PackageSpec } } => ({
  packages: { noop: { version: '1.1.0', image: `${registry}/${shellscriptImage}` } },
})

/** The same with an interrupt; the service is a dummy that restarts at once. */
export const servicePackage = ({ registry }: BenchContext): SkyhookSpec => ({
  packages: {
    noop: {
      version: '1.1.0',
      image: `${registry}/${shellscriptImage}`,
      interrupt: { type: 'service', services: ['foobar'] },
    },
  },
})

/** The node whose agent counts for the cluster. */
export const electedNode = ({ history }: BenchContext): string =>
  history.now.leases.get('skyhookd-census')?.spec?.holderIdentity ?? ''

/**
 * A node whose agent is not the census leader: counting is not the work of its node.
 */
export function quietNode(bench: BenchContext): string {
  const { nodes } = bench
  const elected = electedNode(bench)
  return nodes.find((node) => node !== elected) ?? nodes[0] ?? ''
}

/** How long the dummy's restart takes without us, in ms. */
export async function restartMs({ box, nodes }: BenchContext): Promise<number> {
  const script = 's=$(date +%s%N); systemctl restart foobar; e=$(date +%s%N); echo $(((e - s) / 1000000))'
  return Number(await box.must(['exec', nodes[0] ?? '', '--', 'sh', '-c', script]))
}

/** Otherwise the measurement would include draining pods. */
export async function emptyNodes({ box }: BenchContext): Promise<void> {
  await box.kubectl(['delete', 'namespace', 'shop', '--ignore-not-found', '--wait=true'])
}

export type RolloutTiming = { readonly startedMs: number; readonly completeMs: number }

/** Applies a Skyhook to nodes and waits until it is complete and all slots are released. */
export async function rollOut(
  bench: BenchContext,
  spec: SkyhookSpec,
  nodes: readonly string[],
): Promise<RolloutTiming> {
  return await withSkyhook(bench, spec, nodes, async (_, timing) => timing)
}

/** The same, then calls `during` with its name and deletes the Skyhook. `withinMs` is the time to complete. */
export async function withSkyhook<T>(
  bench: BenchContext,
  spec: SkyhookSpec,
  nodes: readonly string[],
  during: (name: string, timing: RolloutTiming) => Promise<T>,
  withinMs = timeoutMs,
): Promise<T> {
  const { api, history } = bench
  const name = uniqueName()
  const label = async (value: string | null): Promise<void> => {
    await Promise.all(
      nodes.map((node) => patch(api, `${paths.nodes}/${node}`, { metadata: { labels: { [selectorLabel]: value } } })),
    )
  }
  await label(name)
  await sleep(500) // the effects of the labels are over
  try {
    const startedMs = Date.now()
    await api.json('POST', paths.skyhooks, { body: manifest(name, spec) })
    const completeMs = await applied(bench, name, nodes, spec, startedMs, withinMs)
    return await during(name, { startedMs, completeMs })
  } finally {
    await sleep(eventFlushMs)
    await ignoreNotFound(api, 'DELETE', `${paths.skyhooks}/${name}`) // it may have been refused
    await history.eventually(
      'forgotten',
      (view) => [...view.nodes.values()].every((node) => traces(node, name).length === 0),
      timeoutMs,
    )
    await label(null)
  }
}

/**
 * Changes packages of a complete Skyhook by a merge patch. Returns the ms until it is complete again with all slots
 * released.
 */
export async function change(
  bench: BenchContext,
  name: string,
  nodes: readonly string[],
  packages: Readonly<Record<string, Partial<PackageSpec> | null>>,
): Promise<number> {
  const startedMs = Date.now()
  const { spec } = await patch<Skyhook>(bench.api, `${paths.skyhooks}/${name}`, { spec: { packages } })
  return await applied(bench, name, nodes, spec, startedMs)
}

/**
 * The hash of the applied spec distinguishes this `complete` from the previous one, which a Node shows until its agent
 * has seen the change. Packages that left the spec must be gone.
 */
async function applied(
  { history }: BenchContext,
  name: string,
  nodes: readonly string[],
  spec: SkyhookSpec,
  startedMs: number,
  withinMs = timeoutMs,
): Promise<number> {
  const hash = appliedHash(spec)
  const entries = Object.entries(spec.packages ?? {}).map(([key, { version }]) => `${key}|${version}`)
  const complete = await history.eventually(
    `complete on ${nodes.join(', ')}`,
    (view) =>
      nodes.every((node) => {
        const { status, companion, state } = publishedState(view.nodes.get(node), name)
        return (
          status === 'complete' &&
          companion?.applied === hash &&
          Object.keys(state).sort().join() === entries.sort().join()
        )
      }),
    withinMs,
  )
  await history.eventually('free of slots', (view) => slotsOf(view, name).length === 0, timeoutMs)
  return complete.atMs - startedMs
}

/** Removes the files of the runs from the hosts; deleted Skyhooks leave them there. */
export async function cleanUpHosts({ box, nodes }: BenchContext): Promise<void> {
  const command = 'rm -rf /var/lib/skyhook/bench-* /var/log/skyhook/bench-*'
  await Promise.all(nodes.map((node) => box.run(['exec', node, '--', 'sh', '-c', command])))
}

export type SlotEvent = { readonly type: 'ADDED' | 'DELETED'; readonly atMs: number }

/** Grants and releases of slots, each with the time of its watch event. */
export async function watchSlots({ api }: BenchContext, signal: AbortSignal): Promise<SlotEvent[]> {
  const { metadata } = await api.json<{ metadata: { resourceVersion: string } }>('GET', paths.leases)
  const events: SlotEvent[] = []
  const follow = async (): Promise<void> => {
    const limits = { clock: systemClock, timeoutSeconds: 600, idleTimeoutMs: 600_000, signal, onOpen: () => undefined }
    for await (const { type, object } of watchEvents<Lease>(api, {
      path: paths.leases,
      resourceVersion: metadata.resourceVersion,
      ...limits,
    })) {
      if ((type === 'ADDED' || type === 'DELETED') && readSlot(object)) events.push({ type, atMs: Date.now() })
    }
  }
  follow().catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
  return events
}
