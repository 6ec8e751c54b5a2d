/**
 * The journal of a Skyhook on a node, from its published copy on the Node. What the copy lacks is filled in so that a
 * decision neither starts nor undoes anything because of it.
 */
import type { Companion, PublishedWork } from '../../../schemas/annotations.ts'
import type { SkyhookRecord } from '../../../schemas/journal.ts'
import type { PackageFacts, PackageInputs, PackageRecord, StageAttempt } from '../../../schemas/package-record.ts'
import { ownValue } from '../../../schemas/json.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import type { Stage } from '../../../schemas/package-config.ts'
import { nodeStepOf, type PublishedEntry, publishedOf } from '../../../schemas/published.ts'
import {
  entryStates,
  type EntryState,
  type Interrupt,
  type PackageSpec,
  type Skyhook,
  type SkyhookSpec,
  type StageName,
  stageNames,
} from '../../../schemas/skyhook.ts'
import { completionHash, immutableInputsHash, inputsHash, inputsOf } from '../../../stages/model/package-inputs.ts'
import { newSkyhookRecord } from '../../../stages/model/plan-builder.ts'
import type { Known } from '../../../stages/model/snapshot.ts'
import { compareVersions } from '../../../stages/package/next-stage.ts'
import type { Evidence } from './evidence.ts'
import { incompleteIn } from './incomplete-packages.ts'
import { failedInterrupt, failedPackage, isStage, nextTriesOf } from './published-failure.ts'
import { guessOf, trustIn } from './published-trust.ts'

export type PublishedRecord = {
  /** Undefined: nothing was ever done for this Skyhook here. */
  readonly record: SkyhookRecord | undefined
  /** Ids of steps that are assumed to run. */
  readonly runningSteps: readonly string[]
  /** Whether the copy is from the agent, of this Node, and not edited since. */
  readonly trust: Known<true>
  /** Why the configuration of a package is unknown; undefined if it is known. */
  readonly guess: string | undefined
}

/** What is known of the work apart from the copy. */
export type WorkFacts = {
  /** Work has started: the node is cordoned for it, or its slot shows it. */
  readonly hasStarted: boolean
  /** Nothing keeps steps from running, such as pods that must leave first. */
  readonly mayRun: boolean
  /** No step starts now, because of a label, an annotation, the selector or the host; a running step continues. */
  readonly isSuspended: boolean
  readonly nowMs: number
  readonly bootId: string
  /** An interrupt is under way, by the phase of the slot. */
  readonly isInterrupting: boolean
  readonly evidence: readonly Evidence[]
}

/** `edited`: the same Skyhook after an edit, which its packages may already be configured by. */
export function publishedRecord(
  node: KubernetesNode,
  skyhook: Skyhook,
  facts: WorkFacts,
  edited?: Skyhook,
): PublishedRecord {
  const { name, uid } = skyhook.metadata
  const published = publishedOf(node, name)
  const { state, companion, entries = [] } = published
  const trust = trustIn(node, name, published)
  if (published.origin === 'nobody') return { record: undefined, runningSteps: [], trust, guess: undefined }
  const isApplied = companion?.applied === completionHash(skyhook)
  const uninstalling = [...entries].filter(([, { stage, state: at }]) => stage === 'uninstall' && at !== 'complete')
  const step = nodeStepOf(node, name, published.entries)
  const context: EntryContext = {
    ...facts,
    // a status that says so was written with the step that ran then
    isIdle: facts.isSuspended && published.status !== 'in_progress' && step === undefined,
    nextTries: nextTriesOf(node, name),
    isApplied,
    stepOf: step && `${step.name}|${step.version}`,
    work: companion?.work,
    edited: edited?.spec.packages,
    incomplete: incompleteIn(skyhook.spec, published),
    uninstalling: new Set(uninstalling.map(([key]) => key.split('|')[0] ?? key)),
  }
  const found = [...entries].flatMap(([key, entry]) => entryOf(skyhook, key, entry, context))
  const single = oneVersionAtWork(found, context.stepOf)
  const built = skyhook.spec.serial === true ? oneAtWork(single, context.stepOf) : single
  const interrupt = interruptOf(companion?.reboots ?? {}, built, facts)
  const record: SkyhookRecord = {
    ...newSkyhookRecord(uid),
    rev: companion?.rev ?? 0,
    packages: Object.fromEntries(built.map(({ key, record: entry }) => [key, entry])),
    applied: companion?.applied,
    reboots: Object.fromEntries(Object.entries(companion?.reboots ?? {}).map(([key, { done }]) => [key, done])),
    ...(facts.hasStarted && { lifecycle: { startedAtMs: facts.nowMs, generation: skyhook.metadata.generation ?? 0 } }),
    ...(interrupt && { interrupt }),
    published: {
      rev: companion?.rev ?? 0,
      state: state ?? '{}',
      status: published.status === undefined || published.status === 'unreadable' ? 'unknown' : published.status,
      atMs: facts.nowMs,
    },
  }
  const runningSteps = built.flatMap(({ step }) => (step === undefined ? [] : [step]))
  const guess = guessOf(found, { ...published, isApplied, isSuspended: facts.isSuspended, step })
  return { record, runningSteps, trust, guess }
}

/** Of several versions of a package that are to go, the newest goes first. */
const oneVersionAtWork = (entries: readonly Entry[], shown: string | undefined): readonly Entry[] =>
  [...Map.groupBy(entries, ({ record }) => record.name).values()].flatMap((versions) =>
    oneAtWork(
      versions.toSorted((a, b) => compareVersions(b.record.version, a.record.version)),
      shown,
    ),
  )

/** Of a serial Skyhook, the package that the Node reports is at work: others in a stage wait for their turn. */
function oneAtWork(entries: readonly Entry[], shown: string | undefined): readonly Entry[] {
  const atWork = entries.filter(({ step }) => step !== undefined)
  const own = atWork.find(({ key }) => key === shown) ?? atWork[0]
  return entries.map((entry) => (entry === own || !atWork.includes(entry) ? entry : waiting(entry)))
}

/**
 * It waits in the middle of a stage: another agent started the stage, or this one stopped it for an edit. A stage of
 * this agent continues without a drain before it.
 */
function waiting({ key, record, isOfGoneSpec, isStopped, isOwn }: Entry): Entry {
  const entry = { key, isOfGoneSpec, isStopped, isOwn }
  const { stage } = record.progress
  if (!isStage(stage)) return { ...entry, record }
  const origin = isOwn ? {} : ({ work: undefined, adopted: true } as const)
  return { ...entry, record: { ...record, ...origin, progress: { state: 'due', stage } } }
}

type EntryContext = WorkFacts & {
  readonly isApplied: boolean
  /** Work is suspended, and no step runs. */
  readonly isIdle: boolean
  /** One that has passed, or of which the Node reports nothing, has come. */
  readonly nextTries: ReadonlyMap<string, number>
  /** Key of the package whose step runs by the Node's report. */
  readonly stepOf: string | undefined
  /** Undefined if an older agent wrote the copy. */
  readonly work: Companion['work'] | undefined
  readonly edited: SkyhookSpec['packages'] | undefined
  /** Names of packages of the spec that the Node does not show as complete. */
  readonly incomplete: ReadonlySet<string>
  /** Names of packages of which a version is being uninstalled. */
  readonly uninstalling: ReadonlySet<string>
}
type Entry = {
  readonly key: string
  readonly record: PackageRecord
  readonly step?: string
  /** Its configuration is in no spec, and its keys may ask for interrupts. */
  readonly isOfGoneSpec: boolean
  /** The edit stops its installation, of which the Node names no step: whether one has started is not known. */
  readonly isStopped: boolean
  /** The copy says that this agent started it. */
  readonly isOwn: boolean
}

function entryOf(skyhook: Skyhook, key: string, entry: PublishedEntry, context: EntryContext): readonly Entry[] {
  const [name = '', version = ''] = key.split('|')
  const stage = stageNames.find((one) => one === entry.stage)
  const state = entryStates.find((one) => one === entry.state) ?? 'in_progress'
  if (stage === undefined || version === '') return []
  const found = ownValue(skyhook.spec.packages, name)
  const spec = found?.version === version ? found : undefined
  const work = context.work && (ownValue(context.work, key) ?? {})
  // what a spec that no longer names a policy had before does not count any more
  const { uninstall } = found ?? work ?? {}
  const facts: PackageFacts = {
    name,
    version,
    image: entry.image ?? spec?.image ?? '',
    restarts: entry.restarts ?? 0,
    ...(uninstall && { uninstall }),
  }
  const asked = skyhook.metadata.deletionTimestamp === undefined ? found : undefined
  const edited = ownValue(context.edited, name)
  const isUninstalling = context.uninstalling.has(name) && stage !== 'uninstall'
  const patterns = [work?.configInterrupts, spec?.configInterrupts, edited?.configInterrupts]
  const isOfGoneSpec =
    edited?.version === version &&
    patterns.some((one) => one !== undefined) &&
    work?.inputs !== undefined &&
    !inputsWith(work.inputs, [spec, edited])
  const position = { stage, state, spec, asked, work, edited, isUninstalling }
  const isOwn = work !== undefined && work.isAdopted !== true
  const isInstall = state === 'in_progress' && (stage === 'apply' || stage === 'upgrade')
  const isGoing = context.edited !== undefined && edited?.version !== version
  const isStopped = isInstall && isGoing && isOwn && context.stepOf !== key
  return [{ key, isOfGoneSpec, isStopped, isOwn, ...progressOf(facts, position, context) }]
}

type Position = {
  readonly stage: StageName
  readonly state: EntryState
  /** Of this very version. */
  readonly spec: PackageSpec | undefined
  /** Of any version; undefined if the package is no longer needed. */
  readonly asked: PackageSpec | undefined
  readonly work: PublishedWork | undefined
  /** After the edit. */
  readonly edited: PackageSpec | undefined
  /** Another version of it is being uninstalled. */
  readonly isUninstalling: boolean
}

function progressOf(facts: PackageFacts, position: Position, context: EntryContext): Pick<Entry, 'record' | 'step'> {
  const { stage, state, spec, isUninstalling } = position
  const config = configOf(position, context)
  const isAdopted = position.work?.isAdopted === true
  const own = { ...facts, work: workOf(facts, spec), ...config }
  const started = isAdopted ? { ...facts, adopted: true as const, ...config } : own
  if (position.work?.isRetained) return { record: { ...own, progress: { state: 'retained', stage, shownAs: state } } }
  switch (state) {
    case 'complete':
      return { record: { ...started, progress: { state: 'complete', stage } } }
    case 'skipped':
      return { record: { ...started, progress: { state: 'skipped', stage: 'uninstall' } } }
    case 'unknown':
      return { record: { ...started, progress: { state: 'retained', stage, shownAs: 'unknown' } } }
    case 'erroring':
      if (!isStage(stage)) return { record: failedInterrupt(started, context) }
      return { record: failedPackage(own, { stage, asked: position.asked }, context) }
    case 'in_progress':
      break
  }
  // with the write that showed a dependency incomplete, the first step of this agent would have taken the mark off
  const isHeldUp = isAdopted && Object.keys(spec?.dependsOn ?? {}).some((name) => context.incomplete.has(name))
  if (isHeldUp && isStage(stage)) return { record: { ...started, progress: { state: 'due', stage } } }
  const isInstall = stage === 'apply' || stage === 'upgrade'
  if (isInstall && !(context.hasStarted && context.mayRun)) {
    // a version that the spec does not have, and that is not on the host, is gone from the Node, too
    const origin = isAdopted || spec === undefined ? { adopted: true as const } : { untouched: true as const }
    return { record: { ...facts, ...origin, progress: { state: 'due', stage } } }
  }
  // work on a version that the spec does not have is its uninstall, waits for that of another one, or is suspended:
  // a step that runs then is not stopped
  const isShown = context.stepOf === `${facts.name}|${facts.version}`
  const isAtWork = context.hasStarted && (isShown || stage === 'uninstall' || (spec !== undefined && !isUninstalling))
  if (!isStage(stage) || !isAtWork) return { record: { ...started, progress: { state: 'due', stage } } }
  const step = `${facts.name}/${stage}`
  const attempt = attemptOf(spec, stage, step, context)
  const progress = { state: 'running', stage } as const
  // between two steps: the next one waits for the end of the suspension
  if (context.isIdle) return { record: { ...own, progress: { ...progress, attempt: { ...attempt, steps: [] } } } }
  return { record: { ...own, progress: { ...progress, attempt } }, step }
}

/** Assumed to be made from this spec: the copy does not show it. */
const workOf = ({ name, version, image }: PackageFacts, spec: PackageSpec | undefined) => ({
  digest: '',
  generation: 0,
  inputs: immutableInputsHash(spec ?? { version, image }),
  packageName: name,
  packageVersion: version,
})

/**
 * A copy shows by one hash whether the whole spec was completed last. If it was not, and this version is complete, its
 * configuration may be what has changed.
 */
function configOf(position: Position, context: EntryContext): Pick<PackageFacts, 'config' | 'pendingInterrupt'> {
  const { stage, state, spec, work } = position
  if (work) return publishedConfig(position, work, context)
  const isDone = state === 'complete' && (stage === 'post-interrupt' || stage === 'config')
  const pending = pendingOf(position, context)
  const pendingInterrupt = pending && { pendingInterrupt: { interrupt: pending } }
  if (stage === 'apply' || stage === 'upgrade' || stage === 'uninstall' || spec === undefined)
    return { ...pendingInterrupt }
  const current = inputsOf(spec)
  if (!isDone || pending) return { ...pendingInterrupt, config: { started: current, changedKeys: [] } }
  const started = context.isApplied ? current : { config: {}, env: [] }
  return { config: { started, finished: started, changedKeys: [] } }
}

/** Finds the texts for the hashes of the copy in the specs. */
function publishedConfig(
  { spec, edited }: Position,
  { inputs, wasComplete, changed = [], configInterrupts, interrupt }: PublishedWork,
  { bootId }: EntryContext,
): Pick<PackageFacts, 'config' | 'pendingInterrupt'> {
  const requirement = interrupt?.when === 'required' && { requiredInBoot: bootId }
  const pending = interrupt && { pendingInterrupt: { interrupt, ...requirement } }
  if (inputs === undefined) return { ...pending }
  // of a spec that is gone, and differs from all others
  const unknown = { config: {}, env: [{ name: unknownInputs, value: inputs }] }
  const started = inputsWith(inputs, [spec, edited]) ?? unknown
  return {
    config: {
      started,
      ...(wasComplete && { finished: started }),
      changedKeys: changed,
      ...(configInterrupts && { interrupts: configInterrupts }),
    },
    ...pending,
  }
}

/** Edits often change or add one of the two: the configuration of one spec with the environment of another, or none. */
function inputsWith(hash: string, specs: readonly (PackageSpec | undefined)[]): PackageInputs | undefined {
  const found = [...specs.flatMap((spec) => (spec ? [inputsOf(spec)] : [])), { config: {}, env: [] }]
  const mixed = found.flatMap(({ config }) => found.map(({ env }) => ({ config, env })))
  return mixed.find((one) => inputsHash(one) === hash)
}

/** No variable has such a name. */
const unknownInputs = '='

/** Not in the copy: it is due, or config has passed in work that has not ended. */
function pendingOf({ stage, state, spec }: Position, { isApplied, hasStarted }: EntryContext): Interrupt | undefined {
  if (stage === 'interrupt' && state !== 'complete')
    return spec?.interrupt ?? Object.values(spec?.configInterrupts ?? {})[0]
  const isBetween = stage === 'config' && state === 'complete' && hasStarted && !isApplied
  return isBetween && spec?.interrupt?.when !== 'required' ? spec?.interrupt : undefined
}

function attemptOf(
  spec: PackageSpec | undefined,
  stage: Stage,
  id: string,
  { nowMs, bootId }: EntryContext,
): StageAttempt {
  return {
    number: 1,
    startedAtMs: nowMs,
    inputs: inputsHash(spec ? inputsOf(spec) : { config: {}, env: [] }),
    steps: [{ id, unit: id, mode: stage, index: 0, path: '', bootId, startedAtMs: nowMs }],
  }
}

/** A reboot that was announced for this boot, or an interrupt that the slot reports. */
function interruptOf(
  reboots: NonNullable<Companion['reboots']>,
  entries: readonly Entry[],
  { nowMs, bootId, isInterrupting }: WorkFacts,
): SkyhookRecord['interrupt'] {
  const owing = entries.filter(({ record }) => record.progress.stage === 'interrupt' && record.progress.state === 'due')
  const owners = owing.map(({ key }) => key)
  const asked = Object.entries(reboots).find(([, { askedInBoot }]) => askedInBoot === bootId)
  if (asked)
    return { id: asked[0], interrupt: { type: 'reboot' }, owners, bootId, rebootKey: asked[0], startedAtMs: nowMs }
  const pending = owing[0]?.record.pendingInterrupt
  if (!isInterrupting || pending === undefined) return undefined
  return { id: 'published', interrupt: pending.interrupt, owners, bootId, startedAtMs: nowMs }
}
