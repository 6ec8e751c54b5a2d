/** The fleet that the census is measured with: cloud nodes whose agents are played, and Skyhooks that all completed. */
import { metadataOnlyAccept, type KubeObject } from '../src/kube/objects.ts'
import { skyhookScope } from '../src/lease/names.ts'
import { newLease } from '../src/lease/slot.ts'
import type { Skyhook, SkyhookSpec } from '../src/schemas/skyhook.ts'
import {
  leasesPath,
  namespace,
  publicationOf,
  type AgentReport,
  type CensusCluster,
} from '../test/cluster/census-cluster.ts'
import { agentPod, cloudNode, conditionsAt, poolLabel, poolOf, type PodTemplate } from './cloud-node.ts'
import {
  changesOfRollout,
  completeReport,
  createPolicies,
  packageNames,
  agentReport,
  specOf,
} from './census-rollout.ts'
import { runAll, runPaced } from './paced.ts'

export type FleetSize = {
  readonly nodes: number
  readonly skyhooks: number
  /** How many of the Skyhooks select every node. The others select a tenth of the nodes each. */
  readonly wide: number
}

export type Fleet = {
  readonly nodeNames: readonly string[]
  /** Those that select every node, policies first. */
  readonly wideNames: readonly string[]
  /** Bytes of the JSON of a Node without what agents write, and of one with it. */
  readonly nodeBytes: readonly [bare: number, whole: number]
  /** Renews each node's Lease every 10 s, until the signal aborts. Resolves with how many there were in a second. */
  renewLeases(signal: AbortSignal): Promise<number>
  /** Reports each Node's status every five minutes. */
  reportStatus(signal: AbortSignal): Promise<unknown>
  /** Rolls one wide Skyhook after the other out, until the signal aborts. Resolves with the changes of a status. */
  rollOut(changesPerSecond: number, signal: AbortSignal): Promise<{ readonly done: number; readonly ms: number }>
}

const mergePatch = 'application/merge-patch+json'
const slotsInUse = 50
const leaseRenewalMs = 10_000
const nodeStatusMs = 300_000
const nodeLeases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'

export const leaseRenewalsPerSecond = (nodes: number): number => nodes / (leaseRenewalMs / 1000)

export async function createFleet(cluster: CensusCluster, { nodes, skyhooks, wide }: FleetSize): Promise<Fleet> {
  const { admin } = cluster
  const nodeNames = Array.from({ length: nodes }, (_, at) => {
    return `ip-10-0-${Math.floor(at / 256)}-${at % 256}.eu-central-1.compute.internal`
  })
  await createPolicies(cluster)
  const specs = new Map<string, SkyhookSpec>()
  for (let at = 0; at < skyhooks; at++) {
    const name = `host-tuning-${at}`
    const { spec } = await cluster.apply(name, specOf(at, { isWide: at < wide }))
    specs.set(name, spec)
  }
  const wideNames = [...specs.keys()].slice(0, wide)
  const isSelected = ({ nodeSelectors }: SkyhookSpec, at: number): boolean => {
    const pool = nodeSelectors?.matchLabels?.[poolLabel]
    return pool === undefined || pool === poolOf(at)
  }

  const { template } = (
    await admin.json<{ readonly spec: { readonly template: PodTemplate } }>(
      'GET',
      `/apis/apps/v1/namespaces/${namespace}/daemonsets/skyhookd`,
    )
  ).spec
  const uids: string[] = []
  const revs: number[] = nodeNames.map(() => 1)
  const report = async (at: number, skyhook: string, what: AgentReport): Promise<void> => {
    const identity = { rev: (revs[at] = (revs[at] ?? 0) + 1), nodeUID: uids[at] ?? '' }
    const metadata = publicationOf(skyhook, what, identity)
    await admin.json('PATCH', `/api/v1/nodes/${nodeNames[at]}`, {
      body: { metadata },
      contentType: mergePatch,
      accept: metadataOnlyAccept, // less work for a server that shares the machine
    })
  }
  await runAll(nodes, async (at) => {
    const name = nodeNames[at] ?? ''
    const now = new Date().toISOString()
    const { metadata } = await admin.json<KubeObject>('POST', '/api/v1/nodes', {
      query: { fieldManager: 'kubelet' },
      body: cloudNode(name, at, now),
    })
    const nodeUID = (uids[at] = metadata.uid ?? '')
    const all = [...specs]
      .filter(([, spec]) => isSelected(spec, at))
      .map(([skyhook, applied]) => publicationOf(skyhook, completeReport(applied), { rev: 1, nodeUID }))
    const [annotations, labels] = (['annotations', 'labels'] as const).map((what) =>
      Object.assign({}, ...all.map((one) => one[what])),
    )
    const body = { metadata: { annotations, labels } }
    await admin.json('PATCH', `/api/v1/nodes/${name}`, { body, contentType: mergePatch })
    await admin.json('POST', `/api/v1/namespaces/${namespace}/pods`, { body: agentPod(name, template) })
    await cluster.setAgent(name, 'ready')
    const spec = { holderIdentity: name, leaseDurationSeconds: 40, renewTime: microTime() }
    await admin.json('POST', nodeLeases, { body: { metadata: { name }, spec } })
  })

  const renew = async (at: number): Promise<unknown> =>
    await admin.json('PATCH', `${nodeLeases}/${nodeNames[at % nodes]}`, {
      body: { spec: { renewTime: microTime() } },
      contentType: mergePatch,
    })
  const reportStatus = async (at: number): Promise<unknown> =>
    await admin.json('PATCH', `/api/v1/nodes/${nodeNames[at % nodes]}/status`, {
      query: { fieldManager: 'kubelet' },
      body: { status: { conditions: conditionsAt(new Date().toISOString()) } },
      contentType: 'application/strategic-merge-patch+json',
    })

  const rollOutOne = async (
    skyhook: string,
    revision: number,
    changesPerSecond: number,
    signal: AbortSignal,
  ): Promise<number> => {
    const packages = { [packageNames[0] ?? '']: { configMap: { revision: String(revision) } } }
    const edited = await cluster.edit(skyhook, { spec: { packages } })
    const slots = await takeSlots(cluster, edited, nodeNames)
    const changes = changesOfRollout(nodes, slotsInUse)
    const ended = new AbortController()
    const { done } = await runPaced(changesPerSecond, AbortSignal.any([signal, ended.signal]), async (at) => {
      const change = changes[at]
      if (at === changes.length - 1) ended.abort()
      if (change !== undefined) await report(change.node, skyhook, agentReport(change, edited.spec))
    })
    await runAll(slots.length, async (at) => await admin.json('DELETE', `${leasesPath}/${slots[at]}`))
    return done
  }

  return {
    nodeNames,
    wideNames,
    nodeBytes: await sizesOfNode(cluster, nodeNames[0] ?? ''),
    async renewLeases(signal) {
      const { done, ms } = await runPaced(leaseRenewalsPerSecond(nodes), signal, renew)
      return done / (ms / 1000)
    },
    reportStatus: async (signal) => await runPaced(nodes / (nodeStatusMs / 1000), signal, reportStatus),
    async rollOut(changesPerSecond, signal) {
      const startedMs = performance.now()
      let done = 0
      for (let at = 0; !signal.aborted; at++)
        done += await rollOutOne(wideNames[(at * 2) % wideNames.length] ?? '', at, changesPerSecond, signal)
      return { done, ms: performance.now() - startedMs }
    },
  }
}

const microTime = (): string => new Date().toISOString().replace('Z', '000Z')

/** Slots as a rollout holds them, so that a LIST of them has its usual size. Returns their names. */
async function takeSlots(
  { admin }: CensusCluster,
  { metadata }: Skyhook,
  nodeNames: readonly string[],
): Promise<string[]> {
  const names: string[] = []
  const progress = { phase: 'working', generation: metadata.generation ?? 1, packages: [] } as const
  await runAll(slotsInUse, async (index) => {
    const node = { name: nodeNames[index % nodeNames.length] ?? '', uid: `uid-${index}`, bootId: '' }
    const body = newLease(skyhookScope(metadata), { index }, node, progress, Date.now())
    await admin.json('POST', leasesPath, { body })
    names.push(body.metadata.name)
  })
  return names
}

async function sizesOfNode({ admin }: CensusCluster, name: string): Promise<[number, number]> {
  const node = await admin.json<KubeObject>('GET', `/api/v1/nodes/${name}`)
  const isForeign = ([key]: [string, unknown]): boolean => !key.startsWith('skyhook.nvidia.com/')
  const {
    annotations = {},
    managedFields,
    ...metadata
  } = node.metadata as KubeObject['metadata'] & {
    readonly managedFields?: readonly { readonly manager?: string }[]
  }
  const bare = {
    ...node,
    metadata: {
      ...metadata,
      labels: Object.fromEntries(Object.entries(metadata.labels ?? {}).filter(isForeign)),
      annotations: Object.fromEntries(Object.entries(annotations).filter(isForeign)),
      managedFields: managedFields?.filter(({ manager }) => manager !== 'skyhookd'),
    },
  }
  return [Buffer.byteLength(JSON.stringify(bare)), Buffer.byteLength(JSON.stringify(node))]
}
