/** Whether the agents have the rights of the chart's roles. */
import { valueOr } from '../fleet-view/readable.ts'
import { agentUser, type ClusterFacts, type Permission, type Scope } from './cluster-facts.ts'
import { type Check, checkOf, type Finding, finding, namedSome } from './finding.ts'
import { counted } from '../../schemas/wording.ts'

const rights = (scope: Scope, group: string, resource: string, verbs: readonly string[]): readonly Permission[] =>
  verbs.map((verb) => ({ scope, group, resource, verb }))

const read = ['get', 'list', 'watch'] as const

/** The rights of the chart's roles, one by one. */
export const agentPermissions: readonly Permission[] = [
  ...rights('cluster', 'skyhook.nvidia.com', 'skyhooks', [...read, 'patch']),
  ...rights('cluster', 'skyhook.nvidia.com', 'deploymentpolicies', read),
  ...rights('cluster', 'skyhook.nvidia.com', 'skyhooks/status', ['update']),
  ...rights('cluster', '', 'nodes', [...read, 'patch']),
  ...rights('cluster', '', 'nodes/status', ['patch']),
  ...rights('cluster', '', 'pods', read),
  { scope: 'cluster', group: '', resource: 'pods', verb: 'delete', isOptional: true },
  ...rights('cluster', '', 'pods/eviction', ['create']),
  ...rights('cluster', 'policy', 'poddisruptionbudgets', ['list']),
  ...rights('release', 'coordination.k8s.io', 'leases', [...read, 'create', 'update', 'delete']),
  ...rights('release', '', 'secrets', ['get']),
  ...rights('release', '', 'configmaps', ['get']),
  ...rights('default', '', 'events', ['create', 'patch']),
]

export function checkPermissions({ access, fleet }: Pick<ClusterFacts, 'access' | 'fleet'>): Check {
  if (!access.known) return checkOf('permissions', { unknown: [access.why] })
  const release = valueOr(fleet.daemonSet, undefined)
  const user = release && agentUser(release)
  const denied = access.value.filter(({ isAllowed }) => !isAllowed).map(({ permission }) => permission)
  const missing = denied.filter(({ isOptional }) => isOptional !== true)
  const mayDelete = !denied.some(({ isOptional }) => isOptional === true)
  const deleting = fleet.skyhooks.known
    ? fleet.skyhooks.value.filter(({ spec }) => spec.drain?.onTimeout === 'delete').map(({ metadata }) => metadata.name)
    : []
  const findings: Finding[] = []
  if (missing.length > 0)
    findings.push(
      finding('permission-missing', {
        message: `the agents may not ${namedSome(missing.map((one) => rightText(one, fleet.namespace)))}`,
        remedy: 'apply the chart again: its ClusterRole and its Roles, with their bindings, grant these rights',
        ...(user !== undefined && missing[0] && { command: canCommand(missing[0], user, fleet.namespace) }),
        objects: release
          ? [{ kind: 'ServiceAccount', namespace: release.namespace, name: release.serviceAccount }]
          : [],
      }),
    )
  if (!mayDelete && deleting.length > 0)
    findings.push(
      finding('permission-delete-pods', {
        message: `agents may not delete pods, and drain.onTimeout is "delete" in ${namedSome(deleting)}`,
        remedy: "set the chart's drain.allowDelete, or let these Skyhooks only wait",
        command: 'helm upgrade … --reuse-values --set drain.allowDelete=true',
        objects: deleting.map((name) => ({ kind: 'Skyhook', name })),
      }),
    )
  return checkOf('permissions', {
    findings,
    about: `${counted(access.value.length - denied.length, 'right')} of the agents asked for and granted`,
  })
}

const rightText = ({ scope, resource, verb }: Permission, namespace: string): string =>
  `${verb} ${resource}${scope === 'cluster' ? '' : ` in namespace ${namespaceOf(scope, namespace)}`}`

const canCommand = ({ scope, group, resource, verb }: Permission, user: string, namespace: string): string =>
  `kubectl auth can-i ${verb} ${resource.replace('/', `${group === '' ? '' : `.${group}`}/`)}${
    group === '' || resource.includes('/') ? '' : `.${group}`
  }${scope === 'cluster' ? '' : ` -n ${namespaceOf(scope, namespace)}`} --as ${user}`

/** Of a right that is confined to one. */
export const namespaceOf = (scope: Scope, release: string): string => (scope === 'release' ? release : 'default')
