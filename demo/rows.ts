/** What the demo shows of a rollout, read from Nodes, slots and pods, as anyone can read them. */
import type { KubernetesNode } from '../src/schemas/kubernetes.ts'
import type { Pod, View } from '../test/kit/cluster/moments.ts'
import { publishedState } from '../test/kit/cluster/skyhooks.ts'
import { slotsOf } from '../test/kit/cluster/slots.ts'

/** One row for each node and package. */
export type Row = {
  readonly node: string
  /** The state as kubectl shows it. */
  readonly is: string
  /** Ordinary pods on it. */
  readonly pods: string
  readonly status: string
  readonly package: string
  readonly stage: string
  readonly reason: string
  /** Phase of the slot that this node holds. */
  readonly slot: string
}

const heading = ['NODE', 'IS', 'PODS', 'STATUS', 'PACKAGE', 'STAGE', 'SLOT', 'WAITS FOR']
export const shopNamespace = 'shop'

export function rowsOf(view: View, skyhook: string, nodes: readonly string[]): Row[] {
  const slots = new Map(slotsOf(view, skyhook).map(({ holder, phase }) => [holder, phase]))
  return nodes.flatMap((name) => {
    const node = view.nodes.get(name)
    const { status = '-', state, reason } = publishedState(node, skyhook)
    const packages = Object.values(state)
    const common = {
      node: name,
      is: stateOf(node),
      pods: String(shopPods(view).filter(({ spec }) => spec?.nodeName === name).length),
      status,
      reason: reason ? `${reason.reason}: ${reason.message}` : '',
      slot: slots.get(name) ?? '',
    }
    if (packages.length === 0) return [{ ...common, package: '', stage: '' }]
    return packages.map(({ name, version, stage, state: reached = '' }) => ({
      ...common,
      package: `${name} ${version}`,
      stage: `${stage} ${reached}`.trim(),
    }))
  })
}

export const shopPods = (view: View): Pod[] =>
  [...view.pods.values()].filter(({ metadata }) => metadata.namespace === shopNamespace)

function stateOf(node: KubernetesNode | undefined): string {
  const isReady = node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true
  const isTainted = node?.spec?.taints?.some(({ value }) => value === 'runtime-required') === true
  return [
    isReady ? 'Ready' : 'NotReady',
    node?.spec?.unschedulable === true ? 'cordoned' : '',
    isTainted ? 'tainted' : '',
  ]
    .filter((word) => word !== '')
    .join(',')
}

/** Cells of the table, the heading first. */
export function cellsOf(rows: readonly Row[]): string[][] {
  return [
    heading,
    ...rows.map((row) => [row.node, row.is, row.pods, row.status, row.package, row.stage, row.slot, row.reason]),
  ]
}

/** A line for each changed row. */
export function changedLines(before: readonly Row[], after: readonly Row[]): string[] {
  const known = new Set(before.map(textOf))
  return after.map(textOf).filter((text) => !known.has(text))
}

function textOf({ node, is, status, package: name, stage, slot, reason }: Row): string {
  const facts = [name && `${name}: ${stage}`, slot && `holds a slot (${slot})`, reason].filter((fact) => fact !== '')
  return [node, is.padEnd(14), status.padEnd(11), ...facts].join('  ').trimEnd()
}

/** Where each ordinary pod runs, starts or leaves. */
export function podsOf(view: View): string[] {
  return shopPods(view).map(({ metadata, spec, status }) => {
    const where = spec?.nodeName ?? 'no node yet'
    const isReady =
      status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') === true
    const verb = metadata.deletionTimestamp !== undefined ? 'leaves' : isReady ? 'runs on' : 'starts on'
    return `pod ${metadata.name}  ${verb} ${where}`
  })
}
