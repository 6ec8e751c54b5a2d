/** The content of a request for a slot: this node and its work. */
import { bootstrapScope, skyhookScope } from '../../lease/names.ts'
import type { NodeIdentity, SlotProgress } from '../../lease/slot.ts'
import type { SlotRequest } from '../../lease/slot-acquisition.ts'
import type { Journal } from '../../schemas/journal.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { SlotPhase } from '../../schemas/skyhook.ts'
import { ownValue } from '../../schemas/own-value.ts'
import type { Known, SkyhookView } from '../../stages/model/snapshot.ts'
import {
  admissionOf,
  bootstrapLimitOf,
  compartmentNames,
  compartmentOf,
  stopReason,
} from '../../lease/budget/budget.ts'
import type { UnansweredCreations } from './unanswered-creations.ts'

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
