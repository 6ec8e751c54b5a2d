/** What the rows share: the cluster, the journal package, and the meaning of "complete". */
import { afterEach, beforeAll, expect } from 'vitest'
import { type SkyhookStatus, conditionOf } from '../../src/census/model/skyhook-status.ts'
import { apiLevel, cordonKey, cordonedBeforeKey } from '../../src/schemas/annotations.ts'
import type { KubernetesNode, Taint } from '../../src/schemas/kubernetes.ts'
import type { Interrupt, PackageSpec, Skyhook, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { useCluster, type Cluster, type DedicatedSandbox, type NodeName } from '../kit/cluster/cluster.ts'
import { patch, paths } from '../kit/cluster/kube.ts'
import type { Moment, View } from '../kit/cluster/moments.ts'
import { manifest, selectorLabel, publishedState, type Manifest, type PublishedState } from '../kit/cluster/skyhooks.ts'
import { workWithoutSlot } from '../kit/cluster/slots.ts'
import { pushJournalPackages, repository } from '../kit/files/journal-images.ts'
import { linesOf, type Line } from '../kit/files/journal-lines.ts'

export type Conformance = Cluster & {
  /** The journal package at one of its versions. `image` is written without tag unless `more` says otherwise. */
  pack(version: string, more?: Partial<PackageSpec>): PackageSpec
  /** Its repository, as the Node shows it. */
  readonly image: string
  /** The digest of the image of a version. */
  digest(version: string): string
  lines(node: NodeName, skyhook: string): Promise<Line[]>
  taint(node: NodeName, taint: Taint): Promise<void>
  untaint(node: NodeName, key: string): Promise<void>
}

const pushMs = 120_000

/** As `useCluster`, and removes each row's Skyhooks and taints after it. */
export function useConformance(dedicated?: DedicatedSandbox): Conformance {
  const cluster = useCluster(dedicated)
  const applied = new Set<string>()
  const tainted = new Map<NodeName, Set<string>>()
  const conformance = {} as Conformance

  beforeAll(async () => {
    const digests = await pushJournalPackages(cluster.sandbox)
    const { api, registry } = cluster
    const image = `${registry}/${repository}`
    const taints = async (node: NodeName): Promise<readonly Taint[]> =>
      (await api.json<KubernetesNode>('GET', `${paths.nodes}/${node}`)).spec?.taints ?? []
    const setTaints = async (node: NodeName, list: readonly Taint[]): Promise<unknown> =>
      await patch(api, `${paths.nodes}/${node}`, { spec: { taints: list } })

    Object.defineProperties(conformance, Object.getOwnPropertyDescriptors(cluster))
    Object.assign(conformance, {
      image,
      pack: (version, more = {}) => ({ version, image, ...more }),
      digest: (version) => digests[version] ?? '',
      lines: async (node, skyhook) => await linesOf(cluster.host(node), skyhook),
      async apply(applying, ...nodes) {
        applied.add(applying.metadata.name)
        return await cluster.apply(applying, ...nodes)
      },
      async remove(skyhook) {
        await cluster.remove(skyhook)
        applied.delete(skyhook)
      },
      async taint(node, taint) {
        tainted.set(node, (tainted.get(node) ?? new Set()).add(taint.key))
        await setTaints(node, [...(await taints(node)), taint])
      },
      async untaint(node, key) {
        await setTaints(
          node,
          (await taints(node)).filter((taint) => taint.key !== key),
        )
      },
    } satisfies Partial<Conformance>)
  }, pushMs)

  afterEach(async () => {
    for (const [node, keys] of tainted) for (const key of keys) await conformance.untaint(node, key)
    tainted.clear()
    for (const skyhook of [...applied].toReversed()) await conformance.remove(skyhook)
  })
  return conformance
}

/** A Skyhook for the nodes that another one of the same row selects. */
export const sharingNodesOf = (
  other: string,
  name: string,
  spec: SkyhookSpec,
  annotations: Record<string, string> = {},
): Manifest => {
  const made = manifest(name, { ...spec })
  return {
    ...made,
    metadata: { name, annotations },
    spec: { ...made.spec, nodeSelectors: { matchLabels: { [selectorLabel]: other } } },
  }
}

export const service = (...services: readonly string[]): Interrupt => ({ type: 'service', services })
export const reboot: Interrupt = { type: 'reboot' }

export const skyhookOf = (view: View, name: string): Skyhook | undefined => view.skyhooks.get(name)
export const statusOf = (view: View, name: string): SkyhookStatus =>
  (skyhookOf(view, name)?.status ?? {}) as SkyhookStatus
export const nodeOf = (view: View, node: NodeName, skyhook: string): PublishedState =>
  publishedState(view.nodes.get(node), skyhook)

/** `config/complete` and the like of one entry of nodeState. */
export function entryOf(view: View, node: NodeName, skyhook: string, key: string): string {
  const entry = nodeOf(view, node, skyhook).state[key]
  return entry === undefined ? 'absent' : `${entry.stage}/${entry.state}`
}

/** Waits for Ready at the newest generation of the API server. */
export async function awaitReady({ api, history }: Cluster, skyhook: string, withinMs = 60_000): Promise<void> {
  const { metadata } = await api.json<Skyhook>('GET', `${paths.skyhooks}/${skyhook}`)
  await history.eventually(
    `${skyhook} is Ready at generation ${metadata.generation}`,
    (view) => {
      const status = statusOf(view, skyhook)
      const ready = conditionOf(status, 'Ready')
      return (
        ready?.status === 'True' && ready.observedGeneration === metadata.generation && status.status === 'complete'
      )
    },
    withinMs,
  )
}

/**
 * The "standard completion" of the rows, for the newest generation: what Node and Skyhook must show once the packages
 * are at these stages (`name|version` → stage), and that no node worked without a slot. Lists of taints are never
 * compared as a whole.
 */
export async function expectComplete(
  cluster: Conformance,
  skyhook: string,
  stages: Readonly<Record<string, string>>,
  nodes: readonly NodeName[] = ['node-1'],
  withinMs?: number,
): Promise<void> {
  const { history, image } = cluster
  await awaitReady(cluster, skyhook, withinMs)
  const { spec, metadata } = skyhookOf(history.now, skyhook) as Skyhook
  const state = Object.fromEntries(
    Object.entries(stages).map(([key, stage]) => {
      const [name = '', version = ''] = key.split('|')
      const containerSHA = spec.packages?.[name]?.version === version ? spec.packages[name].containerSHA : undefined
      return [key, { name, version, image, ...(containerSHA && { containerSHA }), stage, state: 'complete' }]
    }),
  )
  const complete = {
    status: 'complete',
    label: 'complete',
    version: apiLevel,
    notReady: 'False Complete',
    erroring: 'False Not Erroring',
  }
  await history.eventually('the conditions of the nodes are settled', (view) =>
    nodes.every((name) => isSettled(nodeOf(view, name, skyhook))),
  )
  for (const name of nodes) {
    const node = history.now.nodes.get(name)
    expect({ name, ...publishedState(node, skyhook) }).toMatchObject({ name, ...complete, reason: undefined })
    expect({ name, state: publishedState(node, skyhook).state }).toEqual({ name, state })
    const { annotations = {} } = node?.metadata ?? {}
    expect(annotations).not.toHaveProperty([cordonKey(skyhook)])
    // another Skyhook cordoned the node in the meantime
    if (Object.keys(annotations).some((key) => key.startsWith(cordonKey('')))) continue
    expect({ name, isCordoned: node?.spec?.unschedulable ?? false }).toEqual({ name, isCordoned: false })
    expect(annotations).not.toHaveProperty([cordonedBeforeKey])
  }
  expect(metadata.annotations?.['skyhook.nvidia.com/version']).toBe(apiLevel)
  // after a reset the census may report the work when it is done already, and the end of it a second later
  await expect
    .poll(() => statusOf(history.now, skyhook), { timeout: 3_000 })
    .toMatchObject({
      status: 'complete',
      observedGeneration: metadata.generation,
      completeNodes: `${nodes.length}/${nodes.length}`,
      nodesInProgress: 0,
      packageList: Object.entries(spec.packages ?? {})
        .map(([name, { version }]) => `${name}:${version}`)
        .toSorted()
        .join(','),
      nodeStatus: Object.fromEntries(nodes.map((name) => [name, 'complete'])),
      nodeState: Object.fromEntries(nodes.map((name) => [name, state])),
    })
  await history.never('work without a slot', workWithoutSlot(skyhook))
}

/** The agent writes conditions in a separate request, after the one that completes. */
const isSettled = ({ notReady, erroring }: PublishedState): boolean =>
  notReady === 'False Complete' && erroring === 'False Not Erroring'

/** For `never`: a node that reports itself as blocked or failing, which its own reboot must not cause. */
export const failureOf =
  (node: NodeName, skyhook: string) =>
  (moment: Moment): string | undefined | false => {
    const { status, reason } = nodeOf(moment, node, skyhook)
    return (status === 'blocked' || status === 'erroring') && `${status}: ${reason?.reason}`
  }
