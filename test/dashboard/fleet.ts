/** A fleet for the dashboard: Nodes, agents and slots on a simulated API server, on the machine's clock. */
import { systemClock, systemRandom } from '../../src/daemon/platform/system-clock.ts'
import type { KubeObject } from '../../src/kube/objects.ts'
import type { KubeTransport } from '../../src/kube/transport.ts'
import { skyhookScope } from '../../src/lease/names.ts'
import { newLease } from '../../src/lease/slot.ts'
import { journalKey, nodeStateKey, reasonKey, statusKey } from '../../src/schemas/annotations.ts'
import { skyhooksPath, skyhookTypeMeta } from '../../src/schemas/api.ts'
import { sha256Hex } from '../../src/schemas/canonical-json.ts'
import type { NodeStatus, SkyhookSpec, SlotPhase } from '../../src/schemas/skyhook.ts'
import { appliedHash } from '../../src/stages/model/package-inputs.ts'
import { createClient } from '../kit/api-server/client.ts'
import { createSimulatedApiServer, type SimulatedApiServer } from '../kit/api-server/server.ts'

const podsPath = '/api/v1/namespaces/skyhook/pods'
const eventsPath = '/api/v1/namespaces/default/events'
const leasesPath = '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases'
const merge = 'application/merge-patch+json'

const spec: SkyhookSpec = {
  nodeSelectors: { matchLabels: { pool: 'a' } },
  interruptionBudget: { count: 4 },
  packages: { tuned: { version: '1.2.0', image: 'registry.test/tuned', interrupt: { type: 'reboot' } } },
}

export type Fleet = {
  readonly server: SimulatedApiServer
  readonly transport: KubeTransport
  /** What the agent of a node publishes. */
  publish(
    node: string,
    status: NodeStatus,
    reason?: { readonly reason: string; readonly message: string },
    skyhook?: string,
  ): Promise<void>
  /** An Event of the agent of a node, a minute and a half old. */
  tell(node: string, reason: string, message: string): Promise<void>
  takeSlot(node: string, index: number, phase: SlotPhase): Promise<void>
  giveBack(index: number): Promise<void>
}

/**
 * Skyhook `tuning` selects all of them; `node-0001` and so on. `labelsOf`: more labels of a node; Skyhook `kernel`
 * selects those with `kernel=rt`.
 */
export async function startFleet(
  count: number,
  labelsOf: (number: number) => Readonly<Record<string, string>> = () => ({}),
): Promise<Fleet> {
  const server = createSimulatedApiServer({ clock: systemClock, random: systemRandom })
  const connect = (name: string) => createClient(server, { name, clock: systemClock, random: systemRandom })
  const admin = connect('admin')
  await admin.json('POST', '/api/v1/namespaces', { body: { metadata: { name: 'skyhook' } } })
  const skyhook = await admin.json<KubeObject>('POST', skyhooksPath, {
    body: { ...skyhookTypeMeta, metadata: { name: 'tuning' }, spec },
  })
  await admin.json('POST', skyhooksPath, {
    body: {
      ...skyhookTypeMeta,
      metadata: { name: 'kernel' },
      spec: { ...spec, nodeSelectors: { matchLabels: { kernel: 'rt' } } },
    },
  })
  const uids = new Map<string, string>()
  const state = JSON.stringify({
    'tuned|1.2.0': {
      name: 'tuned',
      version: '1.2.0',
      image: 'registry.test/tuned',
      stage: 'config',
      state: 'complete',
    },
  })
  const scope = skyhookScope({ name: 'tuning', uid: skyhook.metadata.uid })

  const publish: Fleet['publish'] = async (node, status, reason, skyhook = 'tuning') => {
    const companion = { v: 1, rev: 1, sha256: sha256Hex(state), nodeUID: uids.get(node), applied: appliedHash(spec) }
    const since = new Date(Date.now() - 90_000).toISOString()
    const annotations = {
      [statusKey(skyhook)]: status,
      [nodeStateKey(skyhook)]: state,
      [journalKey(skyhook)]: JSON.stringify(status === 'complete' ? companion : { ...companion, applied: undefined }),
      [reasonKey(skyhook)]: reason === undefined ? null : JSON.stringify({ ...reason, since }),
    }
    await admin.json('PATCH', `/api/v1/nodes/${node}`, { body: { metadata: { annotations } }, contentType: merge })
  }

  for (let number = 1; number <= count; number++) {
    const name = nodeName(number)
    const node = await admin.json<KubeObject>('POST', '/api/v1/nodes', {
      body: { metadata: { name, labels: { pool: 'a', 'kubernetes.io/hostname': name, ...labelsOf(number) } } },
    })
    uids.set(name, node.metadata.uid)
    const labels = { 'app.kubernetes.io/name': 'skyhookd' }
    const pod = `skyhookd-${number}`
    await admin.json('POST', podsPath, {
      body: {
        metadata: { name: pod, labels },
        spec: { nodeName: name, containers: [{ name: 'agent', image: 'agent' }] },
      },
    })
    const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: new Date().toISOString() }]
    await admin.json('PATCH', `${podsPath}/${pod}/status`, { body: { status: { conditions } }, contentType: merge })
  }
  return {
    server,
    transport: connect('person'),
    publish,
    async tell(node, reason, message) {
      const involvedObject = { apiVersion: 'v1', kind: 'Node', name: node, uid: node }
      const lastTimestamp = new Date(Date.now() - 90_000).toISOString()
      const metadata = { name: `${node}.${reason.toLowerCase()}`, namespace: 'default' }
      await admin.json('POST', eventsPath, { body: { metadata, involvedObject, reason, message, lastTimestamp } })
    },
    async takeSlot(node, index, phase) {
      const identity = { name: node, uid: uids.get(node) ?? '', bootId: 'boot' }
      const lease = newLease(scope, { index }, identity, { phase, generation: 1, packages: [] }, Date.now() - 45_000)
      await admin.json('POST', leasesPath, { body: lease })
    },
    giveBack: async (index) => await admin.json('DELETE', `${leasesPath}/${scope.namePrefix}.slot-${index}`),
  }
}

export const nodeName = (number: number): string => `node-${String(number).padStart(4, '0')}`

/** A rollout in its middle: each state has nodes, and four are out. */
export async function publishRollout(fleet: Fleet, count: number): Promise<void> {
  const waiting = { reason: 'WaitingForSlot', message: 'the interruption budget is used up: 4 of 4 nodes are out' }
  const failing = { reason: 'StepFailed', message: 'package tuned apply: step apply.sh exited with 1\nno such profile' }
  const blocked = { reason: 'ImagePull', message: 'package tuned: registry.test/tuned:1.2.0 was not found' }
  for (let number = 1; number <= count; number++) {
    const name = nodeName(number)
    if (number <= count * 0.4) await fleet.publish(name, 'complete')
    else if (number <= count * 0.4 + 3) await fleet.publish(name, 'in_progress')
    else if (number === Math.floor(count * 0.4) + 4) await fleet.publish(name, 'erroring', failing)
    else if (number % 50 === 0) await fleet.publish(name, 'blocked', blocked)
    else if (number % 77 === 0) await fleet.publish(name, 'paused')
    else if (number % 91 === 0) await fleet.publish(name, 'disabled')
    else if (number % 95 === 0) await fleet.publish(name, 'unknown')
    else await fleet.publish(name, 'waiting', waiting)
  }
  const phases = ['working', 'draining', 'rebooting', 'failed'] as const
  const first = Math.floor(count * 0.4) + 1
  for (const [index, phase] of phases.entries()) await fleet.takeSlot(nodeName(first + index), index, phase)
}
