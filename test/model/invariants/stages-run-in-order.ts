import { describeStep, isCheck } from './host-evidence.ts'
import { type Invariant, violate } from './invariant.ts'

const allowedPredecessors: Readonly<Record<string, readonly string[]>> = {
  config: ['apply', 'upgrade', 'config', 'interrupt', 'post-interrupt', 'post-interrupt…'], // also to correct it
  'post-interrupt': ['interrupt'],
}

/** The stages of a package run in order on the host, and a check only after its stage. */
export const stagesRunInOrder: Invariant = ({ host, keyOf }) => ({
  stepStarts(action) {
    const { stage, record } = action
    const hostState = host.get(keyOf(action))
    const done = hostState?.stage
    const isUnderWay = done === `${stage}…`
    if (isCheck(action)) {
      if (!isUnderWay && done !== stage)
        violate(`${describeStep(action)} runs before ${stage} did (host: ${done ?? 'nothing'})`)
      return
    }
    const allowedStages = allowedPredecessors[stage]
    if (!allowedStages || isUnderWay) return
    // changed before its end was known
    const isRestarted = done === stage && hostState?.generation !== record.work?.generation
    if (!isRestarted && !allowedStages.includes(done ?? 'nothing'))
      violate(`${describeStep(action)} runs after ${done ?? 'nothing'}`)
  },
})
