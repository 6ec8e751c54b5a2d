/** A simulated node as a person with a kubeconfig sees it, who asks `kubectl skyhook plan` what an edit would do. */
import { planFile, type FilePlan } from '../../../src/cli/reason/dry-run/plan-file.ts'
import { lastAppliedKey } from '../../../src/cli/reason/plan/three-way-merge.ts'
import type { Manifest } from '../../../src/cli/reason/dry-run/manifests.ts'
import { bootstrapScope, controlPlaneScope, skyhookScope } from '../../../src/lease/names.ts'
import { newLease } from '../../../src/lease/slot.ts'
import { skyhookTypeMeta } from '../../../src/schemas/api.ts'
import { finalizerName } from '../../../src/schemas/skyhook.ts'
import type { OwnSlot, SkyhookView } from '../../../src/stages/model/snapshot.ts'
import { createClient } from '../../kit/api-server/client.ts'
import { readSchemas } from '../../kit/api-server/definitions.ts'
import { keyOf } from '../../kit/api-server/resources.ts'
import { createSimulatedApiServer } from '../../kit/api-server/server.ts'
import { createVersion, type SimObject, type Version } from '../../kit/api-server/versions.ts'
import type { NodeState } from '../../kit/node-simulator/node-state.ts'
import { createSeededRandom, createVirtualClock } from '../../kit/virtual-clock.ts'

const namespace = 'skyhook'
const schemas = readSchemas()
const random = createSeededRandom(1)

/** The plan of an apply of the manifests, or of their deletion, through the whole tool but its command line. */
export async function planOf(node: NodeState, manifests: readonly Manifest[], isDelete: boolean): Promise<FilePlan> {
  const clock = createVirtualClock(node.nowMs + node.wallOffsetMs, { settleTurns: 0 })
  const server = createSimulatedApiServer({ clock, random, schemas })
  const objects = objectsOf(node)
  const tables = new Map(
    Object.entries(objects).map(([plural, list]) => [
      plural,
      new Map(list.map((object, at): [string, Version] => versionOf(object, at + 2))),
    ]),
  )
  server.restore({ revision: 100, tables })
  const { signal } = new AbortController()
  return await planFile(
    { manifests, others: [] },
    {
      transport: createClient(server, { name: 'person', clock, random }),
      namespace,
      clock,
      signal,
      isDelete,
      checkEvictions: false,
    },
  )
}

function versionOf(object: SimObject, revision: number): [string, Version] {
  const key = keyOf(object.metadata.namespace ?? '', object.metadata.name)
  return [key, createVersion(key, object, revision, undefined)]
}

function objectsOf(node: NodeState): Readonly<Record<string, readonly SimObject[]>> {
  const { name } = node.node.metadata
  return {
    nodes: [{ apiVersion: 'v1', kind: 'Node', ...node.node }] as readonly object[] as readonly SimObject[],
    skyhooks: [...node.views.values()].map(
      ({ metadata, spec }) =>
        ({
          ...skyhookTypeMeta,
          metadata: { ...metadata, annotations: appliedAnnotations(metadata, spec), finalizers: [finalizerName] },
          spec,
        }) as object as SimObject,
    ),
    leases: node.slots.map((slot) => leaseOf(node, slot)),
    pods: [
      ...node.pods.map((pod) => ({
        apiVersion: 'v1',
        kind: 'Pod',
        ...pod,
        spec: { ...pod.spec, nodeName: name },
      })),
      agentPod(name),
    ] as readonly object[] as readonly SimObject[],
  }
}

/** As kubectl leaves it: what a file no longer has is removed by the next apply. */
const appliedAnnotations = (
  { name, annotations = {} }: SkyhookView['metadata'],
  spec: SkyhookView['spec'],
): Readonly<Record<string, string>> => ({
  ...annotations,
  [lastAppliedKey]: JSON.stringify({ ...skyhookTypeMeta, metadata: { name, annotations }, spec }),
})

const agentPod = (nodeName: string): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'agent',
    namespace,
    uid: 'agent-uid',
    labels: { 'app.kubernetes.io/name': 'skyhookd' },
    ownerReferences: [
      { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'skyhookd', uid: 'agents-uid', controller: true },
    ],
  },
  spec: { nodeName },
  status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
})

function leaseOf(node: NodeState, slot: OwnSlot): SimObject {
  const { scope, skyhook, skyhookUid = '', phase, uid, isBootstrap = false, lease } = slot
  const { metadata, status } = node.node
  const owner = { name: skyhook, uid: skyhookUid }
  const where =
    scope === 'control-plane' ? controlPlaneScope : isBootstrap ? bootstrapScope(owner) : skyhookScope(owner)
  const isCounted = lease.endsWith('-0')
  const written = newLease(
    where,
    isCounted ? { index: 0 } : { kind: 'recovery' },
    { name: metadata.name, uid: metadata.uid, bootId: status?.nodeInfo?.bootID ?? '' },
    { phase, generation: node.views.get(skyhook)?.metadata.generation ?? 0, packages: [] },
    node.nowMs,
  )
  return {
    ...written,
    metadata: { ...written.metadata, namespace, uid, resourceVersion: '1' },
  } as object as SimObject
}
