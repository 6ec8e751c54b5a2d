/** What rules read from the simulated cluster: Nodes and their hosts, Skyhooks, slots, budgets. */
import { ledgerAnnotation, selectorHash } from '../../src/lease/ledger.ts'
import { type Allowed, allowedJoining, allowedOf, type Terms } from './allowed.ts'
import { bootstrapScope, controlPlaneScope, labelKeys, ledgerName, skyhookScope } from '../../src/lease/names.ts'
import { readSlot, type Lease, type Slot } from '../../src/lease/slot.ts'
import { cordonKey } from '../../src/schemas/annotations.ts'
import { isObject, type JsonObject, parseJson } from '../../src/schemas/json.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import { hasRequiredTaint } from '../../src/stages/drain/node-spec.ts'
import { perObject } from '../../src/schemas/per-object.ts'
import { selects } from '../../src/schemas/selectors.ts'
import type { Skyhook } from '../../src/schemas/skyhook.ts'
import type { SimObject } from '../kit/api-server/versions.ts'
import { requiredTaint } from '../kit/fleet/fleet-host.ts'
import type { Host, World } from './facts.ts'
import { isRunningOn, mayEnd, type RunningPod } from './may-end.ts'

const markPrefix = cordonKey('')
const controlPlaneLabels = ['control-plane', 'master', 'etcd'].map((role) => `node-role.kubernetes.io/${role}`)

export const nodeOf = ({ server }: World, host: Host): KubernetesNode | undefined =>
  server.object('nodes', undefined, host.nodeName()) as KubernetesNode | undefined

/** Names of the Skyhooks whose cordon marks the Node carries. */
export function marksOf(node: KubernetesNode | undefined): readonly string[] {
  if (node === undefined) return []
  let marks = marksByNode.get(node)
  if (marks === undefined) {
    marks = Object.entries(node.metadata.annotations ?? {}).flatMap(([key, value]) =>
      key.startsWith(markPrefix) && value === 'true' ? [key.slice(markPrefix.length)] : [],
    )
    marksByNode.set(node, marks)
  }
  return marks
}

/** Each version of an object is one that never changes. */
const marksByNode = new WeakMap<KubernetesNode, readonly string[]>()

export const isControlPlane = (node: KubernetesNode | undefined): boolean =>
  controlPlaneLabels.some((label) => label in (node?.metadata.labels ?? {}))

export const skyhooksOf = ({ server }: World): readonly Skyhook[] =>
  server.objects('skyhooks') as unknown as readonly Skyhook[]

export const skyhookOf = ({ server }: World, name: string): Skyhook | undefined =>
  server.object('skyhooks', undefined, name) as Skyhook | undefined

export const isSelected = (skyhook: Skyhook | undefined, node: KubernetesNode | undefined): boolean =>
  skyhook !== undefined && node !== undefined && selects(skyhook.spec.nodeSelectors, node.metadata.labels ?? {})

/** Slots of all scopes, that of the control plane included. */
export function slotsOf({ server }: Pick<World, 'server'>): readonly Slot[] {
  const leases = server.objects('leases')
  let slots = slotsByList.get(leases)
  if (slots === undefined) {
    slots = leases.flatMap((lease) => readSlot(lease as Lease) ?? [])
    slotsByList.set(leases, slots)
  }
  return slots
}

const slotsByList = new WeakMap<object, readonly Slot[]>()

/** Of one Skyhook: also those of an earlier one of its name. */
export const isSlotOf = (slot: Slot, skyhook: string): boolean =>
  !isOfControlPlane(slot) && slot.lease.metadata.labels?.[labelKeys.name] === skyhook

/** Also a recovery slot. */
export const isOfControlPlane = ({ scope }: Slot): boolean => scope === controlPlaneScope.hash

/** Its Node has registered again since. The agent gives it back, and creates one for the registration that it has now. */
export function isFormer(world: World, { nodeUid }: Slot, host: Host | undefined): boolean {
  const node = host && nodeOf(world, host)
  return node !== undefined && node.metadata.uid !== nodeUid
}

/** Also of the budget for its joining nodes. */
export const isOfScope = (slot: Slot, { metadata: { name, uid } }: Skyhook): boolean =>
  [skyhookScope, bootstrapScope].some((scopeOf) => slot.scope === scopeOf({ name, uid }, slot.compartmentName).hash)

/** Pods of its Node that no interrupt for the Skyhook may end, but for what came back after an eviction. */
export function podsInTheWay(world: World, host: Host, { spec }: Skyhook): readonly RunningPod[] {
  const situation = { isOnlyNode: false, cameBack: false }
  return (world.server.objects('pods') as readonly RunningPod[]).filter(
    (pod) => isRunningOn(pod, host.nodeName()) && !mayEnd(pod, spec, situation),
  )
}

/** It carries the runtime-required taint and nothing would have to leave it: it takes no capacity away. */
export function isJoining(world: World, host: Host, skyhook: Skyhook): boolean {
  const node = nodeOf(world, host)
  if (node === undefined || !hasRequiredTaint(node, requiredTaint)) return false
  return podsInTheWay(world, host, skyhook).length === 0
}

/** The host whose agent or census a client is, such as `agent:n1`. */
export function hostOfClient(client: string, kind: 'agent' | 'census'): string | undefined {
  return client.startsWith(`${kind}:`) ? client.slice(kind.length + 1) : undefined
}

/** The Skyhook names a policy that does not exist: no node starts, and nobody can say what to count in which compartment. */
export const lacksPolicy = ({ server }: World, { spec: { deploymentPolicy } }: Skyhook): boolean =>
  Boolean(deploymentPolicy) && server.object('deploymentpolicies', undefined, deploymentPolicy ?? '') === undefined

/** By the spec as it stands and the count that is committed now: what agents go by. */
export const allowedNow = (world: World, skyhook: Skyhook): Allowed => allowedOf(termsOf(world, skyhook))

/** Of joining nodes at once. */
export const allowedOfJoining = (world: World, skyhook: Skyhook): Allowed => allowedJoining(termsOf(world, skyhook))

function termsOf({ server, hosts }: World, skyhook: Skyhook): Terms {
  const { deploymentPolicy = '', nodeSelectors } = skyhook.spec
  const [first] = hosts.values()
  const ledger = ledgerOf(server, skyhook)
  const matched = ledger?.selectorHash === selectorHash(nodeSelectors) ? ledger.matched : undefined
  return {
    skyhook,
    policy: server.object('deploymentpolicies', undefined, deploymentPolicy)?.['spec'] as Terms['policy'],
    defaults: first?.defaultBudgets().slice(0, 1) ?? [],
    matched: (compartment) => (compartment === undefined ? matched : scopesOf(server, skyhook)?.[compartment]),
  }
}

export type PublishedCount = { readonly matched: number; readonly selectorHash: string }

/** Of this very Skyhook; undefined where there is none or it cannot be read. */
export function ledgerOf(server: World['server'], skyhook: Skyhook): PublishedCount | undefined {
  const scopes = scopesOf(server, skyhook)
  if (scopes === undefined) return undefined
  const matched = Object.values(scopes).reduce((sum, count) => sum + count, 0)
  return { matched, selectorHash: String(currentLedger(server, skyhook)?.['selectorHash']) }
}

function currentLedger(server: World['server'], { metadata }: Skyhook): JsonObject | undefined {
  const name = ledgerName(metadata)
  const lease = server.objects('leases').find((one) => one.metadata.name === name)
  const ledger = lease && ledgerIn(lease)
  return isObject(ledger) && ledger['skyhookUID'] === metadata.uid ? ledger : undefined
}

/** Matched nodes by compartment; undefined where one of them cannot be read. */
function scopesOf(server: World['server'], skyhook: Skyhook): Readonly<Record<string, number>> | undefined {
  const compartments = currentLedger(server, skyhook)?.['compartments']
  if (!isObject(compartments)) return undefined
  const counts = Object.entries(compartments).flatMap(([name, scope]) =>
    isObject(scope) && typeof scope['matched'] === 'number' ? [[name, scope['matched']] as const] : [],
  )
  return counts.length === 0 ? undefined : Object.fromEntries(counts)
}

const ledgerIn = perObject(({ metadata }: SimObject): unknown =>
  parseJson(metadata.annotations?.[ledgerAnnotation] ?? ''),
)
