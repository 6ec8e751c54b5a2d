import type { InterruptRun, PackageRecord, SkyhookRecord, StepAttempt } from '../../schemas/journal.ts'
import type { Draft } from '../model/plan-builder.ts'
import type { Action } from '../model/plan.ts'
import { packageKey } from './next-stage.ts'
import type { World } from '../model/snapshot.ts'

/**
 * Work that is not wanted any more (another version, a reset, an edit, a Skyhook that is gone) may still be under way on the
 * host. Its attempt is forgotten at once, its step is not: it is stopped, and nothing of its package starts before it ended.
 */
export function haltAll(record: SkyhookRecord): SkyhookRecord {
  const halted = Object.values(record.packages).reduce(haltPackage, record)
  return halted.interrupt ? { ...halted, interrupt: { ...halted.interrupt, abandoned: true } } : halted
}

/** The record without the attempt of one entry; a step of it that is not over joins those to be stopped. */
export function haltPackage(record: SkyhookRecord, { attempt, ...entry }: PackageRecord): SkyhookRecord {
  const step = openStepOf(attempt)
  const packages = { ...record.packages, [packageKey(entry.name, entry.version)]: entry }
  return { ...record, packages, ...(step && { stopping: [...(record.stopping ?? []), { ...step, package: entry.name }] }) }
}

/** The same inside a decision; true when nothing of the package is left on the host. */
export function halt(draft: Draft, entry: PackageRecord): boolean {
  draft.record = haltPackage(draft.record, entry)
  stopSteps(draft)
  return !isStopping(draft.record, entry.name)
}

/** Something of this package has still to be stopped. */
export const isStopping = ({ stopping }: SkyhookRecord, name: string): boolean => stopping?.some((step) => step.package === name) === true

export const openStepOf = (attempt: PackageRecord['attempt']): StepAttempt | undefined => {
  const last = attempt?.steps.at(-1)
  return last && !last.result ? last : undefined
}

/** Stops what is to be stopped and forgets what has ended. True once nothing of it is left. */
export function stopSteps(draft: { readonly world: World; record: SkyhookRecord; readonly actions: Action[] }): boolean {
  const { stopping, ...rest } = draft.record
  if (stopping === undefined) return true
  const left = stopping.filter((step) => mayRun(draft.world, step))
  for (const step of stopping) {
    const key = `stop/${step.id}`
    if (draft.actions.some((action) => action.key === key)) continue
    draft.actions.push(left.includes(step) ? { do: 'stopStep', key, step } : { do: 'forgetStep', key: `forget/${step.id}`, step })
  }
  if (left.length === 0) draft.record = rest
  else if (left.length < stopping.length) draft.record = { ...draft.record, stopping: left }
  return left.length === 0
}

/** Its end is not known, and its boot has not ended either. One that the host does not show yet may be about to start. */
export function mayRun({ attempts, bootId }: World, step: StepAttempt): boolean {
  const seen = attempts.get(step.id)?.state ?? 'absent'
  return seen === 'running' || (seen === 'absent' && step.bootId === bootId)
}

/** True while an interrupt may be at work on the host. */
export function isInterrupting({ interrupts, bootId }: World, run: InterruptRun | undefined): boolean {
  if (run === undefined || run.bootId !== bootId) return false
  const seen = interrupts.get(run.id)?.state
  return seen === undefined || seen === 'running' || seen === 'unknown'
}
