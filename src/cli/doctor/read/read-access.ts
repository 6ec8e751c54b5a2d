/** Asks the API server what the agents may do. */
import { ApiError } from '../../../kube/errors.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import { known, type Known, unknown } from '../../../stages/model/snapshot.ts'
import { type Access, agentUser, type Installation, type Permission } from '../cluster-facts.ts'
import { agentPermissions, namespaceOf } from '../permissions.ts'

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
