/** Breaks one thing of a cluster, 30 s ago, and compares what explain and doctor say of it. */
import { expect } from 'vitest'
import type { FindingId } from '../../../src/cli/doctor/finding.ts'
import type { Gate } from '../../../src/cli/reason/explain/explain-node.ts'
import type { Cause } from '../../../src/cli/reason/explain/finding.ts'
import { pauseKey } from '../../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import {
  agentPod,
  beforeReboot,
  type ClusterObjects,
  healthyCluster,
  heldSlot,
  look,
  type PodState,
  waitingFor,
  withReady,
  withReport,
} from './cluster-answers.ts'

export const withNode = (name: string, change: (node: KubernetesNode) => KubernetesNode, objects = healthyCluster) => ({
  ...objects,
  nodes: objects.nodes.map((node) => (node.metadata.name === name ? change(node) : node)),
})
export const withPod = (name: string, state: PodState | undefined, objects = healthyCluster): ClusterObjects => ({
  ...objects,
  pods: objects.pods.flatMap((pod) =>
    pod.metadata.name !== `skyhookd-${name}` ? [pod] : state === undefined ? [] : [agentPod(name, state)],
  ),
})
export const notStarted = (reason: string, message?: string): PodState => ({
  isReady: false,
  seconds: 30,
  state: waitingFor(reason, message),
})
export const crashed = (reason: string, exitCode: number): PodState => ({
  ...notStarted('CrashLoopBackOff', 'back-off 20s restarting failed container'),
  lastState: { terminated: { reason, exitCode } },
  restarts: 3,
})
export const onAll = (state: PodState): ClusterObjects => ({
  ...healthyCluster,
  pods: ['node-1', 'node-2', 'node-3'].map((name) => agentPod(name, state)),
})
/** The kubelet of node-1 is silent for that long, and the node controller has noticed it after 40 s. */
export const silentKubelet = (seconds: number, objects = healthyCluster): ClusterObjects => {
  const silent = { ...objects, heartbeats: { ...objects.heartbeats, 'node-1': seconds } }
  if (seconds < 40) return silent
  const noticed = withNode('node-1', (node) => withReady(node, 'Unknown', seconds - 40), silent)
  return withPod('node-1', { isReady: false, seconds: seconds - 40, createdSeconds: 86_400 }, noticed)
}
export const slot = (...of: Parameters<typeof heldSlot>): ClusterObjects => ({
  ...healthyCluster,
  leases: [heldSlot(...of)],
})
export const rebooting = (bootId: string, seconds = 70): ClusterObjects =>
  beforeReboot(slot('node-1', 'rebooting', seconds), bootId)
export const refused = (message: string): ClusterObjects => ({
  ...healthyCluster,
  pods: [],
  warnings: [{ kind: 'DaemonSet', name: 'skyhookd', message }],
})
export const report = (reason: string, message: string, more: object = {}): ClusterObjects =>
  withReport(healthyCluster, { node: 'node-1', reason, message, ...more })
export const paused = (objects: ClusterObjects): ClusterObjects => ({
  ...objects,
  skyhooks: objects.skyhooks.map((one) => ({
    ...one,
    metadata: { ...one.metadata, annotations: { [pauseKey]: 'true' } },
  })),
})

/** Nothing is wrong with a node that is next in line, or that fetches its packages. */
const isHealthy: ReadonlySet<Cause> = new Set(['next-in-line', 'preparing'])
export const causesIn = (gates: readonly Gate[]): readonly Cause[] =>
  gates.flatMap(({ findings }) => findings.map(({ cause }) => cause)).filter((cause) => !isHealthy.has(cause))

/** What is broken, and what explain, of node-1, and doctor have to say of it. */
export type BrokenCluster = {
  readonly title: string
  readonly broken: ClusterObjects
  readonly cause: Cause
  /** `Kind/name`, the first object of the finding. */
  readonly object: string
  /** What message, remedy and command of explain say. */
  readonly says: readonly string[]
  /** What they must not say: it would not help. */
  readonly never?: readonly string[]
  /** All that doctor finds. */
  readonly doctor: readonly FindingId[]
  /** What doctor says, where its message is not that of explain. */
  readonly doctorSays?: string
  /** Causes that are named after the first one. */
  readonly also?: readonly Cause[]
  /** By the remedy as it is printed: nothing is found afterwards. */
  readonly mended?: ClusterObjects
}

const image = 'failed to pull and unpack image: 401 Unauthorized'
export const gpu = { key: 'gpu', effect: 'NoSchedule' } as const
export const unpullable = notStarted('ErrImagePull', image)

/**
 * Explain names the cause first and doctor finds it, and neither blames anything beside it. Returns what is found once
 * it is mended.
 */
export async function findingsLeft(situation: BrokenCluster): Promise<readonly string[]> {
  const { broken, cause, object, says, never = [], also = [], doctor, doctorSays, mended } = situation
  const { explanation, checks } = await look(broken)
  const { verdict, gates } = explanation
  const first = verdict?.objects[0]
  const found = checks.flatMap(({ findings }) => findings)
  expect([verdict?.cause, `${first?.kind}/${first?.name}`]).toEqual([cause, object])
  expect(causesIn(gates)).toEqual([cause, ...also])
  const text = [verdict?.message, verdict?.unblock, verdict?.command].join('\n')
  for (const part of says) expect(text).toContain(part)
  for (const part of never) expect(text).not.toContain(part)
  expect(found.map(({ id }) => id)).toEqual(doctor)
  expect(found.map(({ message }) => message).join('\n')).toContain(doctorSays ?? says[0])
  if (mended === undefined) return []
  const after = await look(mended)
  const ids = after.checks.flatMap(({ findings }) => findings.map(({ id }) => id))
  return [...causesIn(after.explanation.gates), ...ids]
}
