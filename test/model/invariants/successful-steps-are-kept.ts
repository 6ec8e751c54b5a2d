import { attemptOf, type PackageRecord } from '../../../src/schemas/package-record.ts'
import { describeStep } from './host-evidence.ts'
import { type Invariant, violate } from './invariant.ts'

type StepPosition = { readonly mode: string; readonly index: number }

/** A step that ended well does not run again in the same attempt of its stage. */
export const successfulStepsAreKept: Invariant = ({ viewOf }) => {
  const successfulSteps = new Set<string>()
  const identify = (
    skyhook: string,
    uid: string,
    { name, version, work, progress }: PackageRecord,
    { mode, index }: StepPosition,
  ): string =>
    JSON.stringify([
      [skyhook, uid, name, version, progress.stage, work?.generation],
      [attemptOf(progress)?.startedAtMs, attemptOf(progress)?.number, mode, index],
    ])
  return {
    decided(_snapshot, { journal }) {
      for (const [skyhook, { packages, uid }] of Object.entries(journal.skyhooks))
        for (const record of Object.values(packages))
          for (const step of attemptOf(record.progress)?.steps ?? [])
            if (step.result?.result === 'ok') successfulSteps.add(identify(skyhook, uid, record, step))
    },
    stepStarts(action) {
      const { name, uid } = viewOf(action).metadata
      if (successfulSteps.has(identify(name, uid, action.record, action.attempt)))
        violate(`${describeStep(action)} ended ok in this attempt of its stage and runs again`)
    },
  }
}
