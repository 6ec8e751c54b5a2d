/** All checks of a cluster, or those of one node. */
import type { KubernetesNode, Taint } from '../../schemas/kubernetes.ts'
import { known, type Known } from '../../stages/model/snapshot.ts'
import { checkAgents, checkCensus } from './agents.ts'
import type { ClusterFacts } from './cluster-facts.ts'
import { type Check, checkOf, type Finding, finding, namedSome } from './finding.ts'
import { checkHosts } from './hosts.ts'
import { checkCordons, checkSlots, type Suspicion } from './left-overs.ts'
import { checkPermissions, checkPolicies } from './permissions.ts'
import { unliftedTaint } from '../../stages/drain/node-spec.ts'
import { defaultSettings } from '../fleet/fleet-view/settings.ts'
import { valueOr } from '../fleet/fleet-view/readable.ts'
import type { FleetView } from '../fleet/fleet-view/fleet-view.ts'
import { counted } from '../../schemas/wording.ts'
import { canonicalJson } from '../../schemas/canonical-json.ts'
import { isObject } from '../../schemas/json.ts'

/** `suspicions`: those that a second look has confirmed. */
export function clusterReport(
  facts: ClusterFacts,
  expected: readonly ExpectedDefinition[],
  suspicions: readonly Suspicion[],
): readonly Check[] {
  const { fleet, vitals } = facts
  return [
    checkVersions(facts),
    checkPermissions(facts),
    checkPolicies(facts),
    checkDefinitions(facts, expected),
    checkPriority(facts),
    checkAgents({ fleet, nodes: fleet.nodes, vitals, suspicions }),
    checkCensus(facts),
    checkCordons(fleet, suspicions),
    checkSlots(fleet, suspicions),
    checkTaints(fleet),
    checkHosts(fleet, fleet.nodes),
  ]
}

export function nodeReport(
  { fleet, vitals }: Pick<ClusterFacts, 'fleet' | 'vitals'>,
  node: KubernetesNode,
  suspicions: readonly Suspicion[],
): readonly Check[] {
  const { name } = node.metadata
  const nodes: Known<readonly KubernetesNode[]> = known([node])
  return [
    checkAgents({ fleet, nodes, vitals, suspicions }),
    checkCordons(fleet, suspicions, name),
    checkSlots(fleet, suspicions, name),
    checkTaints(fleet, nodes),
    checkHosts(fleet, nodes),
  ]
}

/** Since then admission policies in CEL are stable, and tokens of pods name their node (kubeVersion of the chart). */
const minKubernetes = [1, 30] as const

function checkVersions({ serverVersion, toolVersion, fleet }: ClusterFacts): Check {
  const installation = fleet.daemonSet
  const findings: Finding[] = []
  const unknown: string[] = []
  const about: string[] = []
  if (serverVersion.known) {
    about.push(`Kubernetes ${serverVersion.value}`)
    if (isOlder(serverVersion.value, minKubernetes))
      findings.push(
        finding('kubernetes-too-old', {
          message: `the API server runs ${serverVersion.value}, agents need v${minKubernetes.join('.')} or later`,
          remedy: 'upgrade Kubernetes: earlier versions cannot confine each agent to its own node',
          objects: [],
        }),
      )
  } else unknown.push(`version of the API server: ${serverVersion.why}`)
  if (!installation.known) unknown.push(`version of the agents: ${installation.why}`)
  else if (installation.value === undefined) findings.push(notInstalled(fleet.namespace))
  else {
    const { version, name, namespace } = installation.value
    about.push(`agents ${version ?? 'of unknown version'}`)
    if (version !== undefined && toolVersion !== 'source' && version !== toolVersion)
      findings.push(
        finding('tool-version', {
          message: `this tool is of version ${toolVersion}, the agents are of version ${version}`,
          remedy: `use the tool of version ${version}: explain and plan decide as agents of the tool's version do`,
          command: 'kubectl skyhook version',
          objects: [{ kind: 'DaemonSet', namespace, name }],
        }),
      )
  }
  about.push(`this tool ${toolVersion}`)
  return checkOf('versions', { findings, unknown, about: about.join(', ') })
}

const notInstalled = (namespace: string): Finding =>
  finding('agents-not-installed', {
    message: `namespace ${namespace} has no DaemonSet of skyhookd`,
    remedy: 'install the chart, or pass its namespace with -n',
    command: 'kubectl get daemonsets -A -l app.kubernetes.io/name=skyhookd',
    objects: [{ kind: 'Namespace', name: namespace }],
  })

/** An unreadable version is not reported as old. */
function isOlder(version: string, [minMajor, minMinor]: readonly [number, number]): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? []
  if (major === undefined || minor === undefined) return false
  return Number(major) < minMajor || (Number(major) === minMajor && Number(minor) < minMinor)
}

/** The chart's levels, by the end of their name, after that of the release. */
export const levelSuffixes = ['acting', 'waiting'] as const

const remedy = "set the chart's apiPriority.enabled and apply it again"

function checkPriority({ flowSchemas, priorityLevels, fleet }: ClusterFacts): Check {
  const installation = fleet.daemonSet
  const unknown = [
    ...(flowSchemas.known ? [] : [flowSchemas.why]),
    ...(priorityLevels.known ? [] : [priorityLevels.why]),
    ...(installation.known ? [] : [`names of the levels: ${installation.why}`]),
  ]
  if (!flowSchemas.known || !installation.known || installation.value === undefined)
    return checkOf('priority', { unknown })
  const { name: release, namespace, serviceAccount } = installation.value
  const names = levelSuffixes.map((suffix) => `${release}-${suffix}`)
  const findings = names.flatMap((name): readonly Finding[] => {
    const objects = [{ kind: 'FlowSchema', name }]
    const found = flowSchemas.value.find((one) => one.name === name)
    const command = `kubectl get flowschema ${name} -o yaml`
    if (found === undefined)
      return [
        finding('priority-missing', {
          message: `there is no FlowSchema ${name}: agents queue behind other ServiceAccounts`,
          remedy,
          command: 'kubectl get flowschemas',
          objects,
        }),
      ]
    if (!found.serviceAccounts.includes(`${namespace}/${serviceAccount}`))
      return [
        finding('priority-other-user', {
          message: `FlowSchema ${name} is not about ServiceAccount ${namespace}/${serviceAccount}`,
          remedy: 'apply the chart again',
          command,
          objects,
        }),
      ]
    if (priorityLevels.known && !priorityLevels.value.includes(found.priorityLevel))
      return [
        finding('priority-dangling', {
          message: `FlowSchema ${name} names the priority level ${found.priorityLevel}, which does not exist`,
          remedy,
          command,
          objects: [...objects, { kind: 'PriorityLevelConfiguration', name: found.priorityLevel }],
        }),
      ]
    return []
  })
  return checkOf('priority', { findings, unknown, about: names.join(', ') })
}

/** `nodes`: the checked ones. */
function checkTaints(fleet: FleetView<KubernetesNode>, nodes: Known<readonly KubernetesNode[]> = fleet.nodes): Check {
  const { skyhooks } = fleet
  if (!nodes.known || !skyhooks.known)
    return checkOf('taints', { unknown: [nodes, skyhooks].flatMap((part) => (part.known ? [] : [part.why])) })
  const { runtimeRequiredTaint } = valueOr(fleet.settings, defaultSettings)
  const found = nodes.value.flatMap((node) => {
    const taint = unliftedTaint(node, runtimeRequiredTaint, skyhooks.value)
    return taint ? [{ name: node.metadata.name, ...taint }] : []
  })
  const [first] = found
  const about = counted(nodes.value.length, 'node')
  const pressed = pressureFindings(nodes.value)
  if (!first) return checkOf('taints', { about, findings: pressed })
  const names = found.map(({ name }) => name)
  const others = first.others.length > 0 ? `, not ${namedSome(first.others)}` : ''
  return checkOf('taints', {
    about,
    findings: [
      ...pressed,
      finding('taint-without-skyhook', {
        message:
          `${counted(found.length, 'node')} with the taint ${first.text}, and no Skyhook with runtimeRequired ` +
          `selects them${others}: ${namedSome(names)}`,
        remedy: 'apply a Skyhook with runtimeRequired that selects them, or remove the taint',
        command: `kubectl taint node ${first.name} ${removalOf(first.taints)}`,
        objects: names.map((name) => ({ kind: 'Node', name })),
      }),
    ],
  })
}

/** As an argument of kubectl. */
const removalOf = (taints: readonly Taint[]): string => taints.map(({ key, effect }) => `${key}:${effect}-`).join(' ')

const pressureKeys = ['disk-pressure', 'memory-pressure', 'pid-pressure', 'network-unavailable'].map(
  (name) => `node.kubernetes.io/${name}`,
)

/** Taints of Kubernetes also keep Skyhooks without a toleration off a node. */
function pressureFindings(nodes: readonly KubernetesNode[]): readonly Finding[] {
  return pressureKeys.flatMap((key) => {
    const names = nodes.filter(({ spec }) => spec?.taints?.some((one) => one.key === key)).map(nameOf)
    if (names.length === 0) return []
    return [
      finding('node-under-pressure', {
        message: `${counted(names.length, 'node')} with the taint ${key}: ${namedSome(names)}`,
        remedy: 'fix on the host what the conditions of the Node report: Kubernetes then removes the taint',
        command: `kubectl describe node ${names[0] ?? ''}`,
        objects: names.map((name) => ({ kind: 'Node', name })),
      }),
    ]
  })
}

const nameOf = ({ metadata }: KubernetesNode): string => metadata.name

export type ExpectedDefinition = {
  readonly name: string
  /** Without the status. */
  readonly schema: object
}

const kind = 'CustomResourceDefinition'
const upgrade = 'upgrade the chart with crds.install, or apply the files of its folder crd-files'

function checkDefinitions(
  { definitions, toolVersion }: Pick<ClusterFacts, 'definitions' | 'toolVersion'>,
  expected: readonly ExpectedDefinition[],
): Check {
  if (!definitions.known) return checkOf('definitions', { unknown: [definitions.why] })
  const findings = expected.flatMap(({ name, schema }): readonly Finding[] => {
    const found = definitions.value.get(name)
    const command = `kubectl get crd ${name} -o yaml`
    const objects = [{ kind, name }]
    if (found === undefined)
      return [finding('definition-missing', { message: `there is no ${kind} ${name}`, remedy: upgrade, objects })]
    if (found.schema === undefined || !found.isEstablished)
      return [
        finding('definition-not-served', {
          message: `${kind} ${name} ${found.schema === undefined ? 'does not serve v1alpha1' : 'is not established'}`,
          remedy: `look at its conditions, and ${upgrade}`,
          command,
          objects,
        }),
      ]
    return differences(name, schema, withoutStatus(found.schema)).map((one) => ({ ...one, command }))
  })
  return checkOf('definitions', { findings, about: `those of version ${toolVersion}` })
}

function differences(name: string, ours: object, theirs: object): readonly Finding[] {
  const known = new Set(fieldsOf(theirs, ''))
  const missing = fieldsOf(ours, '').filter((field) => !known.has(field))
  const objects = [{ kind, name }]
  // a field within a missing field needs no mention
  const outermost = missing.filter((field) => !missing.some((other) => field.startsWith(`${other}.`)))
  if (outermost.length > 0)
    return [
      finding('definition-lacks-fields', {
        message: `${kind} ${name} lacks ${namedSome(outermost)}: the API server drops these fields`,
        remedy: `${upgrade}; where the agents are older than this tool, use the tool of their version`,
        objects,
      }),
    ]
  if (canonicalJson(withoutTexts(ours)) === canonicalJson(withoutTexts(theirs))) return []
  return [
    finding('definition-differs', {
      message: `${kind} ${name} has other rules, limits or fields than that of this tool's version`,
      remedy: `${upgrade}; where it is newer than this tool, use the tool of the agents' version`,
      objects,
    }),
  ]
}

/** Every field by its path, such as `spec.packages.*.version`. */
function fieldsOf(schema: unknown, path: string): readonly string[] {
  if (!isObject(schema)) return []
  const { properties, items, additionalProperties } = schema
  const at = (name: string): string => (path === '' ? name : `${path}.${name}`)
  return [
    ...(isObject(properties)
      ? Object.entries(properties).flatMap(([name, value]) => [at(name), ...fieldsOf(value, at(name))])
      : []),
    ...fieldsOf(items, at('*')),
    ...fieldsOf(additionalProperties, at('*')),
  ]
}

function withoutStatus(schema: object): object {
  if (!('properties' in schema) || !isObject(schema.properties)) return schema
  const properties = Object.entries(schema.properties).filter(([name]) => name !== 'status')
  return { ...schema, properties: Object.fromEntries(properties) }
}

/** Descriptions have no effect; but a property may have that name. */
function withoutTexts(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutTexts)
  if (!isObject(schema)) return schema
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([key, value]) => key !== 'description' || typeof value !== 'string')
      .map(([key, value]) => [key, withoutTexts(value)]),
  )
}
