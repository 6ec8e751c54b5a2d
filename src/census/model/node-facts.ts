/** What a Skyhook counts about a Node. */
import { cordonKey, ignoreLabel, type SpecVersion } from '../../schemas/annotations.ts'
import { apiGroup } from '../../schemas/api.ts'
import { perObject } from '../../schemas/per-object.ts'
import type { createPublishedReader, NodeReason, PublishedEntries } from '../../schemas/published.ts'
import { entryStates, stageNames, type NodeStatus } from '../../schemas/skyhook.ts'
import { type AgentState, countedStatus } from '../../stages/skyhook/gates.ts'
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
  /** Of a complete one: the spec by which it became so, if its agent reports it. */
  readonly completedBy?: SpecVersion
  /** Complete by an earlier Skyhook of this name: no step ran for this one. */
  readonly isFoundComplete: boolean
  /** The Skyhook holds a cordon on it. */
  readonly isCordoned: boolean
  /** No Skyhook holds a cordon on it, and its agent answers. */
  readonly isInService: boolean
  readonly isIgnored: boolean
}

export type NodeFactContext = {
  readonly skyhook: string
  /** What a complete node reports (`completionHash`). */
  readonly applied: string
  /** Status of a node that has not started: waiting, or paused, disabled or blocked with the Skyhook. */
  readonly idle: NodeStatus
  readonly read: ReturnType<typeof createPublishedReader>
}

/**
 * A node is complete for the current spec only if it reports complete for this spec, is the same Node object that
 * reported it, and its state was not edited since: an agent that finds an edit starts working again.
 */
export function nodeFact(
  node: CensusNode,
  agent: AgentState,
  { skyhook, applied, idle, read }: NodeFactContext,
): NodeFact {
  const { annotations, labels } = node
  const { status: reported, state, entries, companion, origin, reason } = read({ metadata: node }, skyhook)
  const isCurrent = origin === 'agent' && companion?.applied === applied
  const status = countedStatus({ status: reported, isCurrent }, agent, idle)
  return {
    name: node.name,
    status,
    agent,
    ...(reason && status !== 'complete' && { reason }),
    ...(companion?.completedBy && status === 'complete' && { completedBy: companion.completedBy }),
    entries: entries ? definedEntries(entries) : {},
    isMalformed: state !== undefined && entries === undefined,
    isFoundComplete: status === 'complete' && companion?.foundComplete === true,
    isCordoned: Object.hasOwn(annotations, cordonKey(skyhook)),
    isInService: agent === 'ready' && node.cordonedBy.length === 0,
    isIgnored: labels[ignoreLabel] === 'true',
  }
}

/** Name of the Skyhook that an annotation or label of a Node belongs to; undefined for other keys. */
export function skyhookOfKey(key: string): string | undefined {
  const at = key.startsWith(ownPrefix) ? key.indexOf('_', ownPrefix.length) : -1
  return at < 0 ? undefined : key.slice(at + 1)
}

const ownPrefix = `${apiGroup}/`

/** Those that fit the definition of a Skyhook: the server would refuse the whole status for any other. */
const definedEntries = perObject(
  (entries: PublishedEntries): NodeState =>
    Object.fromEntries(
      [...entries].flatMap(([key, { name, version, image = '', stage, state, ...others }]) => {
        const knownStage = stageNames.find((one) => one === stage)
        const knownState = entryStates.find((one) => one === state)
        if (name === undefined || version === undefined || knownStage === undefined) return []
        return [[key, { ...others, name, version, image, stage: knownStage, ...(knownState && { state: knownState }) }]]
      }),
    ),
)
