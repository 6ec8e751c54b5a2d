/** The companion's data of each package's work: enough to predict the effect of an edit. */
import { type PublishedStep, type PublishedWork, stepKey } from '../../schemas/annotations.ts'
import type { SkyhookRecord } from '../../schemas/journal.ts'
import { openStepOf, type PackageRecord, type StepAttempt } from '../../schemas/package-record.ts'
import { parseObject } from '../../schemas/json.ts'
import { perObject } from '../../schemas/per-object.ts'
import { clip } from '../../schemas/plain-text.ts'
import { inputsHash } from '../model/package-inputs.ts'
import { keyOf, type Snapshot } from '../model/snapshot.ts'
import { isUnfinished } from '../package/next-stage.ts'

/** By the keys of nodeState; without packages that have none of these data. */
export const publishedWork = ({ packages }: SkyhookRecord): Readonly<Record<string, PublishedWork>> => workOf(packages)

const workOf = perObject(
  (packages: SkyhookRecord['packages']): Readonly<Record<string, PublishedWork>> =>
    Object.fromEntries(
      Object.entries(packages)
        .map(([key, entry]) => [key, workOfPackage(entry)] as const)
        .filter(([, work]) => Object.keys(work).length > 0)
        .toSorted(([a], [b]) => (a < b ? -1 : 1)),
    ),
)

const workOfPackage = (entry: PackageRecord): PublishedWork => {
  const { config, pendingInterrupt, uninstall, progress, adopted } = entry
  return {
    ...(config && { inputs: inputsHash(config.started) }),
    ...(config?.finished && { wasComplete: true }),
    ...(config && config.changedKeys.length > 0 && { changed: config.changedKeys }),
    ...(config?.interrupts && { configInterrupts: config.interrupts }),
    ...(pendingInterrupt && { interrupt: pendingInterrupt.interrupt }),
    ...(uninstall && { uninstall }),
    ...(progress.state === 'retained' && { isRetained: true }),
    ...(adopted && isUnfinished(entry) && { isAdopted: true }),
  }
}

const workField = /,"work":\{.*\}\}$/

/** Whether two texts of a companion differ only in the work, which alone does not justify a write. */
export const isSameCompanion = (current: string | undefined, next: string | null | undefined): boolean =>
  current === next || (current !== undefined && typeof next === 'string' && bare(current) === bare(next))

const bare = (companion: string): string => companion.replace(workField, '}')

/** The running step, in an annotation of the Node, for people who wonder what takes so long. Pure. */

/**
 * A step is published with any other write, such as its stage. A step that starts later gets its own write only after
 * this time. The same is true for the end of a step that no other step follows.
 */
const longStepMs = 10_000

/** Annotations of a Node share 256 KiB. */
const maxPathLength = 128

/**
 * Text of the annotation; null while no step runs. It may have the previous step until the running one has lasted ten
 * seconds, or has ended as long ago, or something else is written.
 */
export function publishedStepText(
  snapshot: Pick<Snapshot, 'node' | 'nowMs' | 'wallOffsetMs'>,
  skyhook: string,
  record: SkyhookRecord,
  isWriting: boolean,
): { readonly text: string | null; readonly recheckAtMs: number } {
  const currentText = snapshot.node.metadata.annotations?.[stepKey(skyhook)]
  const running = longestRunning(record)
  const shown = { text: currentText ?? null, recheckAtMs: Infinity }
  if (running === undefined) {
    const endMs = lastEndMs(record)
    if (isWriting || endMs + longStepMs <= snapshot.nowMs) return { ...shown, text: null }
    return currentText === undefined ? shown : { ...shown, recheckAtMs: endMs + longStepMs }
  }
  const published = publishedStep(running, snapshot.wallOffsetMs)
  if (isSameStep(parseObject(currentText) ?? {}, published)) return shown
  const longAtMs = running.step.startedAtMs + longStepMs
  return isWriting || longAtMs <= snapshot.nowMs
    ? { ...shown, text: JSON.stringify(published) }
    : { ...shown, recheckAtMs: longAtMs }
}

type RunningStep = { readonly step: StepAttempt } & Pick<PublishedStep, 'package' | 'attempt'> & {
    readonly failingSinceMs: number | undefined
  }

function longestRunning({ packages }: SkyhookRecord): RunningStep | undefined {
  const running = Object.values(packages).flatMap((entry): RunningStep[] => {
    const { progress, failingSinceMs } = entry
    const step = openStepOf(progress)
    if (step === undefined || progress.state !== 'running') return []
    return [{ step, package: keyOf(entry), attempt: progress.attempt.number, failingSinceMs }]
  })
  return running.toSorted((a, b) => a.step.startedAtMs - b.step.startedAtMs)[0]
}

/** Of a stage between two steps, such as one that is suspended; Infinity where there is none: its end was a write. */
function lastEndMs({ packages }: SkyhookRecord): number {
  const ends = Object.values(packages).flatMap(({ progress }) =>
    progress.state === 'running' ? (progress.attempt.steps.at(-1)?.result?.endedAtMs ?? []) : [],
  )
  return ends.length === 0 ? Infinity : Math.max(...ends)
}

function publishedStep(
  { step: { mode, path, startedAtMs }, failingSinceMs, attempt, package: key }: RunningStep,
  wallOffsetMs: number,
): PublishedStep {
  const timeOf = (ms: number): string => new Date(ms + wallOffsetMs).toISOString()
  return {
    package: key,
    mode,
    path: clip(path, maxPathLength),
    since: timeOf(startedAtMs),
    attempt,
    ...(failingSinceMs !== undefined && { failingSince: timeOf(failingSinceMs) }),
  }
}

/** Its `since` may be by another clock. */
const isSameStep = (shown: object, step: PublishedStep): boolean =>
  (['package', 'mode', 'path', 'attempt'] as const).every((field) => (shown as PublishedStep)[field] === step[field])
