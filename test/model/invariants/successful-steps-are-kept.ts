import type { PackageRecord } from '../../../src/schemas/journal.ts'
import { describeStep } from './host-evidence.ts'
import { type Invariant, violate } from './invariant.ts'

type StepPosition = { readonly mode: string; readonly index: number }

/** A step that ended well does not run again in the same attempt of its stage. */
export const successfulStepsAreKept: Invariant = ({ viewOf }) => {
  const successfulSteps = new Set<string>()
  const identify = (
    skyhook: string,
    uid: string,
    { name, version, work, attempt }: PackageRecord,
    stage: string,
    { mode, index }: StepPosition,
  ): string =>
    JSON.stringify([
      [skyhook, uid, name, version, stage, work?.generation],
      [attempt?.startedAtMs, attempt?.number, mode, index],
    ])
  return {
    decided(_snapshot, { journal }) {
      for (const [skyhook, { packages, uid }] of Object.entries(journal.skyhooks))
        for (const record of Object.values(packages))
          for (const step of record.attempt?.steps ?? [])
            if (step.result?.result === 'ok') successfulSteps.add(identify(skyhook, uid, record, record.stage, step))
    },
    stepStarts(action) {
      const { name, uid } = viewOf(action).metadata
      if (successfulSteps.has(identify(name, uid, action.record, action.stage, action.attempt)))
        violate(`${describeStep(action)} ended ok in this attempt of its stage and runs again`)
    },
  }
}
