/**
 * Names and labels of the Leases that are slots. Everything here is pure, so that every agent, the census and the
 * admission policy compute the same names. Lease names are at most 53 + 1 + 20 + 1 + 8 + 69 characters; label values at
 * most 63.
 */
import { apiGroup } from '../schemas/api.ts'
import { sha256Hex } from '../schemas/canonical-json.ts'

export const labelKeys = {
  name: `${apiGroup}/name`,
  compartment: `${apiGroup}/compartment`,
  scope: `${apiGroup}/scope`,
  slotKind: `${apiGroup}/slot-kind`,
  node: `${apiGroup}/node`,
  nodeShard: `${apiGroup}/node-shard`,
  slotIndex: `${apiGroup}/slot-index`,
} as const

const maxLabelLength = 63

export type SlotKind = 'slot' | 'unlimited' | 'recovery' | 'bootstrap' | 'control-plane'
export const slotKinds: readonly SlotKind[] = ['slot', 'unlimited', 'recovery', 'bootstrap', 'control-plane']

export type SkyhookIdentity = { readonly name: string; readonly uid: string }

/** One budget: a Skyhook × a compartment, the same for joining nodes (bootstrap), or the cluster's control plane. */
export type Scope = {
  readonly kind: 'slot' | 'bootstrap' | 'control-plane'
  /** Value of the scope label. */
  readonly hash: string
  /** Name of the compartment, free text. */
  readonly compartment: string
  /** The part before `.slot-0`. */
  readonly namePrefix: string
  readonly labels: { readonly name: string; readonly compartment: string }
  /** Values of the compartment label of the Skyhook's other compartments: each of them has a budget of its own. */
  readonly siblings: readonly string[]
}

/**
 * The scope of a Skyhook's compartment; `''` is the compartment of a Skyhook without a DeploymentPolicy.
 * `compartments`: all compartments of the policy.
 */
export function skyhookScope(skyhook: SkyhookIdentity, compartment = '', compartments: readonly string[] = []): Scope {
  return scopeOf('slot', skyhook, { compartment, compartments }, slotText(skyhook, compartment))
}

/**
 * Nodes that carry the runtime-required taint and have nothing to evict cost no capacity and have a budget of their
 * own.
 */
export function bootstrapScope(
  skyhook: SkyhookIdentity,
  compartment = '',
  compartments: readonly string[] = [],
): Scope {
  return scopeOf('bootstrap', skyhook, { compartment, compartments }, bootstrapText(skyhook, compartment))
}

/** One control-plane node of the whole cluster at a time, whatever Skyhook works on it. */
export const controlPlaneScope: Scope = {
  kind: 'control-plane',
  hash: 'control-plane',
  compartment: '',
  namePrefix: 'control-plane',
  labels: { name: '', compartment: '' },
  siblings: [],
}

const slotText = ({ uid }: SkyhookIdentity, compartment: string): string => `${uid}/${compartment}`
const bootstrapText = ({ uid }: SkyhookIdentity, compartment: string): string => `${uid}/${compartment}/bootstrap`
const hashIn = (text: string): string => sha256Hex(text).slice(0, 8)

function scopeOf(
  kind: 'slot' | 'bootstrap',
  skyhook: SkyhookIdentity,
  { compartment, compartments }: { readonly compartment: string; readonly compartments: readonly string[] },
  hashInput: string,
): Scope {
  const hash = hashIn(hashInput)
  const segment = nameSegment(compartment)
  return {
    kind,
    hash,
    compartment,
    namePrefix: `${skyhook.name}${segment === '' ? '' : `.${segment}`}-${hash}`,
    labels: { name: skyhook.name, compartment: labelValue(compartment) },
    siblings: compartments.filter((other) => other !== compartment).map(labelValue),
  }
}

/** `<stem>.slot-<i>` or `<stem>.bootstrap-<i>`: the node that creates it holds the slot. */
export function indexedName(scope: Scope, index: number): string {
  return `${scope.namePrefix}.${scope.kind === 'bootstrap' ? 'bootstrap' : 'slot'}-${index}`
}

/**
 * `<stem>.node-<node>`: the slot without an index (no limit, or a node found half changed). Its name ties it to its
 * node: a node has one per scope, and the admission policy knows whose it is.
 */
export function nodeSlotName(scope: Scope, nodeName: string): string {
  return `${scope.namePrefix}.node-${nodeLabelValue(nodeName)}`
}

/** The Lease of the census' election. */
export const censusLeaseName = 'skyhookd-census'

/** The Lease in which the census publishes what it counted for a Skyhook. */
export function ledgerName(skyhook: SkyhookIdentity): string {
  return `${skyhook.name}-${shortUid(skyhook)}.ledger`
}

export function ledgerLabels(skyhook: SkyhookIdentity): Record<string, string> {
  return {
    [labelKeys.name]: skyhook.name,
    [labelKeys.compartment]: '',
    [labelKeys.scope]: shortUid(skyhook),
    [labelKeys.slotKind]: 'ledger',
    [labelKeys.slotIndex]: ledgerIndex,
  }
}

export function slotLabels(scope: Scope, kind: SlotKind, nodeName: string): Record<string, string> {
  return {
    ...nodeLabels(nodeName),
    [labelKeys.name]: scope.labels.name,
    [labelKeys.compartment]: scope.labels.compartment,
    [labelKeys.scope]: scope.hash,
    [labelKeys.slotKind]: kind,
  }
}

/**
 * An agent finds its own slots by the node, the admission policy finds the other slots of a holder by the shard. Only
 * `holderIdentity` names the holder of a slot.
 */
export function nodeLabels(nodeName: string): Record<string, string> {
  return { [labelKeys.node]: nodeLabelValue(nodeName), [labelKeys.nodeShard]: nodeShard(nodeName) }
}

/** Label selector of a node's own slots, of any scope. */
export const ownSlotsSelector = (nodeName: string): string => `${labelKeys.node}=${nodeLabelValue(nodeName)}`

/**
 * A label value that names the node, also the end of a Lease name. The admission policy checks the cut: change both.
 * The `x` keeps the hash from following a dot, where no name may continue with a dash.
 */
const nodeLabelValue = (nodeName: string): string =>
  nodeName.length <= maxLabelLength ? nodeName : `${nodeName.slice(0, 53)}x-${sha256Hex(nodeName).slice(0, 8)}`

/**
 * Splits the nodes into 16 parts, so that the policy compares a new slot with a part of all slots. The chart computes
 * the same in CEL, which has no hash: change both. Nodes of one shard cost time, never correctness.
 */
function nodeShard(nodeName: string): string {
  let sum = 0
  for (const character of nodeName) sum += shardAlphabet.indexOf(character)
  return String(sum % 16)
}

const shardAlphabet = 'abcdefghijklmnopqrstuvwxyz0123456789-.'

/**
 * Label selector of the one LIST that an admission needs: the ledger and all slots of the Skyhook. Those of an earlier
 * Skyhook of the same name, and of compartments that are gone, count until their nodes give them back.
 */
export const scopeSelector = (scope: Scope): string =>
  scope.kind === 'control-plane' ? `${labelKeys.scope}=${scope.hash}` : `${labelKeys.name}=${scope.labels.name}`

/** Label selector of one LIST that shows a Skyhook's slots and the control plane's. */
export const selectorWithControlPlane = ({ labels: { name } }: Scope): string => `${labelKeys.name} in (,${name})`

/**
 * Label selector of the ledger and of some slots, by their indices, in any scope of the Skyhook. Leases written by
 * agents older than this label lack it.
 */
export const indexSelector = ({ labels: { name } }: Scope, indices: readonly number[]): string =>
  `${labelKeys.name}=${name},${labelKeys.slotIndex} in (${[...indices, ledgerIndex].join(',')})`

const ledgerIndex = 'ledger'

/**
 * A node uses it to watch only some slots. A wrong index costs other nodes useless requests, but never affects the
 * budget.
 */
export const indexLabels = (index: number): Record<string, string> =>
  index === Infinity ? {} : { [labelKeys.slotIndex]: String(index) }

/** Whether the slot with these labels belongs to the Skyhook, in any compartment. */
export function isScopeOf(skyhook: SkyhookIdentity, scope: string, compartment: string): boolean {
  return hashIn(slotText(skyhook, compartment)) === scope || hashIn(bootstrapText(skyhook, compartment)) === scope
}

/** Kind and index in a Lease's name; undefined for other names. */
export function parseIndexedName(name: string): { readonly kind: Scope['kind']; readonly index: number } | undefined {
  if (name === indexedName(controlPlaneScope, 0)) return { kind: 'control-plane', index: 0 }
  const [, kind, index] = /^.+-[0-9a-f]{8}\.(slot|bootstrap)-(0|[1-9]\d{0,8})$/.exec(name) ?? []
  return kind === undefined ? undefined : { kind: kind as 'slot' | 'bootstrap', index: Number(index) }
}

/**
 * Whether a slot with these labels may have this name, as the admission policy checks it. The names that a newer agent
 * gives its slots are not known; it does not use the names that all agents share.
 */
export function isSlotName(name: string, kind: SlotKind | 'other', labels: Readonly<Record<string, string>>): boolean {
  if (kind === 'other') return name !== censusLeaseName && !/-[0-9a-f]{8}\.ledger$/.test(name)
  const { [labelKeys.name]: skyhook = '', [labelKeys.scope]: scope = '', [labelKeys.node]: node } = labels
  const at = kind === 'unlimited' || kind === 'recovery' ? name.indexOf('.node-') : name.lastIndexOf('.')
  const [head, tail] = [name.slice(0, at), name.slice(at + 1)]
  if (at < 0 || !isTail(tail, kind, node)) return false
  if (scope === controlPlaneScope.hash) return skyhook === '' && head === controlPlaneScope.namePrefix
  const isOfSkyhook = head.startsWith(`${skyhook}-`) || head.startsWith(`${skyhook}.`)
  return kind !== 'control-plane' && skyhook !== '' && isOfSkyhook && head.endsWith(`-${scope}`)
}

/** Slots from before the label of the node lack it until they are renewed. */
function isTail(tail: string, kind: SlotKind, node: string | undefined): boolean {
  if (kind === 'unlimited' || kind === 'recovery') return node === undefined || tail === `node-${node}`
  return new RegExp(`^${kind === 'bootstrap' ? kind : 'slot'}-\\d+$`).test(tail)
}

const shortUid = (skyhook: SkyhookIdentity): string => skyhook.uid.replaceAll('-', '').slice(0, 8).toLowerCase()

/** For people who read `kubectl get leases`; the hash identifies the compartment. Part of a DNS name. */
function nameSegment(compartment: string): string {
  return trimmed(
    compartment
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .slice(0, 20),
    /[a-z0-9]/,
  )
}

/** Compartment names are free text. One that is not a label value is cut and marked, so that no two share a value. */
function labelValue(compartment: string): string {
  if (compartment.length <= maxLabelLength && /^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$/.test(compartment))
    return compartment
  const readable = trimmed(compartment.replaceAll(/[^A-Za-z0-9_.-]+/g, '-').slice(0, 50), /[A-Za-z0-9]/)
  return `${readable}${readable === '' ? '' : '-'}${sha256Hex(compartment).slice(0, 8)}`
}

function trimmed(text: string, allowed: RegExp): string {
  let [from, to] = [0, text.length]
  while (from < to && !allowed.test(text.charAt(from))) from++
  while (to > from && !allowed.test(text.charAt(to - 1))) to--
  return text.slice(from, to)
}
