/**
 * How far the published copy of a journal can be relied on: whether it is from the agent, of this Node, and not edited
 * since, and what it leaves open. Pure.
 */
import { journalKey } from '../../../schemas/annotations.ts'
import type { PackageRecord } from '../../../schemas/package-record.ts'
import { ownValue } from '../../../schemas/json.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import type { NodeStep, Published } from '../../../schemas/published.ts'
import { type Known, known, unknown } from '../../../stages/model/snapshot.ts'
import { isStage } from './published-failure.ts'

export function trustIn({ metadata }: KubernetesNode, name: string, { origin, state }: Published): Known<true> {
  switch (origin) {
    case 'agent':
    case 'nobody':
      return known(true)
    case 'unsigned':
      return unknown(
        metadata.annotations?.[journalKey(name)] === undefined
          ? `the annotation journal_${name} is missing: no agent has written nodeState_${name}`
          : `the annotation journal_${name} cannot be read`,
      )
    case 'edited': {
      const edit = state === undefined ? 'removed' : 'edited'
      return unknown(`someone ${edit} the annotation nodeState_${name}, and the agent has not answered`)
    }
    case 'former-node':
      return unknown('the state is of an earlier registration of this Node')
  }
}

type Found = {
  readonly record: PackageRecord
  /** Its configuration is in no spec, and its keys may ask for interrupts. */
  readonly isOfGoneSpec: boolean
  /** The edit stops its installation, of which the Node names no step. */
  readonly isStopped: boolean
}

type Copy = Pick<Published, 'entries' | 'companion'> & {
  /** The whole spec was completed last. */
  readonly isApplied: boolean
  readonly isSuspended: boolean
  /** That the Node names. */
  readonly step: NodeStep | undefined
}

/** Why the work of a package is not known for sure; undefined if it is. `found`: what is read from the copy. */
export function guessOf(
  found: readonly Found[],
  { entries = new Map(), companion, isApplied, isSuspended, step }: Copy,
): string | undefined {
  const isUnsaid = [...entries].some(
    ([key, { stage }]) => isConfigured(stage) && !ownValue(companion?.work, key)?.inputs,
  )
  if (isUnsaid && !isApplied) return olderAgent
  if (found.some(({ isOfGoneSpec }) => isOfGoneSpec)) return goneSpec
  if (found.some(({ isStopped }) => isStopped)) return stoppedInstall
  // a step of an earlier spec is not stopped, and its stage looks the same on the Node when it has ended
  const isOneOfSeveral = isSuspended && step !== undefined && found.filter(isInStage).length > 1
  return isOneOfSeveral ? oneOfSeveral : undefined
}

const olderAgent = 'an older agent does not report the configuration of complete packages'
const goneSpec = 'a package is configured by an earlier spec, whose keys may ask for an interrupt'
const stoppedInstall = 'the edit stops an installation, and the Node does not name its step: it may not have started'
const oneOfSeveral = 'no step starts there now, and the Node names only one of the steps that may still run'

const isConfigured = (stage: string | undefined): boolean => stage === 'config' || stage === 'post-interrupt'

const isInStage = ({ record: { progress, adopted, untouched } }: Found): boolean =>
  isStage(progress.stage) &&
  (progress.state === 'running' || (progress.state === 'due' && adopted !== true && untouched !== true))
