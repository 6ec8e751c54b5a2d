/** Skyhooks as a census leaves them: whole turns against a simulated API server, on a virtual clock. */
import type { CensusNode } from '../../src/census/model/node-facts.ts'
import { createSkyhookReconciler, type SkyhookReconciler } from '../../src/census/reconcile/skyhook-reconciler.ts'
import { type Ledger, readLedger } from '../../src/lease/ledger.ts'
import { ledgerName, skyhookScope } from '../../src/lease/names.ts'
import { type Lease, newLease } from '../../src/lease/slot.ts'
import { skyhooksPath, skyhookTypeMeta } from '../../src/schemas/api.ts'
import { defaultCompartment, type PolicyKnowledge } from '../../src/schemas/deployment-policy.ts'
import type { Skyhook, SkyhookSpec, SlotPhase } from '../../src/schemas/skyhook.ts'
import type { AgentState } from '../../src/stages/skyhook/gates.ts'
import { createClient } from '../kit/api-server/client.ts'
import { readSchemas } from '../kit/api-server/definitions.ts'
import { createSimulatedApiServer } from '../kit/api-server/server.ts'
import { allAgents, nodeReporting, type NodeReport } from '../kit/objects/census-objects.ts'
import { createSeededRandom, createVirtualClock } from '../kit/virtual-clock.ts'

const name = 'demo'
const path = `${skyhooksPath}/${name}`
const namespace = 'skyhook'
const leasesPath = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`
const contentType = 'application/merge-patch+json'
const startWallMs = Date.UTC(2026, 10, 20, 14)
const turnsPerSecond = 4

/** As `kubectl get -o yaml` shows it. */
export type RecordedObject = Readonly<Record<string, unknown>> & {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
}

/** What happens to a Skyhook and its nodes. */
export type Recording = {
  /** What the agent of a node publishes. */
  report(node: string, report: NodeReport): void
  /** A slot of node n1 for the current batch. */
  takeSlot(phase: SlotPhase): Promise<void>
  setPolicy(policy: PolicyKnowledge): void
  setAgent(node: string, state: AgentState): void
  /** Somebody applies another spec. */
  edit(spec: SkyhookSpec): Promise<void>
  annotate(annotations: Readonly<Record<string, string>>): Promise<void>
  /** Somebody deletes the Skyhook: its finalizers keep it. */
  remove(): Promise<void>
  /** Another agent is elected, and its census remembers nothing. */
  elect(): void
  /** The census counts over so many virtual seconds. */
  turn(seconds: number): Promise<void>
}

/** All versions of a Skyhook with this spec while the script lets things happen; the last one is how it ends. */
export async function record(
  spec: SkyhookSpec,
  script: (recording: Recording) => void | Promise<void>,
): Promise<readonly RecordedObject[]> {
  const clock = createVirtualClock(startWallMs, { settleTurns: 0 })
  const random = createSeededRandom(1)
  const server = createSimulatedApiServer({ clock, random, schemas: readSchemas() })
  const transport = createClient(server, { name: 'census', clock, random })
  const stopping = new AbortController()
  const versions: RecordedObject[] = []
  server.observe({
    committed: ({ version }) => {
      if (version.object.kind === skyhookTypeMeta.kind) versions.push(version.object)
    },
  })
  await transport.json('POST', '/api/v1/namespaces', { body: { metadata: { name: namespace } } })
  const { metadata } = await transport.json<Skyhook>('POST', skyhooksPath, {
    body: { ...skyhookTypeMeta, metadata: { name }, spec },
  })
  const identity = { name, uid: metadata.uid }
  const current = (): Skyhook => server.object('skyhooks', undefined, name) as unknown as Skyhook
  const nodes = new Map<string, CensusNode>()
  const agents: Record<string, AgentState> = {}
  let policy: PolicyKnowledge | undefined

  const ledgerLease = (): Lease | undefined =>
    server.object('leases', namespace, ledgerName(identity)) as unknown as Lease | undefined
  const ledger = (): Ledger | undefined => {
    const lease = ledgerLease()
    const read = lease && readLedger(lease)
    return read?.outcome === 'read' ? read.ledger : undefined
  }
  const elected = (): SkyhookReconciler =>
    createSkyhookReconciler({
      defaultBudget: {},
      leases: { transport, namespace, clock },
      random,
      observe: () => ({ nodes, agents: allAgents('ready', agents), skyhook: current(), ledger: ledgerLease(), policy }),
      relist: () => undefined,
      report: () => undefined,
      onCounted: () => undefined,
      onFailed: (error) => {
        throw error
      },
      signal: stopping.signal,
    })
  let census = elected()
  const patch = async (body: unknown): Promise<void> => {
    await transport.json('PATCH', path, { body, contentType })
  }

  await script({
    report: (node, report) => void nodes.set(node, nodeReporting(node, { of: current().spec, ...report })),
    async takeSlot(phase) {
      const epoch = ledger()?.compartments[defaultCompartment]?.batch?.epoch
      const progress = { phase, generation: 1, ...(epoch !== undefined && { epoch }), packages: [] }
      const node = { name: 'n1', uid: 'n1-uid', bootId: 'b' }
      const body = newLease(skyhookScope(identity, defaultCompartment), { index: 0 }, node, progress, clock.wallMs())
      await transport.json('POST', leasesPath, { body })
    },
    setPolicy: (next) => void (policy = next),
    setAgent: (node, state) => void (agents[node] = state),
    edit: async (spec) => await patch({ spec }),
    annotate: async (annotations) => await patch({ metadata: { annotations } }),
    remove: async () => void (await transport.json('DELETE', path)),
    elect: () => void (census = elected()),
    async turn(seconds) {
      for (let at = 0; at < seconds * turnsPerSecond; at++) {
        await census.reconcile()
        for (const what of ['skyhook', 'ledger'] as const) census.observed(what)
        await clock.advance(1_000 / turnsPerSecond)
      }
    },
  })
  stopping.abort()
  return versions
}
