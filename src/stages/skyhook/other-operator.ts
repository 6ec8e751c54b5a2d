/**
 * The work of an operator whose record no agent can continue: NodeWright, which keeps it in its own API group and under
 * its own prefix, or an operator whose keys are gone from the Node. Only a person knows whether it counts.
 */
import { cordonKey, journalKey, nodeStateKey, statusKey, versionKey } from '../../schemas/annotations.ts'
import type { Reason } from '../../schemas/catalogue/reason.ts'
import type { ObjectMeta } from '../../schemas/kubernetes.ts'
import {
  ignoreNodeWrightCommand,
  ignoreNodeWrightSetting,
  ignoresNodeWright,
  nodeWrightDefinition,
  nodeWrightGroup,
  nodeWrightKeysOf,
  nodeWrightMarksOn,
} from '../../schemas/nodewright.ts'
import type { PlanBuilder } from '../model/plan-builder.ts'
import { isFinished, type PackagePodState, type Pod, packagePodState, skyhookOfPackagePod } from '../model/pods.ts'
import type { OtherOperator, Snapshot } from '../model/snapshot.ts'

/** A Skyhook, or the known part of one that is gone. */
type Named = { readonly metadata: Pick<ObjectMeta, 'name' | 'annotations' | 'finalizers'> }

/**
 * Why nothing of the Skyhook starts on this node until a person has decided, with the findings and the command that
 * decides. Undefined where nothing was found, or a person has decided that it does not count.
 */
export function otherOperatorGate({ metadata }: Named, snapshot: Snapshot): Reason | undefined {
  if (snapshot.settings.ignoreNodeWright || ignoresNodeWright(metadata.annotations)) return undefined
  const found = workOfOthers({ metadata }, snapshot)
  if (found === undefined) return undefined
  return {
    reason: 'Takeover',
    code: 'other-operator',
    message: `${found}; if that record does not count: ${ignoreNodeWrightCommand(metadata.name)}`,
  }
}

/** The most specific finding. */
function workOfOthers({ metadata }: Named, { node, otherOperator, journal }: Snapshot): string | undefined {
  const { name } = metadata
  const { annotations = {} } = node.metadata
  const [key, ...moreKeys] = nodeWrightKeysOf(annotations, name)
  if (key !== undefined) {
    const more = moreKeys.length === 0 ? '' : ` (and ${moreKeys.length} more)`
    return `the Node has ${key}${more}: NodeWright has worked on ${name} here, and agents do not read its record`
  }
  const [mark] = nodeWrightMarksOn({ metadata })
  if (mark !== undefined) return `the Skyhook has ${mark}: NodeWright has migrated it`
  if (otherOperator.isNodeWrightServed)
    return (
      `${servedText}, and agents serve Skyhooks only: ` +
      `delete the definition ${nodeWrightDefinition} and restart the agents, ` +
      `or set ${ignoreNodeWrightSetting} in the chart`
    )
  const isKnown = Object.hasOwn(journal.skyhooks, name) || ownKeys.some((of) => Object.hasOwn(annotations, of(name)))
  const file = isKnown ? undefined : otherOperator.files.get(name)
  return file && `the host has ${file} of another operator, and the Node has no record of its work`
}

const servedText = `the API server serves ${nodeWrightGroup}`

/** Records of one Skyhook on a Node; with one of them, the Node shows what was done. */
const ownKeys = [nodeStateKey, statusKey, versionKey, cordonKey, journalKey]

/** The findings that only an agent can make, from the messages of this gate that its Node shows for Skyhooks. */
export function otherOperatorIn(messages: ReadonlyMap<string, string>): OtherOperator {
  const files = [...messages].flatMap(([skyhook, message]): [string, string][] => {
    const [, file] = /^the host has (\S+) of another operator,/.exec(message) ?? []
    return file === undefined ? [] : [[skyhook, file]]
  })
  return {
    isNodeWrightServed: [...messages.values()].some((message) => message.startsWith(servedText)),
    files: new Map(files),
  }
}

/**
 * Whether package pods of the Skyhook operator may be on this node: its work on some Skyhook was found unfinished, and
 * no agent has started there since. Until then, nothing starts unless the pods of the node are known.
 */
export const mayHavePackagePods = ({ snapshot, record }: PlanBuilder): boolean =>
  record.adopted === true || Object.values(snapshot.journal.skyhooks).some(({ adopted }) => adopted === true)

const remedies: Readonly<Record<PackagePodState, string>> = {
  running: 'is at work: wait until it has ended, then delete it',
  failing: 'fails again and again: delete it',
  ended: 'has nothing left to do: delete it, because the kubelet runs it again after a reboot',
}

/**
 * Nothing starts while there is a package pod, because it changes the same host. An ended one would run again after the
 * next boot, including its interrupt, unless the pod itself is finished.
 */
export function packagePodGate(builder: PlanBuilder): Reason | undefined {
  if (!mayHavePackagePods(builder)) return undefined
  const { pods } = builder.snapshot
  if (!pods.known) return { reason: 'Takeover', message: `looking for package pods of the operator: ${pods.why}` }
  const found = pods.value.pods.filter((pod) => skyhookOfPackagePod(pod) !== undefined && !isFinished(pod))
  const pod = found.toSorted((a, b) => rank(a) - rank(b) || (nameOf(a) < nameOf(b) ? -1 : 1))[0]
  if (pod === undefined) return undefined
  const others = found.length === 1 ? '' : ` (and ${found.length - 1} more on this node)`
  return {
    reason: 'Takeover',
    message: `package pod ${nameOf(pod)} of the operator ${remedies[packagePodState(pod)]}${others}`,
  }
}

const nameOf = ({ metadata }: Pod): string => `${metadata.namespace}/${metadata.name}`
const rank = (pod: Pod): number => Object.keys(remedies).indexOf(packagePodState(pod))
