/** What a Node reports of each Skyhook, reduced to what a screen needs: there may be thousands of both. */
import { cordonKey, ignoreLabel, keepCordonedKey, skyhooksWith, statusKey } from '../../../schemas/annotations.ts'
import type { KubernetesNode, Taint } from '../../../schemas/kubernetes.ts'
import { perObject } from '../../../schemas/per-object.ts'
import {
  createPublishedReader,
  type NodeReason,
  nodeStepOf,
  type NodeStep,
  type PublishedEntries,
} from '../../../schemas/published.ts'
import type { NodeStatus } from '../../../schemas/skyhook.ts'

export type NodeRow = {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  /** When the node joined, in ms since 1970; NaN if unknown. */
  readonly createdAtMs: number
  /** By name of the Skyhook. */
  readonly reports: ReadonlyMap<string, NodeReport>
  /** The Skyhooks that have it cordoned. */
  readonly cordonedBy: readonly string[]
  /** It stays cordoned when their work is done. */
  readonly isHeld: boolean
  /** Agents ignore it. */
  readonly isIgnored: boolean
  /** Undefined where only the metadata was read. */
  readonly taints: readonly Taint[] | undefined
}

export type NodeReport = {
  readonly status: NodeStatus | 'unreadable' | undefined
  /**
   * Hash of the spec that the node completed last; undefined where it is not complete, and where the state beside it
   * was edited, or is of an earlier registration of the node.
   */
  readonly applied: string | undefined
  readonly reason: NodeReason | undefined
  /** What it has, or has started, by its own report: `name|version`. */
  readonly packages: readonly string[]
  /** The step that runs there, if the Node reports it. */
  readonly step: NodeStep | undefined
}

/** Returns a function that makes a row of a Node. Texts that many Nodes share are kept, and hashed, once. */
export function createNodeReader(): (node: KubernetesNode) => NodeRow {
  const texts = new Map<string, string>()
  const once = (text: string): string => texts.get(text) ?? (texts.set(text, text), text)
  const read = createPublishedReader()
  const packagesOf = perObject((entries: PublishedEntries): readonly string[] => [...entries.keys()])

  function reportOf(node: KubernetesNode, skyhook: string): NodeReport {
    const { status, origin, companion, reason, entries } = read(node, skyhook)
    const applied = status === 'complete' && origin === 'agent' ? companion?.applied : undefined
    return {
      status,
      applied: applied && once(applied),
      reason: reason && { ...reason, reason: once(reason.reason), message: once(reason.message) },
      packages: entries === undefined ? [] : packagesOf(entries),
      step: nodeStepOf(node, skyhook, entries),
    }
  }

  return (node) => {
    const { metadata, spec } = node
    const { name, labels = {}, annotations = {}, creationTimestamp = '' } = metadata
    const ownLabels = Object.entries(labels).map(([key, value]) => [once(key), once(value)] as const)
    return {
      name,
      labels: Object.fromEntries(ownLabels),
      createdAtMs: Date.parse(creationTimestamp),
      reports: new Map(skyhooksWith(statusKey, annotations).map((skyhook) => [once(skyhook), reportOf(node, skyhook)])),
      cordonedBy: skyhooksWith(cordonKey, annotations).map(once),
      isHeld: annotations[keepCordonedKey] === 'true',
      isIgnored: labels[ignoreLabel] === 'true',
      taints: spec && (spec.taints ?? []),
    }
  }
}
