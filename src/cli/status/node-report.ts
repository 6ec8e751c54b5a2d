/** What a Node reports of each Skyhook, in the little that a screen needs: there may be thousands of both. */
import {
  cordonKey,
  journalKey,
  keepCordonedKey,
  nodeStateKey,
  reasonKey,
  statusKey,
} from '../../schemas/annotations.ts'
import { sha256Hex } from '../../schemas/canonical-json.ts'
import { isObject, parseJson } from '../../schemas/json.ts'
import { clip } from '../../schemas/plain-text.ts'
import type { KubernetesNode, Taint } from '../../schemas/kubernetes.ts'
import { type NodeStatus, nodeStatuses } from '../../schemas/skyhook.ts'

export type NodeRow = {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  /** When the node joined, in ms since 1970; NaN where the Node does not say it. */
  readonly createdAtMs: number
  /** By name of the Skyhook. */
  readonly reports: ReadonlyMap<string, NodeReport>
  /** The Skyhooks that have it cordoned. */
  readonly cordonedBy: readonly string[]
  /** It stays cordoned when their work is done. */
  readonly isHeld: boolean
  /** Undefined where only the metadata was read. */
  readonly taints: readonly Taint[] | undefined
}

export type NodeReport = {
  /** Undefined: something else stands there. */
  readonly status: NodeStatus | undefined
  /**
   * Hash of the spec that the node completed last; undefined where it is not complete, and where the state beside it
   * was edited, or is of an earlier registration of the node.
   */
  readonly applied: string | undefined
  readonly reason: NodeReason | undefined
}

export type NodeReason = {
  readonly reason: string
  readonly message: string
  /** In ms since 1970. */
  readonly sinceMs: number | undefined
}

/** Returns what makes a row of a Node. Texts that many Nodes have in common are kept, and hashed, once. */
export function createNodeReader(): (node: KubernetesNode) => NodeRow {
  const texts = new Map<string, string>()
  const hashes = new Map<string, string>()
  const once = (text: string): string => texts.get(text) ?? (texts.set(text, text), text)
  const hashOf = (text: string): string => {
    const found = hashes.get(text) ?? sha256Hex(text)
    hashes.set(text, found)
    return found
  }

  function appliedOf(annotations: Readonly<Record<string, string>>, skyhook: string, uid: string): string | undefined {
    const companion = parseJson(annotations[journalKey(skyhook)] ?? '')
    const state = annotations[nodeStateKey(skyhook)]
    if (!isObject(companion) || state === undefined) return undefined
    const { v, applied, nodeUID, sha256 } = companion
    const isOwn = v === 1 && nodeUID === uid && sha256 === hashOf(state)
    return isOwn && typeof applied === 'string' ? once(applied) : undefined
  }

  function reasonOf(text: string | undefined): NodeReason | undefined {
    const value = parseJson(text ?? '')
    if (!isObject(value)) return undefined
    const { reason, message, since } = value
    if (typeof reason !== 'string' || typeof message !== 'string') return undefined
    const sinceMs = Date.parse(typeof since === 'string' ? since : '')
    return {
      reason: once(reason),
      message: once(clip(message, maxMessageLength)),
      sinceMs: Number.isNaN(sinceMs) ? undefined : sinceMs,
    }
  }

  return ({ metadata: { name, uid, labels = {}, annotations = {}, creationTimestamp = '' }, spec }) => {
    const cordonedBy = Object.keys(annotations).filter((key) => key.startsWith(cordonPrefix))
    const reports = new Map<string, NodeReport>()
    for (const [key, text] of Object.entries(annotations)) {
      if (!key.startsWith(statusPrefix)) continue
      const skyhook = once(key.slice(statusPrefix.length))
      const status = nodeStatuses.find((one) => one === text)
      reports.set(skyhook, {
        status,
        // thousands of these are read for one screen, and only what says that it is complete has to prove it
        applied: status === 'complete' ? appliedOf(annotations, skyhook, uid) : undefined,
        reason: reasonOf(annotations[reasonKey(skyhook)]),
      })
    }
    const ownLabels = Object.entries(labels).map(([key, value]) => [once(key), once(value)] as const)
    return {
      name,
      labels: Object.fromEntries(ownLabels),
      createdAtMs: Date.parse(creationTimestamp),
      reports,
      cordonedBy: cordonedBy.map((key) => once(key.slice(cordonPrefix.length))),
      isHeld: annotations[keepCordonedKey] === 'true',
      taints: spec && (spec.taints ?? []),
    }
  }
}

const statusPrefix = statusKey('')
const cordonPrefix = cordonKey('')
/** Agents write a quarter of it; whoever else may write a Node fills no screen. */
const maxMessageLength = 4_096
