/** Whether the API server serves agents by priority levels of their own. */
import type { ClusterFacts } from './cluster-facts.ts'
import { type Check, checkOf, type Finding, finding } from './finding.ts'

/** The chart's levels, by the end of their name, after that of the release. */
export const levelSuffixes = ['acting', 'waiting'] as const

const remedy = "set the chart's apiPriority.enabled and apply it again"

export function checkPriority({ flowSchemas, priorityLevels, fleet }: ClusterFacts): Check {
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
