/** What the Leases show about one node and one Skyhook: its slot, and the current answer of an admission. */
import { type AdmissionVerdict, admit } from '../../../lease/admission.ts'
import {
  admissionOf,
  batchReason,
  bootstrapLimitOf,
  compartmentNames,
  compartmentOf,
  stopReason,
} from '../../../lease/budget/budget.ts'
import {
  bootstrapScope,
  controlPlaneScope,
  isScopeOf,
  labelKeys,
  type Scope,
  skyhookScope,
} from '../../../lease/names.ts'
import type { Limit } from '../../../lease/rule.ts'
import { controlPlaneAsking } from '../../../lease/slot-acquisition.ts'
import { countsTowards, isHeldBy, type Lease, type Slot } from '../../../lease/slot.ts'
import { type SlotPhase, slotPhases } from '../../../schemas/skyhook.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import { isControlPlaneNode, type OwnSlot, type SkyhookView, type SlotDenial } from '../../../stages/model/snapshot.ts'
import { versionsOf } from '../../../stages/skyhook/slot.ts'

export type Leased = { readonly slots: readonly Slot[]; readonly ledgers: readonly Lease[] }

const identityOf = ({ metadata, status }: KubernetesNode) => ({
  name: metadata.name,
  uid: metadata.uid,
  bootId: status?.nodeInfo?.bootID ?? '',
})

/** Slots that the node holds, of any Skyhook. */
export function ownSlotsOf(node: KubernetesNode, views: readonly SkyhookView[], { slots }: Leased): readonly OwnSlot[] {
  return slots
    .filter(({ holder }) => holder === node.metadata.name)
    .map((slot): OwnSlot => {
      const name = slot.lease.metadata.labels?.[labelKeys.name] ?? ''
      const view = views.find(
        ({ metadata }) => metadata.name === name && isScopeOf(metadata, slot.scope, slot.compartmentName),
      )
      const isControlPlane = slot.scope === controlPlaneScope.hash
      return {
        scope: isControlPlane ? 'control-plane' : 'skyhook',
        skyhook: isControlPlane ? '' : name,
        skyhookUid: isControlPlane ? undefined : view?.metadata.uid,
        lease: slot.name,
        uid: slot.uid,
        phase: phaseOf(slot),
        ownership: 'confirmed',
        admittedUnder: view && versionsOf(view),
        ...(slot.kind === 'bootstrap' && { isBootstrap: true }),
        isFormer: !isHeldBy(slot, identityOf(node)),
        renewedAtMs: Infinity,
      }
    })
}

/** A newer agent may use another value. */
const phaseOf = ({ phase }: Slot): SlotPhase => slotPhases.find((one) => one === phase) ?? 'working'

/** The answer to a request of this node for a slot of the Skyhook. */
export type SlotAnswer = {
  readonly verdict: AdmissionVerdict
  /** Undefined if the compartment of the node is unknown. */
  readonly compartment: string | undefined
  /** How many nodes may be out at once. */
  readonly limit: Limit
  /** Slots that count towards that. */
  readonly holders: readonly Slot[]
  /** Why the batch, not the budget, is full. */
  readonly batch: string | undefined
  readonly waitsFor: SlotDenial['waitsFor']
}

export type SlotQuestion = {
  readonly node: KubernetesNode
  readonly view: SkyhookView
  readonly leased: Leased
  /** The node joins the cluster: it is counted separately. */
  readonly isJoining: boolean
  /** The work starts with taking the node out of service. */
  readonly needsDrain: boolean
}

export function slotAnswer({ node, view, leased, isJoining, needsDrain }: SlotQuestion): SlotAnswer {
  const ledgers = leased.ledgers.filter(({ metadata }) => metadata.labels?.[labelKeys.name] === view.metadata.name)
  const compartment = compartmentOf(view, ledgers)
  const scopeOf = isJoining ? bootstrapScope : skyhookScope
  const scope = scopeOf(view.metadata, compartment ?? '', compartmentNames(view))
  const listing = { slots: slotsOfScope(leased.slots, scope, view.metadata.name), ledgers, resourceVersion: '' }
  const { limit } = isJoining
    ? { limit: bootstrapLimitOf(view, ledgers) }
    : admissionOf(view, compartment ?? '', listing)
  const asking = { scope, node: identityOf(node), admissionFrom: () => ({ limit }) }
  const verdict = compartment === undefined ? uncounted : admit(listing, asking)
  const answer = { compartment, limit, holders: listing.slots }
  const batch = (isJoining ? stopReason : batchReason)(view, listing)
  if (verdict.verdict === 'wait')
    return { ...answer, verdict, batch, waitsFor: batch === undefined ? undefined : 'batch' }
  const guarded = needsDrain && isControlPlaneNode(node) ? controlPlaneVerdict(node, leased) : undefined
  return guarded?.verdict === 'wait'
    ? { ...answer, verdict: guarded, batch: undefined, waitsFor: 'control-plane' }
    : { ...answer, verdict, batch: undefined, waitsFor: undefined }
}

const uncounted: AdmissionVerdict = {
  verdict: 'wait',
  reason: 'budget unknown: the census has not counted the compartments yet',
}

function controlPlaneVerdict(node: KubernetesNode, { slots }: Leased): AdmissionVerdict {
  const held = slots.filter((slot) => countsTowards(slot, controlPlaneScope))
  return admit({ slots: held, ledgers: [], resourceVersion: '' }, { ...controlPlaneAsking, node: identityOf(node) })
}

/** Slots of one LIST of the scope. */
const slotsOfScope = (slots: readonly Slot[], scope: Scope, skyhook: string): readonly Slot[] =>
  slots.filter((slot) => slot.lease.metadata.labels?.[labelKeys.name] === skyhook && countsTowards(slot, scope))

/** Holders renew once a minute; a Lease names the time that a reboot or two lost renewals may take. */
const renewalSlackMs = 300_000

/** Its holder does not answer, by this machine's clock. */
export function isNotRenewed({ lease }: Slot, takenAtMs: number): boolean {
  const { renewTime, leaseDurationSeconds = 0 } = lease.spec ?? {}
  return takenAtMs - Date.parse(renewTime ?? '') > 1_000 * leaseDurationSeconds + renewalSlackMs
}
