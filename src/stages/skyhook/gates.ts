import { disableKey, ignoreLabel, pauseKey } from '../../schemas/annotations.ts'
import { dependencyProblems } from '../package/dependencies.ts'
import type { Reason } from '../../schemas/catalogue/reasons.ts'
import { selects, tolerates } from '../../schemas/selectors.ts'
import type { SkyhookSpec } from '../../schemas/skyhook.ts'
import type { SkyhookView, Snapshot } from '../model/snapshot.ts'

export const isSelected = (view: SkyhookView, snapshot: Snapshot): boolean =>
  selects(view.spec.nodeSelectors, snapshot.node.metadata.labels ?? {})

const isTrue = (value: string | undefined): boolean => value === 'true'

export const isPaused = (view: SkyhookView): boolean => isTrue(view.metadata.annotations?.[pauseKey])
export const isDisabled = (view: SkyhookView): boolean => isTrue(view.metadata.annotations?.[disableKey])
export const isIgnored = (snapshot: Snapshot): boolean => isTrue(snapshot.node.metadata.labels?.[ignoreLabel])

/** Why no node starts with this spec, in one message; the CRD refuses most of it before. */
export const specProblem = ({ spec }: SkyhookView): Reason | undefined =>
  invalidSpec([...policyProblems(spec), ...dependencyProblems(spec.packages ?? {})])

const invalidSpec = (problems: readonly string[]): Reason | undefined =>
  problems.length === 0 ? undefined : { reason: 'InvalidSpec', message: problems.join('; ') }

const policyProblems = ({ deploymentPolicy }: SkyhookSpec): readonly string[] =>
  deploymentPolicy
    ? ['spec.deploymentPolicy: this version does not evaluate DeploymentPolicies; use spec.interruptionBudget instead']
    : []

/** Taints of the node that keep this Skyhook away; its own, cordons and the runtime-required taint never do. */
function untoleratedTaints(view: SkyhookView, snapshot: Snapshot): string[] {
  const { runtimeRequiredTaint } = snapshot.settings
  const tolerations = [
    { key: 'node.kubernetes.io/unschedulable', operator: 'Exists' as const },
    { key: runtimeRequiredTaint.key, operator: 'Exists' as const },
    ...(view.spec.additionalTolerations ?? []),
  ]
  return (snapshot.node.spec?.taints ?? [])
    .filter((taint) => taint.effect !== 'PreferNoSchedule' && !tolerates(tolerations, taint))
    .map(({ key, value, effect }) => `${key}${value ? `=${value}` : ''}:${effect}`)
}

/** Why a Skyhook may not begin on this node now, before slots are looked at. They gate only the beginning. */
export function startGate(
  view: SkyhookView,
  snapshot: Snapshot,
  precedingSkyhook: string | undefined,
): Reason | undefined {
  if (isIgnored(snapshot)) return { reason: 'Ignored', message: `the node has the label ${ignoreLabel}=true` }
  if (isDisabled(view)) return { reason: 'Disabled', message: `the Skyhook has the annotation ${disableKey}=true` }
  if (isPaused(view)) return { reason: 'Paused', message: `the Skyhook has the annotation ${pauseKey}=true` }
  const problem = specProblem(view)
  if (problem) return problem
  if (precedingSkyhook !== undefined)
    return {
      reason: 'WaitingForPriority',
      message: `Skyhook ${precedingSkyhook} comes first and is not complete on this node`,
    }
  if (snapshot.host.state === 'unusable')
    return otherRebootReason(snapshot) ?? { reason: snapshot.host.reason, message: snapshot.host.message }
  const taints = untoleratedTaints(view, snapshot)
  if (taints.length > 0)
    return {
      reason: 'TaintNotTolerated',
      message: `the node has ${taints.join(', ')}: tolerate it in spec.additionalTolerations or remove it`,
    }
  return undefined
}

/** The bus ends before the agent does when the host goes down: for those who wait no trouble of the host's. */
function otherRebootReason({ journal, bootId }: Snapshot): Reason | undefined {
  const rebooting = Object.entries(journal.skyhooks).find(
    ([, { interrupt }]) => interrupt?.interrupt.type === 'reboot' && interrupt.bootId === bootId,
  )
  return rebooting && { reason: 'RebootPending', message: `the host is about to reboot for Skyhook ${rebooting[0]}` }
}

/** Why a started Skyhook starts nothing new for now; what runs ends and is recorded, slot and cordon stay. */
export function pauseReason(view: SkyhookView, snapshot: Snapshot): Reason | undefined {
  if (isIgnored(snapshot))
    return { reason: 'Ignored', message: `the node has the label ${ignoreLabel}=true; work is suspended` }
  if (isPaused(view))
    return { reason: 'Paused', message: `the Skyhook has the annotation ${pauseKey}=true; work is suspended` }
  if (snapshot.host.state === 'unusable') return { reason: snapshot.host.reason, message: snapshot.host.message }
  return invalidSpec(dependencyProblems(view.spec.packages ?? {}))
}
