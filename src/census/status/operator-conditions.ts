import { apiGroup } from '../../schemas/api.ts'
import type { NodeStatus, Skyhook } from '../../schemas/skyhook.ts'
import type { Counts } from '../model/count.ts'
import type { NodeFact } from '../model/node-facts.ts'
import { type ConditionContent, conditionOf, type SkyhookStatus, statusOf } from '../model/skyhook-status.ts'
import { formatNodeNames } from '../model/summary-text.ts'

/** The operator's conditions, in its wording, with at most twenty names. `status` is the one that they accompany. */
export function operatorConditions(skyhook: Skyhook, counts: Counts, status: NodeStatus): ConditionContent[] {
  const previous = statusOf(skyhook)
  const namesOf = (test: (node: NodeFact) => boolean): string =>
    formatNodeNames(counts.nodes.filter(test).map(({ name }) => name))
  const untolerated = namesOf(({ reason }) => reason?.reason === 'TaintNotTolerated')
  const ignored = namesOf(({ isIgnored }) => isIgnored)
  return [
    ...transitionCondition(status, previous),
    ...applyPackageCondition(counts, previous),
    {
      type: `${apiGroup}/TaintNotTolerable`,
      reason: 'TaintNotTolerable',
      ...(untolerated === ''
        ? { status: 'False', message: 'All nodes have tolerable taints.' }
        : { status: 'True', message: `Node [${untolerated}] has taints that are not tolerable. Skipping.` }),
    },
    {
      type: `${apiGroup}/NodesIgnored`,
      reason: 'NodesIgnored',
      ...(ignored === ''
        ? { status: 'False', message: 'No nodes have ignore label set.' }
        : { status: 'True', message: `Node [${ignored}] has ignore label set. Skipping.` }),
    },
    ...policyCondition(skyhook, counts),
  ]
}

/** Removed when the policy exists, or is no longer named. */
export const policyNotFound = `${apiGroup}/DeploymentPolicyNotFound` as const

function policyCondition({ spec }: Skyhook, { policy }: Counts): ConditionContent[] {
  if (policy?.state !== 'missing') return []
  const message = `DeploymentPolicy "${spec.deploymentPolicy}" not found`
  return [{ type: policyNotFound, status: 'True', reason: 'DeploymentPolicyNotFound', message }]
}

function transitionCondition(status: NodeStatus, previous: SkyhookStatus | undefined): ConditionContent[] {
  const type = `${apiGroup}/Transition` as const
  const before = previous?.status
  const last = conditionOf(previous, type)
  // the operator leaves out the first one
  if (before === undefined || (before === status && last === undefined)) return []
  const message = before === status && last !== undefined ? last.message : `Transitioned [${before}] -> [${status}]`
  return [{ type, status: status === 'complete' ? 'True' : 'False', reason: status, message }]
}

/** The latest package that a node started; if several started since the last write, the last by name. */
function applyPackageCondition({ nodes }: Counts, previous: SkyhookStatus | undefined): ConditionContent[] {
  const type = `${apiGroup}/ApplyPackage` as const
  const messages = nodes.flatMap(({ name, entries }) => {
    const before = previous?.nodeState?.[name]
    if (before === undefined && previous?.nodeStateTruncated === true) return [] // it may be an old one
    return Object.entries(entries)
      .filter(
        ([key, { stage, state }]) =>
          state === 'in_progress' && (before?.[key]?.state !== 'in_progress' || before[key].stage !== stage),
      )
      .map(([, entry]) => `Applying package [${entry.name}:${entry.version}] to node [${name}]`)
  })
  const message = messages.at(-1) ?? conditionOf(previous, type)?.message
  return message === undefined ? [] : [{ type, status: 'True', reason: 'ApplyPackage', message }]
}
