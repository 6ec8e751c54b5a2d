/** The cluster that is measured, and how work is given to it and timed. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../src/daemon/platform/system-clock.ts'
import type { KubeTransport } from '../src/kube/transport.ts'
import { watchEvents } from '../src/kube/watch.ts'
import { readSlot, type Lease } from '../src/lease/slot.ts'
import type { PackageSpec, Skyhook, SkyhookSpec } from '../src/schemas/skyhook.ts'
import { appliedHash } from '../src/stages/model/applied-hash.ts'
import type { History } from '../test/support/history.ts'
import { patch, paths } from '../test/e2e/kube.ts'
import { manifest, selectorLabel, publishedState, traces } from '../test/e2e/skyhooks.ts'
import { slotsOf } from '../test/e2e/slots.ts'
import type { Sandbox } from '../test/sandbox/sandbox.ts'

export type BenchContext = {
  readonly box: Sandbox
  readonly api: KubeTransport
  readonly history: History
  readonly nodes: readonly string[]
  /** How often what varies is measured; the median counts. */
  readonly runs: number
  readonly registry: string
  readonly auditLog: string
}

const timeoutMs = 60_000
/** Events are sent a little later, and belong to the work. */
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

/**
 * A node whose agent does nothing for the others: the elected one counts for all, which is not the work of its node.
 */
export function quietNode({ history, nodes }: BenchContext): string {
  const elected = history.now.leases.get('skyhookd-census')?.spec?.holderIdentity ?? ''
  return nodes.find((node) => node !== elected) ?? nodes[0] ?? ''
}

/** How long the dummy's restart takes without us, in ms. */
export async function restartMs({ box, nodes }: BenchContext): Promise<number> {
  const script = 's=$(date +%s%N); systemctl restart foobar; e=$(date +%s%N); echo $(((e - s) / 1000000))'
  return Number(await box.must(['exec', nodes[0] ?? '', '--', 'sh', '-c', script]))
}

/** Pods that would have to be drained would be measured, too. */
export async function emptyNodes({ box }: BenchContext): Promise<void> {
  await box.kubectl(['delete', 'namespace', 'shop', '--ignore-not-found', '--wait=true'])
}

export type RolloutTiming = { readonly startedMs: number; readonly completeMs: number }

/** Applies a Skyhook to nodes and waits until it is complete and has given all slots back. */
export async function rollOut(
  bench: BenchContext,
  spec: SkyhookSpec,
  nodes: readonly string[],
): Promise<RolloutTiming> {
  return await withSkyhook(bench, spec, nodes, async (_, timing) => timing)
}

/** The same, and then `during` with its name; the Skyhook goes after that. */
export async function withSkyhook<T>(
  bench: BenchContext,
  spec: SkyhookSpec,
  nodes: readonly string[],
  during: (name: string, timing: RolloutTiming) => Promise<T>,
): Promise<T> {
  const { api, history } = bench
  const name = uniqueName()
  const label = async (value: string | null): Promise<void> => {
    await Promise.all(
      nodes.map((node) => patch(api, `${paths.nodes}/${node}`, { metadata: { labels: { [selectorLabel]: value } } })),
    )
  }
  await label(name)
  await sleep(500) // what the labels set going is over
  try {
    const startedMs = Date.now()
    await api.json('POST', paths.skyhooks, { body: manifest(name, spec) })
    const completeMs = await applied(bench, name, nodes, spec, startedMs)
    return await during(name, { startedMs, completeMs })
  } finally {
    await sleep(eventFlushMs)
    await api.json('DELETE', `${paths.skyhooks}/${name}`)
    await history.eventually(
      'forgotten',
      (view) => [...view.nodes.values()].every((node) => traces(node, name).length === 0),
      timeoutMs,
    )
    await label(null)
  }
}

/**
 * Changes packages of a Skyhook that is complete, by a merge patch; ms until it is complete again, all slots given
 * back.
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
 * The hash of what was applied tells the `complete` of this spec from the one of before, which a Node shows until its
 * agent has seen the change. What is not in the spec any more must be gone.
 */
async function applied(
  { history }: BenchContext,
  name: string,
  nodes: readonly string[],
  spec: SkyhookSpec,
  startedMs: number,
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
    timeoutMs,
  )
  await history.eventually('free of slots', (view) => slotsOf(view, name).length === 0, timeoutMs)
  return complete.atMs - startedMs
}

/** Removes what the runs left on the hosts; Skyhooks that are gone leave their files. */
export async function cleanUpHosts({ box, nodes }: BenchContext): Promise<void> {
  const command = 'rm -rf /var/lib/skyhook/bench-* /var/log/skyhook/bench-*'
  await Promise.all(nodes.map((node) => box.run(['exec', node, '--', 'sh', '-c', command])))
}

export type SlotEvent = { readonly type: 'ADDED' | 'DELETED'; readonly atMs: number }

/** Grants and releases of slots, with the time at which a watch brought them. */
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
