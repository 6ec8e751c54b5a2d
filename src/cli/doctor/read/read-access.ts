/** Asks the API server what the agents may do. */
import { ApiError } from '../../../kube/errors.ts'
import { getIfExists } from '../../../kube/objects.ts'
import type { KubeTransport, KubeRequestOptions, Method } from '../../../kube/transport.ts'
import { known, type Known, unknown } from '../../../stages/model/snapshot.ts'
import {
  type Access,
  agentUser,
  type Installation,
  type Permission,
  type PolicyFacts,
  type PolicyTrial,
  type ClusterRequest,
} from '../cluster-facts.ts'
import { agentPermissions, namespaceOf } from '../permissions.ts'
import { leasesPathOf } from '../../../lease/slot-reads.ts'
import type { Lease, Slot } from '../../../lease/slot.ts'
import { policiesPath, skyhooksPath, skyhookTypeMeta } from '../../../schemas/api.ts'
import { sleep } from '../../../schemas/clock.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import type { FleetView } from '../../fleet/fleet-view/fleet-view.ts'
import { valueOr } from '../../fleet/fleet-view/readable.ts'

const authorization = '/apis/authorization.k8s.io/v1'

/**
 * Sends one review for each right. The caller may ask about others with SubjectAccessReviews. Without that right, the
 * caller can act as the agents and ask about itself. Throws if the API server does not answer.
 */
export async function readAccess(
  transport: KubeTransport,
  installation: Installation,
  signal: AbortSignal,
): Promise<Known<readonly Access[]>> {
  const user = agentUser(installation)
  const subject = { user, groups: groupsOf(installation) }
  try {
    const kind = (await isCaller(transport, user, signal)) ? 'SelfSubjectAccessReview' : 'SubjectAccessReview'
    const access = await Promise.all(
      agentPermissions.map(async (permission): Promise<Access> => {
        const spec = { ...(kind === 'SubjectAccessReview' && subject), ...attributesOf(permission, installation) }
        const { status } = await transport.json<{ readonly status?: { readonly allowed?: boolean } }>(
          'POST',
          `${authorization}/${kind.toLowerCase()}s`,
          { body: { apiVersion: 'authorization.k8s.io/v1', kind, spec }, signal },
        )
        return { permission, isAllowed: status?.allowed === true }
      }),
    )
    return known(access)
  } catch (error) {
    if (!(error instanceof ApiError && [401, 403, 404].includes(error.status))) throw error
    return unknown(
      'you may not review the rights of others (create subjectaccessreviews). ' +
        `If you may act as the agents, use --as ${user}`,
    )
  }
}

/** Groups of every ServiceAccount: roles may be bound to them. */
const groupsOf = ({ namespace }: Installation): readonly string[] => [
  'system:serviceaccounts',
  `system:serviceaccounts:${namespace}`,
  'system:authenticated',
]

/** Every caller may ask this; API servers before 1.28 do not know it. */
async function isCaller(transport: KubeTransport, user: string, signal: AbortSignal): Promise<boolean> {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
  try {
    const review = await transport.json<{ readonly status?: { readonly userInfo?: { readonly username?: string } } }>(
      'POST',
      '/apis/authentication.k8s.io/v1/selfsubjectreviews',
      { body, signal },
    )
    return review.status?.userInfo?.username === user
  } catch (error) {
    if (error instanceof ApiError) return false
    throw error
  }
}

function attributesOf({ scope, group, resource: path, verb }: Permission, { namespace }: Installation): object {
  const [resource, subresource] = path.split('/')
  return {
    resourceAttributes: {
      group,
      resource,
      ...(subresource !== undefined && { subresource }),
      verb,
      ...(scope !== 'cluster' && { namespace: namespaceOf(scope, namespace) }),
    },
  }
}

/**
 * Sends each admission policy a request that it must refuse, as a dry run: a policy that exists and is bound may still
 * refuse nothing (kubernetes/kubernetes#130887). The dry run stores nothing.
 */
type Trial = {
  readonly suffix: PolicyTrial['suffix']
  readonly method: Method
  readonly path: string
  readonly options: KubeRequestOptions
  /** The API server's answer without the policy. */
  readonly admittedStatus?: number
  /** The slot beside which another one must be refused. */
  readonly beside?: Slot
}

/** A policy takes effect a second after its write, and its view of Leases is a little old. */
const maxAttempts = 4
const attemptIntervalMs = 1_000

/** The objects for the trials, as they were read. */
type Tried = {
  readonly fleet: FleetView<KubernetesNode>
  readonly installation: Installation
  readonly policies: readonly PolicyFacts[]
}

/** Policies that could be tried. Unknown where none could. Throws for an API server that does not answer. */
export async function tryPolicies(
  transport: KubeTransport,
  request: ClusterRequest,
  { fleet, installation, policies }: Tried,
): Promise<Known<readonly PolicyTrial[]>> {
  const trials = trialsOf(fleet, installation).filter(({ suffix }) =>
    policies.some(({ name }) => name === `${installation.name}-${suffix}`),
  )
  const outcomes = await Promise.all(
    trials.map(async (trial) => await carryOut(transport, request, installation, trial)),
  )
  const tried = outcomes.filter((outcome) => outcome !== undefined)
  return tried.length > 0 || trials.length === 0
    ? known(tried)
    : unknown('you may not act as the agents, to try the policies (impersonate serviceaccounts, userextras)')
}

function trialsOf(fleet: FleetView<KubernetesNode>, installation: Installation): readonly Trial[] {
  const user = agentUser(installation)
  const asAgent = (node?: string): NonNullable<KubeRequestOptions['headers']> => ({
    'impersonate-user': user,
    ...(node !== undefined && { 'impersonate-extra-authentication.kubernetes.io%2fnode-name': node }),
  })
  const dryRun = { dryRun: 'All' }
  const label = { metadata: { labels: { 'skyhook.nvidia.com/doctor': 'trial' } } }
  // A token that names no node may write nothing.
  const writing = { query: dryRun, headers: asAgent() } as const
  const patching = { ...writing, body: label, contentType: 'application/merge-patch+json' } as const
  const leases = leasesPathOf(installation)
  const pods = `/api/v1/namespaces/${installation.namespace}/pods`
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'none' } }
  const [node] = valueOr(fleet.nodes, [])
  const skyhooks = valueOr(fleet.skyhooks, [])
  const [skyhook] = skyhooks
  const [agent] = valueOr(fleet.agents, [])
  const paced = skyhooks.find(({ spec }) => (spec.deploymentPolicy ?? '') !== '')
  const slot = valueOr(fleet.slots, []).find(({ index, holder }) => index !== Infinity && holder !== '')
  const badSkyhook = {
    ...skyhookTypeMeta,
    metadata: { name: 'doctor-trial' },
    spec: { packages: { trial: { version: '1.0.0', image: 'trial', resources: { cpuRequest: '1' } } } },
  }
  const nodePath = node && `/api/v1/nodes/${node.metadata.name}`
  const skyhookPath = skyhook && `${skyhooksPath}/${skyhook.metadata.name}`
  const policyPath = paced && `${policiesPath}/${paced.spec.deploymentPolicy ?? ''}`
  const none = { ...writing, body: { metadata: { name: 'doctor-trial' } } }
  const evicting = { ...writing, body: eviction }
  const bad = { query: dryRun, body: badSkyhook }
  const trials: readonly (Trial | undefined)[] = [
    nodePath ? { suffix: 'own-node', method: 'PATCH', path: nodePath, options: patching } : undefined,
    skyhookPath ? { suffix: 'skyhooks-by-agents', method: 'PATCH', path: skyhookPath, options: patching } : undefined,
    agent && { suffix: 'own-pods', method: 'DELETE', path: `${pods}/${agent.name}`, options: writing },
    { suffix: 'own-slot', method: 'POST', path: leases, options: none },
    { suffix: 'evictions', method: 'POST', path: `${pods}/none/eviction`, options: evicting, admittedStatus: 404 },
    { suffix: 'skyhook-resources', method: 'POST', path: skyhooksPath, options: bad },
    policyPath
      ? { suffix: 'policy-in-use', method: 'DELETE', path: policyPath, options: { query: dryRun } }
      : undefined,
    slot && {
      suffix: 'one-slot',
      method: 'POST',
      path: leases,
      options: { query: dryRun, headers: asAgent(slot.holder), body: anotherSlot(slot) },
      beside: slot,
    },
  ]
  return trials.filter((trial) => trial !== undefined)
}

/** Of the same node and scope, with an index that no budget reaches. */
function anotherSlot({ lease: { metadata, spec } }: Slot): object {
  const { labels, ownerReferences } = metadata
  return { metadata: { name: metadata.name.replace(/\d+$/, '99999999'), labels, ownerReferences }, spec }
}

/** Undefined if the answer does not show whether the policy works. */
async function carryOut(
  transport: KubeTransport,
  request: ClusterRequest,
  installation: Installation,
  trial: Trial,
): Promise<PolicyTrial | undefined> {
  const { suffix, method, path, options, admittedStatus, beside } = trial
  const { clock, signal } = request
  for (let attempt = 1; ; attempt++) {
    const answer = await transport.json(method, path, { ...options, signal }).catch((error: unknown) => {
      if (error instanceof ApiError && error.status < 500) return error
      throw error
    })
    // The API server names the policy only in its message.
    if (
      answer instanceof ApiError &&
      answer.message.includes(`ValidatingAdmissionPolicy '${installation.name}-${suffix}'`)
    )
      return { suffix, outcome: 'refused' }
    if (answer instanceof ApiError && answer.status !== admittedStatus) return undefined
    if (attempt === maxAttempts) {
      if (beside !== undefined && !(await isThere(transport, beside, request))) return undefined
      return { suffix, outcome: 'admitted' }
    }
    await sleep(clock, attemptIntervalMs, signal)
  }
}

async function isThere(
  transport: KubeTransport,
  { name, uid }: Slot,
  { namespace, signal }: ClusterRequest,
): Promise<boolean> {
  const found = await getIfExists<Lease>(transport, `${leasesPathOf({ namespace })}/${name}`, { signal })
  return found?.metadata.uid === uid
}
