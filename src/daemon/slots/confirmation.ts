/**
 * What a node asks before its first step under a new slot: whether it would still be granted, by the Skyhook as it is
 * now. After the first step nobody asks this again.
 */
import { getIfExists } from '../../kube/get.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import type { NodeIdentity } from '../../lease/slot.ts'
import { finalizerName, packagesToUninstall } from '../../schemas/finalizer.ts'
import { disableKey, pauseKey } from '../../schemas/annotations.ts'
import { policiesPath, skyhooksPath } from '../../schemas/api.ts'
import type { Budget } from '../../schemas/budget.ts'
import type { DeploymentPolicy } from '../../schemas/deployment-policy.ts'
import type { KubernetesNode, Taint } from '../../schemas/kubernetes.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { hasRequiredTaint } from '../../stages/drain/node-spec.ts'
import type { SkyhookView } from '../../stages/model/snapshot.ts'
import type { HeldSlot } from './slot-book.ts'

/** The Skyhook of this moment; undefined if it is gone. A consistent read, never from a cache. */
export const readSkyhook = (
  transport: KubeTransport,
  name: string,
  signal: AbortSignal,
): Promise<Skyhook | undefined> => getIfExists(transport, `${skyhooksPath}/${name}`, { signal })

/** Why nothing may start with the Skyhook that the decision was made from; undefined if nothing speaks against it. */
export function changeSince(
  { metadata: { name, uid, generation = 0 } }: SkyhookView,
  now: Skyhook | undefined,
): string | undefined {
  if (now?.metadata.uid !== uid) return `Skyhook ${name} was deleted`
  if ((now.metadata.generation ?? 0) !== generation) return `Skyhook ${name} has changed, waiting to see its new spec`
  if (now.metadata.annotations?.[pauseKey] === 'true') return `Skyhook ${name} was paused`
  if (now.metadata.annotations?.[disableKey] === 'true') return `Skyhook ${name} was disabled`
  return missingFinalizer(now)
}

/**
 * Why nothing may start before the census has added its finalizer: deleted without it, the Skyhook would be gone at
 * once, and nobody would uninstall what it asks to uninstall. Undefined where nothing is to be uninstalled.
 */
export const missingFinalizer = ({ metadata, spec }: Pick<Skyhook, 'metadata' | 'spec'>): string | undefined =>
  packagesToUninstall(spec ?? {}).size === 0 || metadata.finalizers?.includes(finalizerName) === true
    ? undefined
    : `Skyhook ${metadata.name} asks for an uninstall, waiting for the census to add its finalizer`

/** Why nothing may start by the policy that the decision was made from; undefined if it is still the same. */
export async function policyChangeSince(
  transport: KubeTransport,
  { spec, policy }: SkyhookView,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { deploymentPolicy: name } = spec
  if (!name) return undefined
  const now = await getIfExists<DeploymentPolicy>(transport, `${policiesPath}/${name}`, { signal })
  const isSame =
    policy?.state === 'found' &&
    now?.metadata.uid === policy.uid &&
    (now.metadata.generation ?? 0) === policy.generation
  return isSame ? undefined : `DeploymentPolicy ${name} has changed, waiting to see its new spec`
}

/**
 * Whether the LIST that admitted the slot still counts, so that no second one is needed. This agent admitted it under
 * the very generation that the Skyhook has now, and so under the limit of now; that LIST was taken after the limit
 * changed last, and admissions from such LISTs never exceed it (src/lease/rule.ts). A percentage changes with the count
 * of nodes as well: it is looked up again. So does the budget of joining nodes, unless the spec has it. A policy may
 * have stopped both. `budget`: what counts for the Skyhook by its spec of now; the default of the chart is one for as
 * long as this process lives.
 */
export function isAdmissionCurrent(
  { slot, ownership, admittedUnder }: HeldSlot,
  { metadata, spec }: Skyhook,
  { count, percent }: Budget,
): boolean {
  if (ownership === 'seen' || admittedUnder?.generation !== (metadata.generation ?? 0)) return false
  if (spec?.deploymentPolicy) return false
  if (slot.kind === 'bootstrap') return spec?.bootstrap?.count !== undefined
  return percent === undefined || count !== undefined
}

/**
 * Why the slot of a joining node may not be used: its Node has lost the runtime-required taint, so its capacity counts
 * like that of all others; undefined while it carries it. A consistent read: the watch may be too late to show it, even
 * where this agent lifted the taint.
 */
export async function whyInService(
  transport: KubeTransport,
  { name, uid }: NodeIdentity,
  taint: Taint,
  signal: AbortSignal,
): Promise<string | undefined> {
  const node = await getIfExists<KubernetesNode>(transport, `/api/v1/nodes/${encodeURIComponent(name)}`, { signal })
  if (node?.metadata.uid !== uid) return `Node ${name} was deleted`
  return hasRequiredTaint(node, taint) ? undefined : `Node ${name} has lost the taint ${taint.key}, it joins no more`
}
