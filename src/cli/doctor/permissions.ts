/**
 * Whether the agents have the rights of the chart's roles, and whether the admission policies that confine each agent
 * to its own node are there, bound, and about the agents.
 */
import { valueOr } from '../fleet/fleet-view/readable.ts'
import {
  agentUser,
  type ClusterFacts,
  type Permission,
  type Scope,
  type BindingFacts,
  type PolicyFacts,
  type PolicyTrial,
} from './cluster-facts.ts'
import { type Check, checkOf, type Finding, finding, namedSome, type ObjectName } from './finding.ts'
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

type ExpectedPolicy = {
  /** The end of the name, after that of the release. */
  readonly suffix: string
  readonly bindings: number
  /** It names the agents' user in an expression. */
  readonly namesAgents: boolean
  /** Agents check the same: a failure of the policy need not block users. */
  readonly mayFailOpen: boolean
}

/** Those of the chart. */
export const expectedPolicies: readonly ExpectedPolicy[] = [
  { suffix: 'own-node', bindings: 1, namesAgents: true, mayFailOpen: false },
  { suffix: 'own-slot', bindings: 1, namesAgents: true, mayFailOpen: false },
  { suffix: 'one-slot', bindings: 16, namesAgents: true, mayFailOpen: false },
  { suffix: 'own-pods', bindings: 1, namesAgents: true, mayFailOpen: false },
  { suffix: 'evictions', bindings: 1, namesAgents: true, mayFailOpen: false },
  { suffix: 'skyhooks-by-agents', bindings: 1, namesAgents: true, mayFailOpen: false },
  { suffix: 'skyhook-resources', bindings: 1, namesAgents: false, mayFailOpen: true },
  { suffix: 'policy-in-use', bindings: 1, namesAgents: false, mayFailOpen: false },
]

const kind = 'ValidatingAdmissionPolicy'
const again = 'apply the chart again: without it, the token of one agent reaches what belongs to other nodes'

export function checkPolicies({ policies, bindings, fleet, trials }: ClusterFacts): Check {
  const installation = fleet.daemonSet
  const unknown = [
    ...(policies.known ? [] : [policies.why]),
    ...(bindings.known ? [] : [bindings.why]),
    ...(trials.known ? [] : [trials.why]),
    ...(installation.known ? [] : [`names of the policies: ${installation.why}`]),
  ]
  if (!policies.known || !installation.known || installation.value === undefined)
    return checkOf('policies', { unknown })
  const { name: release } = installation.value
  const trialOf = ({ suffix }: ExpectedPolicy): PolicyTrial | undefined =>
    trials.known ? trials.value.find((one) => one.suffix === suffix) : undefined
  const user = agentUser(installation.value)
  const findings = expectedPolicies.flatMap((expected) => {
    const name = `${release}-${expected.suffix}`
    const found = policies.value.find((one) => one.name === name)
    if (found === undefined) return [missing(name)]
    const written = [
      ...policyFindings(found, expected, user),
      ...(bindings.known ? bindingFindings(name, expected, bindings.value) : []),
    ]
    const isAdmitting = trialOf(expected)?.outcome === 'admitted'
    return written.length === 0 && isAdmitting ? [notEnforced(name)] : written
  })
  const count = expectedPolicies.filter((one) => trialOf(one) !== undefined).length
  const about = `${expectedPolicies.length} policies of release ${release}, ${count} of them tried`
  return checkOf('policies', { findings, unknown, about })
}

const missing = (name: string): Finding =>
  finding('policy-missing', {
    message: `there is no ${kind} ${name}`,
    remedy: again,
    command: 'kubectl get validatingadmissionpolicies',
    objects: [{ kind, name }],
  })

const notEnforced = (name: string): Finding =>
  finding('policy-not-enforced', {
    message: `the API server admits what ${kind} ${name} must refuse, tried by a dry run`,
    remedy:
      'restart each kube-apiserver: after an uninstall of an older release it no longer follows what the policy ' +
      'compares (kubernetes/kubernetes#130887). If it stays so, apply the chart again',
    command: `kubectl get validatingadmissionpolicy ${name} -o yaml`,
    objects: [{ kind, name }],
  })

function policyFindings(
  { name, failurePolicy, expressions }: PolicyFacts,
  { namesAgents, mayFailOpen }: ExpectedPolicy,
  user: string,
): readonly Finding[] {
  const look = { command: `kubectl get validatingadmissionpolicy ${name} -o yaml`, objects: [{ kind, name }] }
  return [
    ...(namesAgents && !expressions.some((one) => one.includes(`'${user}'`))
      ? [
          finding('policy-other-user', {
            ...look,
            message: `${kind} ${name} does not name ${user}, the user of the agents`,
            remedy: `${again}; set a ServiceAccount of another name in its values`,
          }),
        ]
      : []),
    ...(failurePolicy === 'Fail' || mayFailOpen
      ? []
      : [
          finding('policy-fails-open', {
            ...look,
            message: `${kind} ${name} has failurePolicy ${failurePolicy}: an expression that fails allows the request`,
            remedy: 'apply the chart again: it sets Fail',
          }),
        ]),
  ]
}

function bindingFindings(
  policy: string,
  { bindings: expected }: ExpectedPolicy,
  all: readonly BindingFacts[],
): readonly Finding[] {
  const bindings = all.filter((one) => one.policy === policy)
  const objects: readonly ObjectName[] = [{ kind, name: policy }]
  const command = 'kubectl get validatingadmissionpolicybindings'
  const lax = bindings.filter(({ actions }) => !actions.includes('Deny'))
  return [
    ...(bindings.length < expected
      ? [
          finding('policy-unbound', {
            message: `${kind} ${policy} has ${bindings.length} of ${counted(expected, 'binding')}`,
            remedy: again,
            command,
            objects,
          }),
        ]
      : []),
    ...lax.map(({ name, actions }) =>
      finding('policy-not-denying', {
        message: `ValidatingAdmissionPolicyBinding ${name} has the actions ${actions.join(', ') || 'none'}, not Deny`,
        remedy: again,
        command: `kubectl get validatingadmissionpolicybinding ${name} -o yaml`,
        objects: [{ kind: 'ValidatingAdmissionPolicyBinding', name }, ...objects],
      }),
    ),
  ]
}
