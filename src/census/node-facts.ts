/** What a Node's annotations say about a Skyhook. People may have edited them: nothing in them is trusted. */
import * as keys from '../schemas/annotations.ts'
import { apiGroup } from '../schemas/api.ts'
import { isObject, parseJson } from '../schemas/json.ts'
import { plainExcerpt } from '../schemas/plain-text.ts'
import { entryStates, nodeStatuses, stageNames, type NodeStatus } from '../schemas/skyhook.ts'
import { sha256Hex } from '../schemas/canonical-json.ts'
import { type AgentState, countedStatus } from '../stages/skyhook/counted-status.ts'
import type { NodeState } from './skyhook-status.ts'

/** A Node as the census keeps it: no spec, no status, no annotations of others. */
export type CensusNode = {
  readonly name: string
  readonly uid: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  /** The Skyhooks whose cordon marks the Node carries. */
  readonly cordonedBy: readonly string[]
}

/** As its agent says it. `sinceMs` by the wall clock of its host; absent where the Node does not say it. */
export type NodeReason = Pick<keys.PublishedReason, 'reason' | 'message'> & { readonly sinceMs?: number }

export type NodeFact = {
  readonly name: string
  /** The status that the node counts with; `complete` refers to the current spec. */
  readonly status: NodeStatus
  readonly agent: AgentState
  /** Why it is not complete, as its agent reports it. */
  readonly reason?: NodeReason
  /** Valid package entries. */
  readonly entries: NodeState
  /** The state annotation exists and cannot be read. */
  readonly isMalformed: boolean
  /** Complete by an earlier Skyhook of this name: no step ran for this one. */
  readonly isFoundComplete: boolean
  /** The Skyhook holds a cordon on it. */
  readonly isCordoned: boolean
  /** No Skyhook holds a cordon on it, and its agent answers. */
  readonly isInService: boolean
  readonly isIgnored: boolean
}

export type NodeFactContext = {
  readonly skyhookKeys: SkyhookKeys
  /** What a complete node reports (`completionHash`). */
  readonly applied: string
  /** Status of a node that has not started: waiting, or paused, disabled or blocked with the Skyhook. */
  readonly idle: NodeStatus
  readonly readState: StateReader
}

/** Keys of a Skyhook's annotations on a Node. A count reads them from every node, so it makes them once. */
export type SkyhookKeys = Readonly<Record<'nodeState' | 'status' | 'journal' | 'reason' | 'cordon', string>>

export const keysOf = (skyhook: string): SkyhookKeys => ({
  nodeState: keys.nodeStateKey(skyhook),
  status: keys.statusKey(skyhook),
  journal: keys.journalKey(skyhook),
  reason: keys.reasonKey(skyhook),
  cordon: keys.cordonKey(skyhook),
})

export type ParsedState = { readonly entries: NodeState | undefined; readonly sha256: string }
export type StateReader = (text: string) => ParsedState

/** Reads state annotations for one count, each text once: most nodes of a fleet have the same. */
export function createStateReader(): StateReader {
  const known = new Map<string, ParsedState>()
  return (text) => {
    const found = known.get(text) ?? { entries: entriesOf(text), sha256: sha256Hex(text) }
    known.set(text, found)
    return found
  }
}

/**
 * A node is complete for the current spec only if it reports complete for this spec, is the same Node object that
 * reported it, and its state was not edited since: an agent that finds an edit starts working again.
 */
export function nodeFact(
  node: CensusNode,
  agent: AgentState,
  { skyhookKeys, applied, idle, readState }: NodeFactContext,
): NodeFact {
  const { annotations, labels } = node
  const published = annotations[skyhookKeys.status]
  const stateText = annotations[skyhookKeys.nodeState]
  const state = stateText === undefined ? undefined : readState(stateText)
  const expected = { sha256: state?.sha256, applied, nodeUid: node.uid }
  const completion =
    published === 'complete' ? completionOf(annotations[skyhookKeys.journal] ?? '', expected) : undefined
  const reported = published === undefined || isNodeStatus(published) ? published : 'unreadable'
  const status = countedStatus({ status: reported, isCurrent: completion !== undefined }, agent, idle)
  const reason = status === 'complete' ? undefined : reasonOf(annotations[skyhookKeys.reason])
  return {
    name: node.name,
    status,
    agent,
    ...(reason && { reason }),
    entries: state?.entries ?? {},
    isMalformed: state !== undefined && state.entries === undefined,
    isFoundComplete: status === 'complete' && completion?.foundComplete === true,
    isCordoned: Object.hasOwn(annotations, skyhookKeys.cordon),
    isInService: agent === 'ready' && node.cordonedBy.length === 0,
    isIgnored: labels[keys.ignoreLabel] === 'true',
  }
}

/** Name of the Skyhook that an annotation or label of a Node belongs to; undefined for other keys. */
export function skyhookOfKey(key: string): string | undefined {
  const at = key.startsWith(ownPrefix) ? key.indexOf('_', ownPrefix.length) : -1
  return at < 0 ? undefined : key.slice(at + 1)
}

/** The Skyhooks whose cordon marks are among a Node's annotations. */
export const cordonedSkyhooks = (annotations: CensusNode['annotations']): string[] =>
  Object.keys(annotations)
    .filter((key) => key.startsWith(cordonPrefix))
    .map((key) => key.slice(cordonPrefix.length))

const ownPrefix = `${apiGroup}/`
const cordonPrefix = keys.cordonKey('')

/** What stands beside a completion; undefined if it is not one of this spec, this Node and the state that it shows. */
function completionOf(
  companionText: string,
  expected: { readonly sha256: string | undefined; readonly applied: string; readonly nodeUid: string },
): Partial<keys.Companion> | undefined {
  const companion: unknown = expected.sha256 === undefined ? undefined : parseJson(companionText)
  if (!isObject(companion)) return undefined
  const { v, applied, nodeUID, sha256 } = companion as Partial<keys.Companion>
  const isCurrent =
    v === 1 && applied === expected.applied && nodeUID === expected.nodeUid && sha256 === expected.sha256
  return isCurrent ? companion : undefined
}

/** The entries that fit the CRD; the server would refuse the whole status for any other. undefined = not JSON. */
function entriesOf(text: string): NodeState | undefined {
  const value = parseJson(text)
  if (!isObject(value)) return undefined
  const entries: Record<string, NodeState[string]> = {}
  for (const [key, entry] of Object.entries(value)) {
    if (!isObject(entry)) continue
    const { name, version, image, containerSHA, stage, state, restarts } = entry
    if (typeof name !== 'string' || typeof version !== 'string' || !isOneOf(stageNames, stage)) continue
    entries[key] = {
      name,
      version,
      image: typeof image === 'string' ? image : '',
      ...(typeof containerSHA === 'string' && { containerSHA }),
      stage,
      ...(isOneOf(entryStates, state) && { state }),
      ...(isRestartCount(restarts) && { restarts }),
    }
  }
  return entries
}

/** An edited one must not make a status or an Event so large that the API server refuses it. */
const reasonForm = /^[A-Z][A-Za-z0-9]{0,63}$/
const maxReasonMessageLength = 1_024

function reasonOf(text: string | undefined): NodeReason | undefined {
  const value = text === undefined ? undefined : parseJson(text)
  if (!isObject(value)) return undefined
  const { reason, message, since } = value
  if (typeof reason !== 'string' || !reasonForm.test(reason) || typeof message !== 'string') return undefined
  const sinceMs = typeof since === 'string' ? Date.parse(since) : NaN
  return {
    reason,
    message: plainExcerpt(message, maxReasonMessageLength),
    ...(Number.isFinite(sinceMs) && { sinceMs }),
  }
}

const isOneOf = <Word extends string>(known: readonly Word[], value: unknown): value is Word =>
  known.some((word) => word === value)
const isRestartCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 2 ** 31
const isNodeStatus = (text: string): text is NodeStatus => isOneOf(nodeStatuses, text)
