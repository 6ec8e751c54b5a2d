/** The content of a request for a slot: this node and its work. */
import { type KubeObject, metadataOnlyListAccept, type ObjectList } from '../../kube/objects.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import {
  admissionOf,
  bootstrapLimitOf,
  compartmentNames,
  compartmentOf,
  isShareOfNodes,
  stopReason,
} from '../../lease/budget/budget.ts'
import { bootstrapScope, type Scope, skyhookScope } from '../../lease/names.ts'
import type { SlotRequest } from '../../lease/slot-acquisition.ts'
import type { AcquireOutcome } from '../../lease/slot-creation.ts'
import type { NodeIdentity, SlotProgress } from '../../lease/slot.ts'
import { type Backoff, backoffMs } from '../../schemas/backoff.ts'
import type { Clock } from '../../schemas/clock.ts'
import type { Journal } from '../../schemas/journal.ts'
import { ownValue } from '../../schemas/json.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { SlotPhase } from '../../schemas/skyhook.ts'
import type { Known, SkyhookView } from '../../stages/model/snapshot.ts'

export type SlotRequestSources = {
  readonly node: () => KubernetesNode | undefined
  readonly bootId: () => string
  readonly skyhooks: () => Known<readonly SkyhookView[]>
  readonly journal: () => Journal
}

export type RequestTarget = {
  /** `''` without a policy. */
  readonly compartment: string
  /** The slot is of the budget for joining nodes. */
  readonly isBootstrap?: boolean | undefined
}

export type SlotRequests = {
  /** Throws while the own Node is unknown: a slot must not be held for it. */
  readonly identity: () => NodeIdentity
  readonly progress: (phase: SlotPhase, generation: number, skyhook: string) => SlotProgress
  readonly request: (view: SkyhookView, phase: SlotPhase, target: RequestTarget) => SlotRequest
}

export function createSlotRequests(sources: SlotRequestSources, unanswered: UnansweredCreations): SlotRequests {
  function identity(): NodeIdentity {
    const node = sources.node()
    if (!node) throw new Error('cannot send requests about slots: the API server has no Node with this name')
    return { name: node.metadata.name, uid: node.metadata.uid, bootId: sources.bootId() }
  }

  const progress = (phase: SlotPhase, generation: number, skyhook: string): SlotProgress => ({
    phase,
    generation,
    currentCompartment: currentCompartment(sources.skyhooks(), skyhook),
    packages: incompletePackages(sources.skyhooks(), sources.journal(), skyhook),
  })

  return {
    identity,
    progress,
    request(view, phase, { compartment, isBootstrap = false }) {
      const { name, uid, generation = 0 } = view.metadata
      const scope = (isBootstrap ? bootstrapScope : skyhookScope)({ name, uid }, compartment, compartmentNames(view))
      return {
        scope,
        node: identity(),
        progress: progress(phase, generation, name),
        admissionFrom: (listing) =>
          isBootstrap
            ? { limit: bootstrapLimitOf(view, listing.ledgers), stop: stopReason(view, listing) }
            : admissionOf(view, compartment, listing),
        unansweredIndex: unanswered.indexIn(scope),
      }
    },
  }
}

/** If only a count determines the compartment, the slot keeps the one that it has. */
function currentCompartment(skyhooks: Known<readonly SkyhookView[]>, skyhook: string): string | undefined {
  const view = (skyhooks.known ? skyhooks.value : []).find(({ metadata }) => metadata.name === skyhook)
  return view?.spec.deploymentPolicy ? compartmentOf(view, []) : undefined
}

/** `name:version` of the incomplete packages, for people who read the Lease. */
function incompletePackages(skyhooks: Known<readonly SkyhookView[]>, journal: Journal, skyhook: string): string[] {
  const views = skyhooks.known ? skyhooks.value : []
  const { packages = {} } = views.find(({ metadata }) => metadata.name === skyhook)?.spec ?? {}
  const record = ownValue(journal.skyhooks, skyhook)
  return Object.entries(packages)
    .filter(([name, { version }]) => record?.packages[`${name}|${version}`]?.config?.finished === undefined)
    .map(([name, { version }]) => `${name}:${version}`)
    .sort()
}

/**
 * Creations of slots without an answer: the API server may still execute them. While that is possible, the node
 * requests only the same name again. If a creation is executed after that slot was released, the watch of the own slots
 * shows a surplus slot.
 */
type UnansweredCreations = {
  readonly indexIn: (scope: Scope) => number | undefined
  /** When the doubt in this scope ends; Infinity if there is none. */
  readonly endsInMs: (scope: Scope) => number
  enter(scope: Scope, answer: AcquireOutcome): void
}

type Creation = { readonly index: number; readonly endsAtMs: number }

/** The API server ends a request after at most this time. */
const maxRequestMs = 60_000

export function createUnansweredCreations(clock: Pick<Clock, 'monotonicMs'>): UnansweredCreations {
  const creations = new Map<string, Creation>()

  function creationIn({ hash }: Scope): Creation | undefined {
    const creation = creations.get(hash)
    if (creation === undefined || clock.monotonicMs() < creation.endsAtMs) return creation
    creations.delete(hash)
    return undefined
  }

  return {
    indexIn: (scope) => creationIn(scope)?.index,
    endsInMs: (scope) => (creationIn(scope)?.endsAtMs ?? Infinity) - clock.monotonicMs(),
    enter({ hash }, answer) {
      if (answer.outcome === 'unknown' && answer.unansweredIndex !== undefined)
        creations.set(hash, { index: answer.unansweredIndex, endsAtMs: clock.monotonicMs() + maxRequestMs })
      else if (answer.outcome === 'held' || answer.outcome === 'lost') creations.delete(hash)
    },
  }
}

/**
 * Limits how often a lost slot is created again. The garbage collector deletes a slot whose Node or Skyhook does not
 * exist (or no longer exists) in the API server, with a delay each time. This happens after a restore of etcd, until
 * the watches show it. An admission policy may also refuse each creation.
 */
type RecoveryPace = {
  /** Until the next creation may be sent, in ms; 0 = now. */
  pauseMs(scope: string): number
  /** The reason for the pause; empty without a pause. */
  reason(scope: string): string
  /** The slot was created or refused. `reason` is the reason for a following pause. */
  answered(scope: string, reason: string): void
}

/** `count` is the number of consecutive answers. */
type Answer = { readonly count: number; readonly atMs: number; readonly reason: string }

const recoveryBackoff: Backoff = { initialMs: 1_000, maxMs: 30_000 }
/** A slot that existed for this time was not deleted because of its content. */
const keptMs = 2 * recoveryBackoff.maxMs

export function createRecoveryPace(clock: Pick<Clock, 'steadyMs'>): RecoveryPace {
  const answers = new Map<string, Answer>()
  const lastOf = (scope: string): Answer | undefined => {
    const last = answers.get(scope)
    return last && clock.steadyMs() - last.atMs < keptMs ? last : undefined
  }
  return {
    pauseMs(scope) {
      const last = lastOf(scope)
      return last ? Math.max(0, last.atMs + backoffMs(last.count, recoveryBackoff) - clock.steadyMs()) : 0
    },
    reason: (scope) => lastOf(scope)?.reason ?? '',
    answered(scope, reason) {
      answers.set(scope, { count: (lastOf(scope)?.count ?? 0) + 1, atMs: clock.steadyMs(), reason })
    },
  }
}

/**
 * A percentage refers to the last count of the census, which may be old: a shrinking cluster may lose the census first.
 * The API server reports the total number of Nodes in one small answer.
 */

/**
 * The same view with the number of Nodes, which is requested only if the budget is a percentage. Throws if the request
 * fails.
 */
export async function withNodeCount(
  transport: KubeTransport,
  view: SkyhookView,
  { isJoining, signal }: { readonly isJoining: boolean; readonly signal: AbortSignal },
): Promise<SkyhookView> {
  if (!isShareOfNodes(view, isJoining)) return view
  const { items = [], metadata } = await transport.json<ObjectList<KubeObject>>('GET', '/api/v1/nodes', {
    query: { limit: 1 },
    accept: metadataOnlyListAccept,
    signal,
  })
  const { continue: next, remainingItemCount } = metadata
  if (next && remainingItemCount === undefined) return view // the server does not report the number
  return { ...view, nodes: items.length + (remainingItemCount ?? 0) }
}
