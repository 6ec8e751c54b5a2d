/** A cluster in which `doctor` finds nothing, for tests that break one thing of it. */
import { listedSlot } from '../slots/listed-slot.ts'
import type { ClusterFacts } from '../../../src/cli/doctor/cluster-facts.ts'
import { agentPermissions, expectedPolicies } from '../../../src/cli/doctor/permissions.ts'
import { levelSuffixes } from '../../../src/cli/doctor/cluster-report.ts'
import { expectedDefinitions } from '../../../src/cli/doctor/read/check-cluster.ts'
import type { AgentPod } from '../../../src/cli/fleet/fleet-view/fleet-view.ts'
import { hostKey } from '../../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import type { Skyhook } from '../../../src/schemas/skyhook.ts'
import { skyhookScope } from '../../../src/lease/names.ts'
import type { Slot, SlotTarget } from '../../../src/lease/slot.ts'
import { known } from '../../../src/stages/model/snapshot.ts'
import { defaultSettings } from '../../../src/cli/fleet/fleet-view/settings.ts'

export const nowMs = Date.parse('2026-01-02T00:00:00Z')
const dayMs = 86_400_000
export const at = (ms: number): string => new Date(ms).toISOString()

export const nodeOf = (name: string, annotations: Readonly<Record<string, string>> = {}): KubernetesNode => ({
  metadata: {
    name,
    uid: `uid-${name}`,
    resourceVersion: '1',
    labels: { pool: 'a', 'kubernetes.io/os': 'linux' },
    creationTimestamp: at(nowMs - dayMs),
    annotations: { [hostKey]: '{"os":"Debian 12","kernel":"6.1.0","findings":[]}', ...annotations },
  },
})

export const agentOn = (node: string, rest: Partial<AgentPod> = {}): AgentPod => ({
  name: `skyhookd-${node}`,
  uid: `uid-skyhookd-${node}`,
  createdAt: at(nowMs - dayMs),
  node,
  isReady: true,
  sinceMs: nowMs - dayMs,
  isDeleting: false,
  containerError: undefined,
  restarts: 0,
  image: 'registry.test/skyhookd:1.0.0',
  ...rest,
})

export const skyhookOf = (name: string, spec: Partial<Skyhook['spec']> = {}): Skyhook => ({
  metadata: { name, uid: `uid-${name}`, resourceVersion: '1' },
  spec: { nodeSelectors: { matchLabels: { pool: 'a' } }, packages: {}, ...spec },
})

/** A slot of Skyhook `tuning`, renewed at this time. */
export function slotOf(
  node: string,
  { skyhook = 'tuning', uid = `uid-${node}`, renewedAtMs = nowMs, target = { index: 0 } as SlotTarget } = {},
): Slot {
  const scope = skyhookScope({ name: skyhook, uid: `uid-${skyhook}` })
  return listedSlot(scope, target, { name: node, uid, bootId: 'b' }, {}, { renewedAtMs })
}

export const fitCluster: ClusterFacts = {
  toolVersion: '1.0.0',
  fleet: {
    takenAtMs: nowMs,
    namespace: 'skyhook',
    skyhooks: known([skyhookOf('tuning')]),
    policies: known([]),
    nodes: known([nodeOf('n1'), nodeOf('n2')]),
    slots: known([slotOf('n1')]),
    ledgers: known([]),
    strays: known([]),
    agents: known([agentOn('n1'), agentOn('n2')]),
    daemonSet: known({
      name: 'skyhookd',
      namespace: 'skyhook',
      serviceAccount: 'skyhookd',
      version: '1.0.0',
      image: 'registry.test/skyhookd:1.0.0',
      nodeSelector: { 'kubernetes.io/os': 'linux' },
      tolerations: [{ operator: 'Exists' }],
    }),
    settings: known(defaultSettings),
  },
  vitals: {
    heartbeats: known(
      new Map([
        ['n1', nowMs - 4_000],
        ['n2', nowMs - 9_000],
      ]),
    ),
    warnings: known([]),
  },
  serverVersion: known('v1.33.1'),
  definitions: known(
    new Map(expectedDefinitions().map(({ name, schema }) => [name, { schema, isEstablished: true }] as const)),
  ),
  policies: known(
    expectedPolicies.map(({ suffix, mayFailOpen }) => ({
      name: `skyhookd-${suffix}`,
      failurePolicy: mayFailOpen ? 'Ignore' : 'Fail',
      expressions: ["request.userInfo.username == 'system:serviceaccount:skyhook:skyhookd'"],
    })),
  ),
  bindings: known(
    expectedPolicies.flatMap(({ suffix, bindings }) =>
      Array.from({ length: bindings }, (_, index) => ({
        name: `skyhookd-${suffix}-${index}`,
        policy: `skyhookd-${suffix}`,
        actions: ['Deny'],
      })),
    ),
  ),
  trials: known(expectedPolicies.map(({ suffix }) => ({ suffix, outcome: 'refused' }))),
  flowSchemas: known(
    levelSuffixes.map((suffix) => ({
      name: `skyhookd-${suffix}`,
      priorityLevel: `skyhookd-${suffix}`,
      serviceAccounts: ['skyhook/skyhookd'],
    })),
  ),
  priorityLevels: known(levelSuffixes.map((suffix) => `skyhookd-${suffix}`)),
  access: known(agentPermissions.map((permission) => ({ permission, isAllowed: permission.isOptional !== true }))),
  election: known({
    metadata: { name: 'skyhookd-census', uid: 'u', resourceVersion: '1' },
    spec: { holderIdentity: 'n1', renewTime: at(nowMs - 5_000), leaseDurationSeconds: 15 },
  }),
}
