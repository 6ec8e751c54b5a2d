/** Objects for the tests of the census, as agents and the API server create them. */
import { censusNode } from '../../../src/census/model/cluster-view.ts'
import type { CensusSettings } from '../../../src/census/model/messages.ts'
import * as keys from '../../../src/schemas/annotations.ts'
import type { NodeStateEntry } from '../../../src/schemas/annotations.ts'
import type { PolicyKnowledge } from '../../../src/schemas/deployment-policy.ts'
import type { Skyhook, SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import { sha256Hex } from '../../../src/schemas/canonical-json.ts'
import { countSelectedNodes, type Counts } from '../../../src/census/model/count.ts'
import type { CensusNode } from '../../../src/census/model/node-facts.ts'
import { appliedHash } from '../../../src/stages/model/package-inputs.ts'
import type { Agents } from '../../../src/census/model/agent-liveness.ts'
import { type Budget, budgetOf } from '../../../src/schemas/budget.ts'
import type { AgentState } from '../../../src/stages/skyhook/gates.ts'

/** What a census is started with. */
export const censusSettings: CensusSettings = {
  v: 1,
  version: '1',
  nodeName: 'n1',
  podName: 'p1',
  namespace: 'skyhook',
  agentPodSelector: 'a=b',
  defaultBudget: {},
}

export const spec: SkyhookSpec = {
  packages: { tuning: { version: '1.1.0', image: 'registry.example.com/tuning', configMap: { a: '1' } } },
}

export function skyhookWith(
  change: { spec?: SkyhookSpec; metadata?: Partial<Skyhook['metadata']>; status?: Skyhook['status'] } = {},
): Skyhook {
  return {
    metadata: { name: 'demo', uid: 'demo-uid', resourceVersion: '7', generation: 3, ...change.metadata },
    spec: change.spec ?? spec,
    ...(change.status && { status: change.status }),
  }
}

export const entry = (change: Partial<NodeStateEntry> = {}): NodeStateEntry => ({
  name: 'tuning',
  version: '1.1.0',
  image: 'registry.example.com/tuning',
  stage: 'config',
  state: 'complete',
  ...change,
})

export type NodeReport = {
  readonly status?: string
  readonly entries?: readonly NodeStateEntry[]
  readonly stateText?: string
  readonly of?: SkyhookSpec
  readonly reason?: readonly [reason: string, message: string, more?: Partial<keys.PublishedReason>]
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string | undefined>>
  readonly uid?: string
  readonly companion?: Readonly<Record<string, unknown>>
}

/** Its stage has failed three times, so that the node stalls its Skyhook. */
export const failedForGood: NodeReport = {
  status: 'erroring',
  entries: [entry({ stage: 'apply', state: 'erroring', restarts: 3 })],
}

/** A Node as its agent publishes it; by default complete for the spec above. `status: ''` = nothing published yet. */
export function nodeReporting(name: string, report: NodeReport = {}): CensusNode {
  const { status = 'complete', entries = [entry()], of = spec, uid = `${name}-uid` } = report
  const stateText =
    report.stateText ?? JSON.stringify(Object.fromEntries(entries.map((one) => [`${one.name}|${one.version}`, one])))
  const companion = {
    v: 1,
    rev: 4,
    sha256: sha256Hex(stateText),
    nodeUID: uid,
    applied: appliedHash(of),
    ...report.companion,
  }
  const all: Record<string, string | undefined> = {
    ...(status !== '' && {
      [keys.nodeStateKey('demo')]: stateText,
      [keys.statusKey('demo')]: status,
      [keys.journalKey('demo')]: JSON.stringify(companion),
    }),
    ...(report.reason && {
      [keys.reasonKey('demo')]: JSON.stringify({
        reason: report.reason[0],
        message: report.reason[1],
        since: '2026-11-20T14:00:00Z',
        ...report.reason[2],
      }),
    }),
    ...report.annotations,
  }
  const annotations = Object.fromEntries(
    Object.entries(all).filter((pair): pair is [string, string] => pair[1] !== undefined),
  )
  const labels = { 'kubernetes.io/hostname': name, ...report.labels }
  return censusNode({ metadata: { name, uid, resourceVersion: '1', labels, annotations } })
}

export const allAgents = (state: AgentState = 'ready', others: Readonly<Record<string, AgentState>> = {}): Agents => ({
  ready: 3,
  of: (node) => others[node] ?? state,
  isDead: (node) => (others[node] ?? state) === 'silent',
})

export function countsOf(
  { metadata, spec }: Skyhook,
  nodes: readonly CensusNode[],
  agents: Agents = allAgents(),
  policy?: PolicyKnowledge,
  defaultBudget: Budget = {},
): Counts {
  return countSelectedNodes(
    { metadata, spec, budget: budgetOf(spec, defaultBudget), stale: false, policy },
    nodes,
    agents,
  )
}
