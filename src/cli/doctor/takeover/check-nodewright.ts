/** What NodeWright has left. Agents start nothing on it before somebody has decided. */
import { apiGroup } from '../../../schemas/api.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import {
  ignoreNodeWrightCommand,
  ignoreNodeWrightSetting,
  ignoresNodeWright,
  nodeWrightDefinition,
  nodeWrightGroup,
  nodeWrightMarksOn,
} from '../../../schemas/nodewright.ts'
import type { Known } from '../../../stages/model/snapshot.ts'
import { type Check, checkOf, type Finding, finding, namedSome } from '../finding.ts'
import { hasNodeWrightState } from './adoption.ts'
import type { NodeWrightJob, OperatorSkyhook, TakeoverFacts } from './facts.ts'
import { counted } from '../../../schemas/wording.ts'

export const isNodeWrightIgnored = (agents: TakeoverFacts['agents']): boolean =>
  agents.known && agents.value.some(({ ignoresNodeWright: one }) => one.known && one.value)

/** A setting of the agents turns all of it off, an annotation the part about one Skyhook. */
export function checkNodeWright({ nodeWright, skyhooks, nodes, agents }: TakeoverFacts): Check {
  if (isNodeWrightIgnored(agents))
    return checkOf('nodewright', { about: `the setting ${ignoreNodeWrightSetting} of the agents is true` })
  const settings = agents.known ? agents.value.map(({ ignoresNodeWright: one }) => one) : []
  const unknown = [nodeWright.isServed, nodeWright.objects, skyhooks, nodes, agents, ...settings].flatMap((part) =>
    part.known ? [] : [part.why],
  )
  const { isServed, objects } = nodeWright
  const open = skyhooks.known ? skyhooks.value.filter(({ metadata }) => !ignoresNodeWright(metadata.annotations)) : []
  // without Skyhooks the agents have no work, which a user of NodeWright would not notice
  const isDecided = skyhooks.known && skyhooks.value.length > 0 && open.length === 0
  const findings = [
    ...(isServed.known && isServed.value && !isDecided ? servedFinding(objects, open.length > 0) : []),
    ...duplicateFindings(open, new Set(objects.known ? objects.value : [])),
    ...(nodes.known ? stateFindings(open, nodes.value) : []),
  ]
  return checkOf('nodewright', {
    findings,
    unknown: [...new Set(unknown)],
    about: findings.length === 0 && unknown.length === 0 ? 'nothing to decide' : '',
  })
}

/**
 * Deleting the definition would delete its objects, and its operator would uninstall what they name. This is
 * recommended only if there are none.
 */
function servedFinding(objects: Known<readonly string[]>, hasSkyhooks: boolean): readonly Finding[] {
  const message = `the API server serves ${nodeWrightGroup}`
  const names = objects.known ? objects.value : []
  if (objects.known && names.length === 0) {
    const definitions = `${nodeWrightDefinition} deploymentpolicies.${nodeWrightGroup}`
    return [
      finding('nodewright-served', {
        message: `${message}, without a NodeWright`,
        remedy:
          'delete the definitions that NodeWright left behind. Agents look once: restart those that are installed',
        command: `kubectl delete customresourcedefinition ${definitions} --ignore-not-found`,
        objects: [],
      }),
    ]
  }
  return [
    finding('nodewright-served', {
      message: objects.known ? `${message}, with ${counted(names.length, 'NodeWright')}: ${namedSome(names)}` : message,
      remedy:
        'agents act on Skyhooks only, and start none until somebody has decided: what NodeWright has done is unknown ' +
        'to them, and runs again. If that is intended, annotate each Skyhook, or set the value ' +
        `${ignoreNodeWrightSetting} of the chart`,
      command: hasSkyhooks
        ? ignoreNodeWrightCommand('--all')
        : `helm upgrade --install skyhookd skyhookd.tgz -n skyhook --set ${ignoreNodeWrightSetting}=true`,
      objects: names.map((name) => ({ kind: 'NodeWright', name })),
    }),
  ]
}

/** Of two objects with one name, that of NodeWright counts. */
function duplicateFindings(skyhooks: readonly OperatorSkyhook[], objects: ReadonlySet<string>): readonly Finding[] {
  const duplicates = skyhooks.filter(({ metadata }) => objects.has(metadata.name))
  const marked = skyhooks.filter((one) => !duplicates.includes(one) && nodeWrightMarksOn(one).length > 0)
  const reasons = [
    [duplicates, 'with a NodeWright of the same name, which is the one that counts'],
    [marked, `that NodeWright has written, or that were made from its objects`],
  ] as const
  return reasons.flatMap(([found, what]): readonly Finding[] => {
    if (found.length === 0) return []
    const names = found.map(({ metadata }) => metadata.name)
    return [
      finding('nodewright-duplicate', {
        message: `${counted(names.length, 'Skyhook')} ${what}: ${namedSome(names)}`,
        remedy: `agents do not act on them. ${decision}`,
        command: ignoreNodeWrightCommand(names.join(' ')),
        objects: names.map((name) => ({ kind: 'Skyhook', name })),
      }),
    ]
  })
}

/** Of all Nodes: one that is not selected today may be tomorrow. */
function stateFindings(skyhooks: readonly OperatorSkyhook[], nodes: readonly KubernetesNode[]): readonly Finding[] {
  return skyhooks.flatMap((skyhook): readonly Finding[] => {
    const { name } = skyhook.metadata
    const names = nodes.filter((node) => hasNodeWrightState(skyhook, node)).map(({ metadata }) => metadata.name)
    if (names.length === 0) return []
    return [
      finding('nodewright-state', {
        message:
          `state of ${name} under the other prefix, ${nodeWrightGroup}/, on ` +
          `${counted(names.length, 'node')}: ${namedSome(names)}`,
        remedy: `agents do not start it there. ${decision}`,
        command: ignoreNodeWrightCommand(name),
        objects: [{ kind: 'Skyhook', name }, ...names.map((node) => ({ kind: 'Node', name: node }))],
      }),
    ]
  })
}

const decision =
  'If the record of NodeWright does not count, annotate the Skyhook: what Nodes do not show under ' +
  `${apiGroup}/ then runs again, with its interrupts`

/** A command line has room for so many. */
const maxJobNames = 50

/** Kubernetes itself runs them, also without an operator. */
export function checkJobs(jobs: Known<readonly NodeWrightJob[]>): Check {
  if (!jobs.known) return checkOf('jobs', { unknown: [jobs.why] })
  const findings = [...Map.groupBy(jobs.value, ({ namespace }) => namespace)].map(([namespace, group]) => {
    const names = group.map(({ name }) => name)
    const where = [...new Set(group.map(({ node, rollout }) => `${rollout} on ${node}`))]
    return finding('nodewright-job', {
      message: `${counted(group.length, 'Job')} of NodeWright not ended: ${namedSome(where)}`,
      remedy:
        'wait for them to end, or delete them when the operator is stopped, with their pods: a pod that is deleted ' +
        'alone is created again. The stage runs again',
      command: `kubectl -n ${namespace} delete job ${names.slice(0, maxJobNames).join(' ')} --cascade=foreground`,
      objects: names.map((name) => ({ kind: 'Job', namespace, name })),
    })
  })
  return checkOf('jobs', { findings, about: findings.length === 0 ? 'none of NodeWright that has not ended' : '' })
}
