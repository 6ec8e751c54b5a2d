/**
 * The check before the first step under a new slot: whether the current Skyhook would still grant it. It is not
 * repeated after the first step.
 */
import { getIfExists } from '../../kube/objects.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import type { NodeIdentity } from '../../lease/slot.ts'
import { disableKey, pauseKey } from '../../schemas/annotations.ts'
import { policiesPath, skyhooksPath } from '../../schemas/api.ts'
import type { Budget } from '../../schemas/budget.ts'
import type { DeploymentPolicy } from '../../schemas/deployment-policy.ts'
import type { KubernetesNode, Taint } from '../../schemas/kubernetes.ts'
import { finalizerName, packagesToUninstall, type Skyhook } from '../../schemas/skyhook.ts'
import { hasRequiredTaint } from '../../stages/drain/node-spec.ts'
import type { SkyhookView } from '../../stages/model/snapshot.ts'
import type { HeldSlot } from './slot-book.ts'

/** The current Skyhook; undefined if it was deleted. A consistent read, never from a cache. */
export const readSkyhook = (
  transport: KubeTransport,
  name: string,
  signal: AbortSignal,
): Promise<Skyhook | undefined> => getIfExists(transport, `${skyhooksPath}/${name}`, { signal })

/** Why nothing may start with the Skyhook that the decision was made from; undefined if there is no such reason. */
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
 * Why nothing may start before the census has added its finalizer: without the finalizer, a delete would remove the
 * Skyhook at once, and its packages would not be uninstalled. Undefined if no package has an uninstall.
 */
export const missingFinalizer = ({ metadata, spec }: Pick<Skyhook, 'metadata' | 'spec'>): string | undefined =>
  packagesToUninstall(spec ?? {}).size === 0 || metadata.finalizers?.includes(finalizerName) === true
    ? undefined
    : `Skyhook ${metadata.name} asks for an uninstall, waiting for the census to add its finalizer`

/** Why nothing may start with the policy that the decision was made from; undefined if the policy is unchanged. */
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
 * Whether the LIST that admitted the slot is still valid, so that a second LIST is not needed. This agent admitted the
 * slot under the current generation of the Skyhook, and therefore under the current limit. The LIST was taken after the
 * last change of the limit, and admissions from such LISTs never exceed it (src/lease/rule.ts). A percentage also
 * changes with the count of nodes, and needs a second LIST. The budget of joining nodes needs one, too, unless the spec
 * has it. A policy may have stopped both. `budget` is the budget of the current spec; the chart's default is constant
 * during the life of this process.
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
 * like that of all other nodes. Undefined while the Node has the taint. A consistent read, because the watch may be
 * late, even if this agent removed the taint.
 */
export async function whyInService(
  transport: KubeTransport,
  { name, uid }: NodeIdentity,
  taint: Taint,
  signal: AbortSignal,
): Promise<string | undefined> {
  const node = await getIfExists<KubernetesNode>(transport, `/api/v1/nodes/${encodeURIComponent(name)}`, { signal })
  if (node?.metadata.uid !== uid) return `Node ${name} was deleted`
  return hasRequiredTaint(node, taint) ? undefined : `Node ${name} has lost the taint ${taint.key}, it no longer joins`
}
