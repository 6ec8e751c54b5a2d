/** A slot as a document: reads and writes its Lease. Pure; the requests are in slot-acquisition.ts and slots.ts. */
import type { KubeObject } from '../kube/objects.ts'
import { apiGroup, leaseTypeMeta } from '../schemas/api.ts'
import type { ObjectMeta } from '../schemas/kubernetes.ts'
import type { SlotPhase } from '../schemas/skyhook.ts'
import {
  controlPlaneScope,
  indexedName,
  indexLabels,
  isSlotName,
  labelKeys,
  nodeLabels,
  nodeSlotName,
  parseIndexedName,
  slotKinds,
  slotLabels,
  type Scope,
  type SlotKind,
} from './names.ts'

export type NodeIdentity = { readonly name: string; readonly uid: string; readonly bootId: string }

/** What the holder reports about its work. */
export type SlotProgress = {
  readonly phase: SlotPhase
  readonly generation: number
  /** Of the ledger that admitted it; absent without batches. */
  readonly epoch?: number | undefined
  /** Of its node, by the current policy; absent without a policy, or where a count would decide it. */
  readonly currentCompartment?: string | undefined
  /** `name:version` of the current package, for people. */
  readonly packages: readonly string[]
}

export type Lease = KubeObject & {
  readonly spec?: {
    readonly holderIdentity?: string
    readonly acquireTime?: string
    readonly renewTime?: string
    readonly leaseDurationSeconds?: number
    readonly leaseTransitions?: number
  }
}

export type NewLease = Omit<Lease, 'metadata'> & {
  readonly metadata: Pick<ObjectMeta, 'name' | 'labels' | 'annotations' | 'ownerReferences'>
}

export type Slot = {
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  /** `other`: written by a newer agent; it counts like a slot without an index. */
  readonly kind: SlotKind | 'other'
  /** Value of the scope and compartment labels. */
  readonly scope: string
  readonly compartment: string
  /** Name of the compartment, which need not be a valid label value. */
  readonly compartmentName: string
  /** The compartment of its node at the last renewal, if that is or was another one. */
  readonly currentCompartment?: string | undefined
  /** Infinity for slots without an index. */
  readonly index: number
  /** Name of the node. */
  readonly holder: string
  readonly nodeUid: string
  readonly phase: string
  readonly generation: number
  readonly epoch: number | undefined
  readonly bootId: string
  /** As it was read, for the next PUT: fields we do not know survive. */
  readonly lease: Lease
}

/** Renewals come every 60 s: two may fail unnoticed. A reboot may have to wait for firmware, disks and network. */
const defaultLeaseSeconds = 120
const rebootLeaseSeconds = 1800

const keys = {
  phase: `${apiGroup}/phase`,
  generation: `${apiGroup}/generation`,
  epoch: `${apiGroup}/epoch`,
  compartment: `${apiGroup}/compartment`,
  currentCompartment: `${apiGroup}/current-compartment`,
  bootId: `${apiGroup}/boot-id`,
  nodeUid: `${apiGroup}/node-uid`,
  packages: `${apiGroup}/packages`,
} as const

/**
 * The slot in a Lease; undefined if there is none. A Lease with the labels of a slot and a name that follows from them
 * counts as one, readable or not. Under another name no agent could give it back: it is a stray.
 */
export function readSlot(lease: Lease): Slot | undefined {
  const { metadata, spec } = lease
  const { labels = {}, annotations = {} } = metadata
  const kindLabel = labels[labelKeys.slotKind]
  if (kindLabel === undefined || kindLabel === 'ledger') return undefined
  const kind = slotKinds.find((candidate) => candidate === kindLabel) ?? 'other'
  if (!isSlotName(metadata.name, kind, labels)) return undefined
  const indexed = parseIndexedName(metadata.name)
  const epoch = annotations[keys.epoch]
  return {
    name: metadata.name,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    kind,
    scope: labels[labelKeys.scope] ?? '',
    compartment: labels[labelKeys.compartment] ?? '',
    compartmentName: annotations[keys.compartment] ?? labels[labelKeys.compartment] ?? '',
    ...(annotations[keys.currentCompartment] !== undefined && {
      currentCompartment: annotations[keys.currentCompartment],
    }),
    index: indexed?.kind === kind ? indexed.index : Infinity,
    holder: spec?.holderIdentity ?? '',
    nodeUid: annotations[keys.nodeUid] ?? metadata.ownerReferences?.[0]?.uid ?? '',
    phase: annotations[keys.phase] ?? '',
    generation: Number(annotations[keys.generation] ?? 0),
    epoch: epoch === undefined ? undefined : Number(epoch),
    bootId: annotations[keys.bootId] ?? '',
    lease,
  }
}

/** Whether the Lease is the ledger of the Skyhook in its labels. */
export function isLedger({ metadata: { name, labels = {} } }: Lease): boolean {
  const { [labelKeys.name]: skyhook = '', [labelKeys.scope]: scope = '' } = labels
  return labels[labelKeys.slotKind] === 'ledger' && name === `${skyhook}-${scope}.ledger`
}

/** Whether a Lease has the labels of a slot or ledger and another name. No agent wrote it, and no agent counts it. */
export const isStray = (lease: Lease): boolean =>
  lease.metadata.labels?.[labelKeys.slotKind] !== undefined && !isLedger(lease) && readSlot(lease) === undefined

export const isHeldBy = (slot: Slot, node: NodeIdentity): boolean =>
  slot.holder === node.name && slot.nodeUid === node.uid

/**
 * Indices in use in the scope, as the admission rule wants them. Slots of an earlier Skyhook of the same name and
 * compartment have indices of another numbering: they count above every index until their nodes give them back. A node
 * is out once: of its slots above every index one counts, even if a stolen token created others in invented scopes.
 */
export function heldIndices(slots: readonly Slot[], scope: Scope): number[] {
  const holdersAbove = new Set<string>()
  return slots
    .filter((slot) => countsTowards(slot, scope))
    .flatMap((slot) => {
      const index = slot.scope === scope.hash ? slot.index : Infinity
      if (index !== Infinity || slot.holder === '') return [index]
      if (holdersAbove.has(slot.holder)) return []
      holdersAbove.add(slot.holder)
      return [index]
    })
}

/**
 * Whether the slot takes capacity from the scope. Slots of a compartment that the policy no longer has take it from
 * every other one: the compartment of their nodes is no longer known. A slot whose node has moved to another
 * compartment counts in both.
 */
export function countsTowards(slot: Slot, scope: Scope): boolean {
  if (slot.scope === scope.hash) return true
  if (scope.kind === 'control-plane' || slot.scope === controlPlaneScope.hash) return false
  if (scope.siblings.includes(slot.compartment) && slot.currentCompartment !== scope.compartment) return false
  return (slot.kind === 'bootstrap') === (scope.kind === 'bootstrap')
}

/** An index of the scope, or a slot beside the indices. */
export type SlotTarget = { readonly index: number } | { readonly kind: 'unlimited' | 'recovery' }

/** A new slot, owned by the Node's uid alone: garbage collection frees the slot of a deleted node. */
export function newLease(
  scope: Scope,
  target: SlotTarget,
  node: NodeIdentity,
  progress: SlotProgress,
  nowMs: number,
): NewLease {
  return {
    ...leaseTypeMeta,
    metadata: {
      name: 'index' in target ? indexedName(scope, target.index) : nodeSlotName(scope, node.name),
      labels: {
        ...slotLabels(scope, 'index' in target ? scope.kind : target.kind, node.name),
        ...('index' in target && indexLabels(target.index)),
      },
      annotations: {
        ...annotationsOf(node, progress),
        ...(scope.compartment !== '' && { [keys.compartment]: scope.compartment }),
      },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: node.name, uid: node.uid }],
    },
    spec: {
      holderIdentity: node.name,
      acquireTime: microTime(nowMs),
      renewTime: microTime(nowMs),
      leaseDurationSeconds: leaseSecondsOf(progress),
    },
  }
}

/** The Lease with the labels that make it a slot restored, in case someone changed them. */
export const withSlotLabels = (lease: Lease, labels: Readonly<Record<string, string>>): Lease =>
  hasSlotLabels(lease, labels)
    ? lease
    : { ...lease, metadata: { ...lease.metadata, labels: { ...lease.metadata.labels, ...labels } } }

export const hasSlotLabels = ({ metadata }: Lease, labels: Readonly<Record<string, string>>): boolean =>
  Object.entries(labels).every(([key, value]) => metadata.labels?.[key] === value)

/** The labels that make it a slot; others do not matter. */
export const slotLabelsOf = ({ metadata: { labels = {} } }: Lease): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.values(labelKeys).flatMap((key) => (labels[key] === undefined ? [] : [[key, labels[key]]])))

/** The same slot with its progress. Keeps uid and resourceVersion: a PUT without uid would recreate a deleted slot. */
export function renewedLease(slot: Slot, node: NodeIdentity, progress: SlotProgress, nowMs: number): Lease {
  const { metadata, spec } = slot.lease
  return {
    ...slot.lease,
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, ...nodeLabels(node.name), ...indexLabels(slot.index) },
      annotations: {
        ...metadata.annotations,
        ...annotationsOf(node, progress),
        ...currentCompartmentOf(slot, progress),
      },
    },
    spec: { ...spec, renewTime: microTime(nowMs), leaseDurationSeconds: leaseSecondsOf(progress) },
  }
}

/** For most slots it is the compartment that granted them, and is not written. */
const currentCompartmentOf = (
  { compartmentName, currentCompartment = compartmentName }: Slot,
  { currentCompartment: next = currentCompartment }: SlotProgress,
): Record<string, string> => (next === currentCompartment ? {} : { [keys.currentCompartment]: next })

function annotationsOf(
  node: NodeIdentity,
  { phase, generation, epoch, packages }: SlotProgress,
): Record<string, string> {
  return {
    [keys.phase]: phase,
    [keys.generation]: String(generation),
    ...(epoch === undefined ? {} : { [keys.epoch]: String(epoch) }),
    [keys.bootId]: node.bootId,
    [keys.nodeUid]: node.uid,
    [keys.packages]: packages.join(','),
  }
}

const leaseSecondsOf = ({ phase }: SlotProgress): number =>
  phase === 'rebooting' ? rebootLeaseSeconds : defaultLeaseSeconds

/** metav1.MicroTime: exactly six digits, or the server refuses the Lease. */
export const microTime = (ms: number): string => new Date(ms).toISOString().replace('Z', '000Z')
