/**
 * What a Lease is and what one agent may make of it, as docs/usage/security.md says, not the chart's policies.
 */
import { nodeLabels } from '../../src/lease/names.ts'

export type LeaseObject = {
  readonly metadata: {
    readonly name: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly ownerReferences?: readonly { readonly kind: string; readonly name: string; readonly uid: string }[]
    readonly finalizers?: readonly string[]
  }
  readonly spec?: { readonly holderIdentity?: string }
}

type Role = 'slot' | 'ledger' | 'election' | 'nothing'

const prefix = 'skyhook.nvidia.com/'

/** What the Lease is in the hand of the node's agent; `nothing` for what no agent of this node writes. */
export function roleOf(lease: LeaseObject, node: string): Role {
  if ((lease.metadata.finalizers ?? []).length > 0) return 'nothing'
  if (isElection(lease, node)) return 'election'
  if (isLedger(lease)) return 'ledger'
  return isSlot(lease, node) ? 'slot' : 'nothing'
}

/** Whether the node's agent may turn the one into the other; undefined is no Lease. */
export function mayWrite(node: string, before: LeaseObject | undefined, after: LeaseObject | undefined): boolean {
  if (before === undefined) return after !== undefined && roleOf(after, node) !== 'nothing'
  if (after === undefined) return roleOf(before, node) === 'slot'
  const role = roleOf(after, node)
  // The leader before was another node.
  if (role === 'election') return roleOf(before, holderOf(before)) === 'election'
  if (role === 'ledger') return roleOf(before, node) === 'ledger' || !hasOwnLabels(before)
  return role === 'slot' && roleOf(before, node) === 'slot' && textOf(before) === textOf(after)
}

const labelOf = ({ metadata }: LeaseObject, label: string): string => metadata.labels?.[`${prefix}${label}`] ?? ''
const holderOf = ({ spec }: LeaseObject): string => spec?.holderIdentity ?? ''
const hasOwnLabels = ({ metadata }: LeaseObject): boolean =>
  Object.keys(metadata.labels ?? {}).some((key) => key.startsWith(prefix))
const textOf = (lease: LeaseObject): string =>
  ['name', 'compartment', 'scope', 'slot-kind'].map((label) => labelOf(lease, label)).join('\n')

/** A leader writes itself or, where it resigns, nobody. */
const isElection = (lease: LeaseObject, node: string): boolean =>
  lease.metadata.name === 'skyhookd-census' &&
  !hasOwnLabels(lease) &&
  (lease.metadata.ownerReferences ?? []).length === 0 &&
  ['', node].includes(holderOf(lease))

function isLedger(lease: LeaseObject): boolean {
  const [skyhook, scope] = [labelOf(lease, 'name'), labelOf(lease, 'scope')]
  const [owner, ...others] = lease.metadata.ownerReferences ?? []
  return (
    labelOf(lease, 'slot-kind') === 'ledger' &&
    labelOf(lease, 'compartment') === '' &&
    labelOf(lease, 'node') + labelOf(lease, 'node-shard') === '' &&
    lease.metadata.name === `${skyhook}-${scope}.ledger` &&
    /^[0-9a-f]{8}$/.test(scope) &&
    holderOf(lease) === 'census' &&
    others.length === 0 &&
    owner?.kind === 'Skyhook' &&
    owner.name === skyhook &&
    owner.uid.startsWith(scope)
  )
}

function isSlot(lease: LeaseObject, node: string): boolean {
  const [owner, ...others] = lease.metadata.ownerReferences ?? []
  const tail = tailOf(labelOf(lease, 'slot-kind'), node)
  return (
    tail !== undefined &&
    new RegExp(`^${stemOf(lease)}[.]${tail}$`).test(lease.metadata.name) &&
    holderOf(lease) === node &&
    others.length === 0 &&
    owner?.kind === 'Node' &&
    owner.name === node &&
    Object.entries(nodeLabels(node)).every(([label, value]) => lease.metadata.labels?.[label] === value)
  )
}

function stemOf(lease: LeaseObject): string {
  const [skyhook, scope, kind] = [labelOf(lease, 'name'), labelOf(lease, 'scope'), labelOf(lease, 'slot-kind')]
  const isOfSkyhook = skyhook !== '' && /^[0-9a-f]{8}$/.test(scope) && kind !== 'control-plane'
  if (isOfSkyhook) return `${RegExp.escape(skyhook)}([.][a-z0-9-]+)?-${scope}`
  const isOfControlPlane = skyhook === '' && scope === 'control-plane' && ['control-plane', 'recovery'].includes(kind)
  return isOfControlPlane ? 'control-plane' : '(?!)'
}

function tailOf(kind: string, node: string): string | undefined {
  switch (kind) {
    case 'slot':
    case 'bootstrap':
      return `${kind}-[0-9]+`
    case 'control-plane':
      return 'slot-0'
    case 'unlimited':
    case 'recovery':
      return RegExp.escape(`node-${node}`)
    default:
      return undefined
  }
}
