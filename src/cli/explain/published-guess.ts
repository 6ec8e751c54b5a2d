/** What the published copy of a journal leaves open, so that a plan of the node may be wrong. Pure. */
import type { PackageRecord } from '../../schemas/journal.ts'
import { ownValue } from '../../schemas/json.ts'
import type { NodeStep, Published } from '../../schemas/published.ts'
import { isStage } from './published-failure.ts'

type Found = {
  readonly record: PackageRecord
  /** Its configuration is in no spec, and its keys may ask for interrupts. */
  readonly isOfGoneSpec: boolean
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
  // a step of an earlier spec is not stopped, and its stage looks the same on the Node when it has ended
  const isOneOfSeveral = isSuspended && step !== undefined && found.filter(isInStage).length > 1
  return isOneOfSeveral ? oneOfSeveral : undefined
}

const olderAgent = 'an older agent does not report the configuration of complete packages'
const goneSpec = 'a package is configured by an earlier spec, whose keys may ask for an interrupt'
const oneOfSeveral = 'no step starts there now, and the Node names only one of the steps that may still run'

const isConfigured = (stage: string | undefined): boolean => stage === 'config' || stage === 'post-interrupt'

const isInStage = ({ record: { progress, adopted, untouched } }: Found): boolean =>
  isStage(progress.stage) &&
  (progress.state === 'running' || (progress.state === 'due' && adopted !== true && untouched !== true))
