import type { PackageRecord, PackageWork, StageAttempt } from '../../schemas/journal.ts'
import type { PackageSpec, StageName } from '../../schemas/skyhook.ts'
import { fixedInputs, inputsHash, inputsOf, keysOfRoll } from '../model/package-inputs.ts'
import { renewDebt, renewDebtOfInstall, interruptState } from '../interrupt/refresh-pending.ts'
import { debtOf, debtOfRoll } from '../interrupt/pending.ts'
import type { Draft } from '../model/plan-builder.ts'
import { entriesOf, preparation, removeEntry, setEntry, wakeAt } from '../model/plan-builder.ts'
import { halt, isStopping, openStepOf } from './cancel.ts'
import type { Outcome, PackageState, Permission, Ready } from '../model/package-state.ts'
import type { References } from '../model/plan.ts'
import { settleByBoot } from '../interrupt/required.ts'
import { progressStage } from './advance-stage.ts'
import { dueOf, isComplete, isMidChange, packageKey } from './next-stage.ts'
import { isWanted, noteWish } from './run-requests.ts'
import type { Preparation } from '../model/snapshot.ts'

/** Moves one package as far as it goes now: results are recorded, stages end and begin, steps are named for starting. */
export function advancePackage(draft: Draft, name: string, permission: Permission): PackageState {
  const isDeleted = draft.view.metadata.deletionTimestamp !== undefined
  const spec = specOf(draft, name)
  if (isStopping(draft.record, name)) return { state: 'running' }
  for (;;) {
    const due = dueOf(name, spec, entriesOf(draft.record, name), isDeleted)
    if (due.due === 'nothing') {
      const unwanted = underWayOf(draft, name)
      if (unwanted && !(permission.mayStart && halt(draft, unwanted))) return { state: 'running' }
      settle(draft, name, spec)
      const wanted = spec && draft.record.packages[packageKey(name, spec.version)]
      if (!wanted || !isWanted(draft, spec, wanted)) return { state: 'complete' }
      const state = begin(draft, name, packageKey(name, spec.version), 'config', permission)
      if (state !== 'again') return state
      noteWish(draft, packageKey(name, spec.version))
      continue
    }
    if (due.due === 'forget') {
      removeEntry(draft, due.key)
      continue
    }
    const entry = draft.record.packages[due.key]
    const stage = due.due === 'begin' ? due.stage : entry?.stage
    if (stage === undefined) return { state: 'complete' } // cannot be: `continue` names an existing entry
    if (entry && renewDebtOfInstall(draft, entry, spec)) continue
    if (stage === 'interrupt') {
      if (renewDebt(draft, due.key, spec) || settleByBoot(draft, due.key)) continue
      return interruptState(draft, due.key)
    }
    const state =
      due.due === 'begin' || entry?.attempt === undefined
        ? begin(draft, name, due.key, stage, permission)
        : carryOn(draft, entry, permission)
    if (state !== 'again') return state
  }
}

/** What the Skyhook says about a package; nothing any more once it is being deleted. */
const specOf = (draft: Draft, name: string): PackageSpec | undefined =>
  draft.view.metadata.deletionTimestamp === undefined ? draft.view.spec.packages?.[name] : undefined

/** The entry of this name that has a step on the host, or may have one any moment. */
const underWayOf = (draft: Draft, name: string): PackageRecord | undefined =>
  entriesOf(draft.record, name).find(({ attempt }) => openStepOf(attempt))

/** A package just became, or is, complete: what was started is now what is finished. */
function settle(draft: Draft, name: string, spec: PackageSpec | undefined): void {
  if (!spec) {
    for (const entry of entriesOf(draft.record, name)) if (isMidChange(entry)) setEntry(draft, { ...entry, kept: true })
    return
  }
  const entry = draft.record.packages[packageKey(name, spec.version)]
  if (!entry) return
  const { changedKeys: _, attempt: __, ...rest } = entry
  const finished = entry.started ?? entry.finished
  if (entry.attempt !== undefined || entry.changedKeys !== undefined || finished !== entry.finished)
    setEntry(draft, { ...rest, ...(finished && { finished }) })
}

function begin(draft: Draft, name: string, key: string, stage: StageName, permission: Permission): Outcome {
  const entry = draft.record.packages[key]
  const spec = specOf(draft, name)
  const fresh = stage === 'apply' || stage === 'upgrade' || entry?.work === undefined || superseded(entry, spec)
  const image =
    fresh && spec
      ? { image: spec.image, version: spec.version, ...(spec.containerSHA && { digest: spec.containerSHA }) }
      : { image: entry?.image ?? '', version: entry?.version ?? '', ...(entry?.work && { digest: entry.work.digest }) }
  const opens = entry === undefined || !isMidChange(entry) // what is half done is not held back any more
  const references = opens && stage !== 'uninstall' ? referencesOf(spec) : undefined
  const prepared = preparation(draft, { ...image, ...(references && { references }) }) // also of what waits for others: a wrong image is to be known before anything begins
  const wait = waitFor(name, prepared)
  if (wait?.state === 'blocked') return wait
  const unwanted = underWayOf(draft, name) // of another version or stage; stopped only now that its successor is prepared
  if (unwanted && !(wait === undefined && permission.mayStart && halt(draft, unwanted))) return { state: 'running' }
  if (stage !== 'uninstall' && spec) {
    if (!dependenciesComplete(draft, spec)) return { state: 'dependency' }
  }
  if (draft.view.spec.serial === true && anotherIsUnderWay(draft, name)) return { state: 'dependency' }
  if (wait) return wait
  const owes = debtOf(entry, spec, stage) !== undefined
  if (opens && owes && !permission.drained) return permission.mayStart ? { state: 'drain' } : { state: 'ready', stage, owes }
  if (!permission.mayStart) return { state: 'ready', stage, owes }
  if (stage === 'apply') keepOthers(draft, name, key)
  setEntry(draft, beginStage(draft, { name, entry, spec, stage, prepared: prepared as Ready, fresh }))
  return 'again'
}

const referencesOf = ({ env = [], resources }: Pick<PackageSpec, 'env' | 'resources'> = {}): References | undefined =>
  env.some(({ valueFrom }) => valueFrom) ? { env, ...(resources && { resources }) } : undefined

/** Applied over another version that its policy does not uninstall: that one stays where it is, and is not what the host runs. */
function keepOthers(draft: Draft, name: string, key: string): void {
  for (const other of entriesOf(draft.record, name))
    if (packageKey(name, other.version) !== key && other.work !== undefined) setEntry(draft, { ...other, kept: true })
}

function waitFor(name: string, prepared: Preparation): PackageState | undefined {
  if (prepared.state === 'pending') return { state: 'preparing' }
  if (prepared.state === 'ready') return undefined
  const { reason, message } = prepared
  return { state: 'blocked', atPreparation: true, reason, message: reason === 'HostUnusable' ? message : `package ${name}: ${message}` }
}

type Beginning = {
  readonly name: string
  readonly entry: PackageRecord | undefined
  readonly spec: PackageSpec | undefined
  readonly stage: StageName
  readonly prepared: Ready
  readonly fresh: boolean
}

function beginStage(draft: Draft, { name, entry, spec, stage, prepared, fresh }: Beginning): PackageRecord {
  const generation = draft.view.metadata.generation ?? 0
  const startsRoll = stage === 'config' && entry?.finished !== undefined && entry.state === 'complete'
  const base: PackageRecord = entry ?? {
    name,
    version: spec?.version ?? '',
    image: spec?.image ?? '',
    stage,
    state: 'in_progress',
    restarts: 0,
  }
  const { attempt: _, retryAtMs: __, failure: ___, kept: ____, owes, ...others } = base
  const { finished: _____, changedKeys: ______, interruptRequired: _______, ...anew } = others
  const carried = stage === 'apply' || stage === 'upgrade' ? anew : others
  const newWork: PackageWork = {
    digest: prepared.digest,
    generation: fresh || startsRoll || entry?.work === undefined ? generation : entry.work.generation,
    inputs: spec ? fixedInputs(spec) : (entry?.work?.inputs ?? ''),
    packageName: prepared.config.packageName,
    packageVersion: prepared.config.packageVersion,
  }
  const work = stage === 'uninstall' && entry?.work ? entry.work : newWork
  const debt = debtOf(entry, spec, stage) ?? (stage === 'post-interrupt' ? undefined : owes)
  return {
    ...carried,
    ...(spec && stage !== 'uninstall' && { image: spec.image, ...(spec.containerSHA && { containerSHA: spec.containerSHA }) }),
    ...(spec?.uninstall && { uninstall: spec.uninstall }),
    stage,
    state: 'in_progress',
    restarts: 0,
    work,
    ...(debt && { owes: debt }),
    ...(stage === 'config' && spec && startOfConfig(base, spec)),
    attempt: newAttempt(draft, 1, inputsFor(base, spec)),
  }
}

/** What an entry remembers of a `config` that starts with this spec, first try or not. */
function startOfConfig(entry: PackageRecord, spec: PackageSpec): Partial<PackageRecord> {
  const owes = entry.finished ? debtOfRoll(entry, spec) : entry.owes
  return {
    started: inputsOf(spec),
    ...((entry.finished ?? entry.started) && { changedKeys: keysOfRoll(entry, spec) }),
    ...(spec.configInterrupts && { configInterrupts: spec.configInterrupts }),
    ...(owes && { owes }),
  }
}

const inputsFor = (entry: PackageRecord, spec: PackageSpec | undefined): string =>
  inputsHash(spec ? inputsOf(spec) : (entry.finished ?? entry.started ?? { config: {}, env: [] }))

const newAttempt = (draft: Draft, number: number, inputs: string): StageAttempt => ({
  number,
  startedAtMs: draft.world.nowMs,
  steps: [],
  inputs,
})

/** The spec changed what a begun package is made from. */
const superseded = (entry: PackageRecord, spec: PackageSpec | undefined): boolean =>
  spec !== undefined &&
  entry.stage !== 'uninstall' &&
  entry.work !== undefined &&
  entry.version === spec.version &&
  entry.work.inputs !== fixedInputs(spec)

function carryOn(draft: Draft, entry: PackageRecord, permission: Permission): Outcome {
  const spec = specOf(draft, entry.name)
  const { attempt } = entry
  if (attempt === undefined || entry.work === undefined) return { state: 'dependency' }
  if (superseded(entry, spec)) return supersede(draft, entry, spec, permission)
  if (entry.state === 'erroring') {
    const inputs = inputsFor(entry, spec)
    const due = (entry.retryAtMs ?? 0) <= draft.world.nowMs || inputs !== attempt.inputs
    if (!due) wakeAt(draft, entry.retryAtMs ?? 0)
    const isLocked = draft.view.spec.serial === true && anotherIsUnderWay(draft, entry.name)
    if (!due || !permission.mayStart) return failed(entry)
    if (isLocked) return { state: 'dependency' }
    const { retryAtMs: _, failure: __, ...kept } = entry
    const started = entry.stage === 'config' && spec ? startOfConfig(entry, spec) : {}
    setEntry(draft, { ...kept, ...started, state: 'in_progress', attempt: newAttempt(draft, attempt.number + 1, inputs) })
    return 'again'
  }
  const prepared = preparation(draft, { image: entry.image, version: entry.version, digest: entry.work.digest })
  const wait = waitFor(entry.name, prepared)
  if (wait) return wait
  return progressStage(draft, entry, spec, prepared as Ready, permission)
}

const failed = (entry: PackageRecord): PackageState => ({
  state: 'blocked',
  atPreparation: false,
  reason: entry.failure?.reason === 'CheckFailed' ? 'CheckFailed' : 'StepFailed',
  message: `package ${entry.name} ${entry.version}: ${entry.failure?.message ?? 'failed'}`,
})

/** The new generation is prepared first; only then the running step is stopped and the stage starts over from it. */
function supersede(draft: Draft, entry: PackageRecord, spec: PackageSpec | undefined, permission: Permission): Outcome {
  const attempt = entry.attempt
  if (!spec || !attempt) return { state: 'dependency' }
  const prepared = preparation(draft, { image: spec.image, version: spec.version, ...(spec.containerSHA && { digest: spec.containerSHA }) })
  const wait = waitFor(entry.name, prepared)
  if (wait) return wait
  const running = openStepOf(attempt)
  if (running && !(permission.mayStart && halt(draft, entry))) return { state: 'running' }
  if (!permission.mayStart) return { state: 'ready', stage: entry.stage, owes: entry.owes !== undefined }
  draft.events.push({ type: 'superseded', skyhook: draft.view.metadata.name, package: entry.name, stage: entry.stage })
  const { attempt: _, ...rest } = entry
  setEntry(draft, rest)
  return 'again'
}

function dependenciesComplete(draft: Draft, spec: PackageSpec): boolean {
  return Object.keys(spec.dependsOn ?? {}).every((name) => {
    const needed = draft.view.spec.packages?.[name]
    return needed !== undefined && isComplete(name, needed, entriesOf(draft.record, name))
  })
}

const anotherIsUnderWay = (draft: Draft, name: string): boolean =>
  Object.values(draft.record.packages).some(
    (other) => other.name !== name && other.state === 'in_progress' && other.attempt !== undefined,
  ) || (draft.record.stopping ?? []).some((step) => step.package !== name)
