/** The Skyhooks and policies that the census is measured with, and what a rollout of one makes nodes publish. */
import { policiesPath, skyhookTypeMeta } from '../src/schemas/api.ts'
import type { SkyhookSpec } from '../src/schemas/skyhook.ts'
import type { AgentReport, CensusCluster } from '../test/cluster/census-cluster.ts'
import { poolCount, poolLabel, poolOf } from './cloud-node.ts'

const policies = ['by-pool', 'by-zone', 'all-alike'] as const
export const packageNames = ['kernel-settings', 'crash-dumps', 'drivers', 'monitoring', 'tuning']

/** The spec of the Skyhook with this number: three with policies come first, the others have budgets. */
export function specOf(at: number, { isWide }: { readonly isWide: boolean }): SkyhookSpec {
  const policy = policies[at]
  return {
    packages: Object.fromEntries(
      packageNames.map((name) => [
        name,
        {
          version: '1.0.0',
          image: `registry.example.com/packages/${name}`,
          configMap: { 'sysctl.conf': 'vm.swappiness = 1\n'.repeat(20) },
          interrupt: { type: 'service', services: ['containerd'] },
        },
      ]),
    ) as NonNullable<SkyhookSpec['packages']>,
    ...(policy === undefined ? { interruptionBudget: { percent: 5 } } : { deploymentPolicy: policy }),
    ...(!isWide && { nodeSelectors: { matchLabels: { [poolLabel]: poolOf(at) } } }),
  }
}

/** Creates the policies that `specOf` names: of many compartments, of few and of the default one alone. */
export async function createPolicies({ admin }: CensusCluster): Promise<void> {
  const compartment = (label: string, value: string): object => ({
    name: value,
    selector: { matchLabels: { [label]: value } },
    budget: { percent: 10 },
    strategy: { exponential: { initialBatch: 1 } },
  })
  const compartments: Record<(typeof policies)[number], readonly object[]> = {
    'by-pool': Array.from({ length: poolCount }, (_, at) => compartment(poolLabel, poolOf(at))),
    'by-zone': ['a', 'b'].map((zone) => compartment('topology.kubernetes.io/zone', `eu-central-1${zone}`)),
    'all-alike': [],
  }
  const standard = { budget: { percent: 10 }, strategy: { linear: { initialBatch: 5, delta: 5 } } }
  for (const name of policies) {
    const spec = { default: standard, compartments: compartments[name] }
    await admin.json('POST', policiesPath, {
      body: { ...skyhookTypeMeta, kind: 'DeploymentPolicy', metadata: { name }, spec },
    })
  }
}

const allPackages = (stageAndState: string): Record<string, string> =>
  Object.fromEntries(packageNames.map((name) => [name, stageAndState]))
/** What an agent publishes that has completed this spec. */
export const completeReport = (applied: SkyhookSpec): AgentReport => ({
  status: 'complete',
  entries: allPackages('post-interrupt/complete'),
  applied,
})

type NodeChange = { readonly node: number; readonly status: 'waiting' | 'in_progress' | 'complete' }

/** All nodes wait; then one after the other works, as many at once as there are slots, and completes. */
export function changesOfRollout(nodes: number, slotsInUse: number): NodeChange[] {
  const changes: NodeChange[] = Array.from({ length: nodes }, (_, node) => ({ node, status: 'waiting' }))
  for (let at = 0; at < nodes + slotsInUse; at++) {
    if (at < nodes) changes.push({ node: at, status: 'in_progress' })
    if (at >= slotsInUse) changes.push({ node: at - slotsInUse, status: 'complete' })
  }
  return changes
}

/** What the agent of a node publishes with a change of the rollout of this spec. */
export function agentReport({ node, status }: NodeChange, spec: SkyhookSpec): AgentReport {
  switch (status) {
    case 'waiting':
      return {
        status,
        entries: allPackages('apply/in_progress'),
        reason: ['WaitingForSlot', 'the budget of 50 nodes is used up'],
      }
    case 'in_progress': {
      const message = `pod shop/cart-${node} (PodDisruptionBudget shop/cart: 0 allowed)`
      const reason = ['DrainBlocked', message] as const
      return { status, entries: allPackages('interrupt/in_progress'), ...(node % 5 === 0 && { reason }) }
    }
    case 'complete':
      return completeReport(spec)
  }
}
