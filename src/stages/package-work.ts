import type { PackageRecord, PackageWork, StageAttempt } from '../schemas/journal.ts'
import type { Mode, PackageConfig, Stage } from '../schemas/package-config.ts'
import { isCheck } from '../schemas/package-config.ts'
import type { PackageSpec, StageName } from '../schemas/skyhook.ts'
import { advanceAttempt, plannedSteps } from './attempt.ts'
import type { AdvanceResult } from './attempt.ts'
import { retryWaitMs } from './backoff.ts'
import { canonicalJson } from './canonical.ts'
import { fixedInputs, inputsHash, inputsOf, keysOfRoll } from './config-changes.ts'
import { answered, debtIfRequired, debtOf, debtOfInstall, debtOfNow, debtOfRoll } from './debts.ts'
import type { Draft } from './draft.ts'
import { clearFlags, entriesOf, preparation, removeEntry, setEntry, wakeAt } from './draft.ts'
import { isConditional, mergeInterrupts } from './interrupts.ts'
import { halt, isStopping, openStepOf } from './halt.ts'
import type { References } from './plan.ts'
import type { Reason } from './reasons.ts'
import { answerOf, settleByBoot } from './requirement.ts'
import { isWanted, noteWish } from './wishes.ts'
import { dueOf, isComplete, isMidChange, packageKey } from './transitions.ts'
import type { Preparation } from './world.ts'

/** Where one package stands after everything that can be decided now was decided. */
export type PackageState =
  | { readonly state: 'complete' }
  | { readonly state: 'running' }
  /** Prepared and due, held back only by the slot, the drain or a pause. */
  | { readonly state: 'ready'; readonly stage: StageName; readonly owes: boolean }
  | { readonly state: 'preparing' }
  /** Waits for other packages of the Skyhook. */
  | { readonly state: 'dependency' }
  /** Prepared and due, but it owes an interrupt: the node has to be drained before its first stage. */
  | { readonly state: 'drain' }
  | { readonly state: 'interrupt'; readonly key: string }
  | ({ readonly state: 'blocked'; readonly atPreparation: boolean } & Reason)

export type Permission = { readonly mayStart: boolean; readonly drained: boolean }

type Ready = Extract<Preparation, { state: 'ready' }>

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

/** Until it is complete for the first time a package owes what the spec says now. True when the entry changed. */
function renewDebtOfInstall(draft: Draft, entry: PackageRecord, spec: PackageSpec | undefined): boolean {
  if (!spec || entry.version !== spec.version || entry.finished || !entry.work || !stagesOfInstall.has(entry.stage)) return false
  const wanted = debtOfInstall(entry, spec)
  if (canonicalJson(wanted) === canonicalJson(entry.owes)) return false
  const { owes: _, ...others } = entry
  setEntry(draft, { ...others, ...(wanted && { owes: wanted }) })
  return true
}

const stagesOfInstall: ReadonlySet<StageName> = new Set(['apply', 'upgrade', 'config'])

/**
 * Two debts are taken from the spec of now: of an interrupt that failed, whose correction must not wait for the next
 * version, and of one that a person asked for again by setting the stage. True when the entry changed.
 */
function renewDebt(draft: Draft, key: string, spec: PackageSpec | undefined): boolean {
  const entry = draft.record.packages[key]
  if (!entry || !spec || draft.record.interrupt?.owners.includes(key) || entry.state === 'complete') return false
  if (entry.owes !== undefined && entry.state !== 'erroring') return false
  const wanted = debtOfNow(entry, spec)
  if (entry.owes !== undefined && canonicalJson(wanted) === canonicalJson(mergeInterrupts([entry.owes]))) return false
  const { owes: _, retryAtMs: __, failure: ___, ...kept } = entry
  const answers = entry.owes === undefined && wanted && isConditional(wanted) // it is the person who says that it is required
  setEntry(draft, {
    ...kept,
    stage: 'config',
    state: 'complete',
    restarts: 0,
    ...(wanted && { owes: wanted }),
    ...(answers && { interruptRequired: { required: true, bootId: draft.world.bootId } }),
  })
  return true
}

/** Owed and not yet under way, or failed and waiting for its next try. */
function interruptState(draft: Draft, key: string): PackageState {
  const entry = draft.record.packages[key]
  if (entry?.state !== 'erroring' || (entry.retryAtMs ?? 0) <= draft.world.nowMs) return { state: 'interrupt', key }
  wakeAt(draft, entry.retryAtMs ?? 0)
  const reason = entry.failure?.reason === 'RebootRefused' ? 'RebootRefused' : 'StepFailed'
  return {
    state: 'blocked',
    atPreparation: false,
    reason,
    message: `package ${entry.name} ${entry.version}: ${entry.failure?.message ?? 'failed'}`,
  }
}

/** What the Skyhook says about a package; nothing any more once it is being deleted. */
const specOf = (draft: Draft, name: string): PackageSpec | undefined =>
  draft.view.metadata.deletionTimestamp === undefined ? draft.view.spec.packages?.[name] : undefined

type Outcome = PackageState | 'again'

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
  return record(draft, entry, spec, prepared as Ready, permission)
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

function record(draft: Draft, entry: PackageRecord, spec: PackageSpec | undefined, prepared: Ready, permission: Permission): Outcome {
  const { world, view } = draft
  const attempt = entry.attempt as StageAttempt
  const work = entry.work as PackageWork
  const advanced = advanceAttempt(attempt, {
    nowMs: world.nowMs,
    bootId: world.bootId,
    config: prepared.config,
    contentHashes: prepared.contentHashes,
    stage: entry.stage,
    packageName: entry.name,
    alwaysRun: isSwitchedOn(spec, 'OVERLAY_ALWAYS_RUN_STEP'),
    version: entry.version,
    flags: draft.record.flags,
    attempts: world.attempts,
    idSeed: [view.metadata.uid, entry.name, entry.version, work.generation, entry.stage, attempt.startedAtMs].join('\n'),
    mayStart: permission.mayStart,
  })
  note(draft, entry, advanced, prepared)
  const { progress } = advanced
  switch (progress.state) {
    case 'under-way': {
      setEntry(draft, { ...entry, attempt: progress.attempt })
      startStep(draft, { ...entry, attempt: progress.attempt }, spec, prepared, progress.start)
      const running = progress.attempt.steps.at(-1)
      const observed = running && world.attempts.get(running.id)
      if (progress.start && observed?.state === 'absent' && observed.hindrance !== undefined)
        return { state: 'blocked', atPreparation: false, reason: 'HostUnusable', message: observed.hindrance }
      return running && !running.result ? { state: 'running' } : { state: 'ready', stage: entry.stage, owes: entry.owes !== undefined }
    }
    case 'complete': {
      const passed = { ...entry, attempt: progress.attempt }
      const owesIfRequired = entry.stage === 'config' && spec ? debtIfRequired(entry, spec) : undefined
      const answer = owesIfRequired && answerOf(draft, passed)
      if (answer === 'asked') {
        setEntry(draft, passed)
        return { state: 'running' }
      }
      recordChecks(draft, entry, progress.attempt)
      if (answer?.state === 'unusable')
        failStage(draft, passed, 'CheckFailed', `config passed, but whether the interrupt is required cannot be known: ${answer.why}`)
      else {
        if (answer?.status.wants.interrupt === true)
          draft.events.push({ type: 'interruptRequired', skyhook: view.metadata.name, package: entry.name, message: answer.status.message })
        completeStage(draft, answer ? answered(entry, owesIfRequired, answer) : entry, prepared.config)
      }
      return 'again'
    }
    case 'failed':
      recordChecks(draft, entry, progress.attempt)
      failStage(draft, { ...entry, attempt: progress.attempt }, progress.reason, progress.message)
      return 'again'
  }
}

function failStage(draft: Draft, entry: PackageRecord, reason: 'StepFailed' | 'CheckFailed', message: string): void {
  const { world, view } = draft
  const failures = entry.restarts + 1
  const retryAtMs = world.nowMs + retryWaitMs(failures, `${world.node.metadata.uid}/${entry.name}/${failures}`)
  setEntry(draft, { ...entry, state: 'erroring', restarts: failures, retryAtMs, failure: { reason, message } })
  draft.events.push({
    type: 'stageFailed',
    skyhook: view.metadata.name,
    package: entry.name,
    stage: entry.stage,
    reason,
    message,
    failures,
  })
}

/** One of the incumbent's switches in the package's env: `true` in any letter case, given as a plain value. */
const isSwitchedOn = (spec: PackageSpec | undefined, name: string): boolean =>
  spec?.env?.findLast((variable) => variable.name === name)?.value?.toLowerCase() === 'true'

function note(draft: Draft, entry: PackageRecord, { setFlags, ended, notes }: AdvanceResult, { config }: Ready): void {
  if (setFlags.length > 0) {
    const flags = Object.fromEntries(setFlags.map((flag) => [flag, draft.world.nowMs]))
    draft.record = { ...draft.record, flags: { ...draft.record.flags, ...flags } }
  }
  for (const step of ended) {
    const planned = config.modes[step.mode as Mode]?.[step.index]
    draft.actions.push({
      do: 'recordStep',
      key: `record/${step.id}`,
      skyhook: draft.view.metadata.name,
      name: entry.name,
      version: entry.version,
      step,
      config,
      ...(planned && { planned }),
    })
  }
  for (const noted of notes) {
    if (noted.note !== 'step-unknown') continue
    draft.events.push({
      type: 'stepUnknown',
      skyhook: draft.view.metadata.name,
      package: entry.name,
      step: `${noted.step.mode} ${noted.step.path}`,
      detail: noted.detail,
    })
  }
}

/** The summary of the checks, when there were any. */
function recordChecks(draft: Draft, entry: PackageRecord, { steps }: StageAttempt): void {
  const checks = steps.filter(({ mode }) => isCheck(mode as Mode))
  const mode = checks[0]?.mode as Mode | undefined
  if (mode === undefined) return
  const skyhook = draft.view.metadata.name
  draft.actions.push({ do: 'recordChecks', key: `checks/${skyhook}/${entry.name}/${mode}`, skyhook, mode, steps: checks })
}

function startStep(
  draft: Draft,
  entry: PackageRecord,
  spec: PackageSpec | undefined,
  prepared: Ready,
  step: StageAttempt['steps'][number] | undefined,
): void {
  const planned = step && plannedSteps(prepared.config, entry.stage)[(entry.attempt?.steps.length ?? 1) - 1]
  if (!step || !planned) return
  draft.actions.push({
    do: 'startStep',
    key: `step/${step.id}`,
    view: draft.view,
    record: entry,
    spec: stepSpec(entry, spec),
    stage: entry.stage as Stage, // interrupts have no steps
    attempt: step,
    step: planned.step,
    config: prepared.config,
    fresh: entry.attempt?.steps.every((other) => other === step || other.bootId !== step.bootId) ?? true,
    stageStartedAtMs: entry.attempt?.startedAtMs ?? draft.world.nowMs,
    previousVersion: draft.record.installed[entry.name] ?? 'unknown',
  })
}

/** What a step sees of the package's spec: an uninstall runs with the configuration and env that the package was installed with. */
function stepSpec(entry: PackageRecord, spec: PackageSpec | undefined): PackageSpec {
  const own: PackageSpec = spec ?? { version: entry.version, image: entry.image }
  const inputs =
    entry.stage === 'uninstall'
      ? (entry.finished ?? entry.started)
      : entry.stage === 'apply' || entry.stage === 'upgrade'
        ? undefined
        : entry.started
  if (!inputs) return own
  return { ...own, version: entry.version, configMap: inputs.config, env: inputs.env }
}

function completeStage(draft: Draft, entry: PackageRecord, config: PackageConfig): void {
  const skyhook = draft.view.metadata.name
  draft.events.push({ type: 'stageCompleted', skyhook, package: entry.name, stage: entry.stage })
  const { attempt: _, retryAtMs: __, failure: ___, ...rest } = entry
  if (entry.stage === 'uninstall') {
    const {
      work: _w,
      started: _s,
      finished: _f,
      owes: _o,
      changedKeys: _c,
      interruptRequired: _i,
      passedAtMs: _p,
      wantedAtMs: _wa,
      ...bare
    } = rest
    setEntry(draft, { ...bare, state: 'complete', restarts: 0 })
    for (const other of entriesOf(draft.record, entry.name)) // what was below it went with it
      if (other.version !== entry.version && !other.kept) removeEntry(draft, packageKey(other.name, other.version))
    clearFlags(draft, entry.name)
    setInstalled(draft, entry.name, config, 'uninstalled')
    return
  }
  const started = rest.started ?? { config: {}, env: [] }
  const passedAtMs = draft.world.nowMs
  if (entry.stage === 'post-interrupt') {
    const { changedKeys: _k, ...interrupted } = rest // complete for what it was configured with, whatever the spec says by now
    setEntry(draft, { ...interrupted, state: 'complete', restarts: 0, started, finished: started, passedAtMs })
  } else setEntry(draft, { ...rest, state: 'complete', restarts: 0, ...(entry.stage === 'config' && { started, passedAtMs }) })
  if (entry.stage === 'apply' || entry.stage === 'upgrade') setInstalled(draft, entry.name, config, config.packageVersion)
  if (entry.stage === 'upgrade') {
    for (const other of entriesOf(draft.record, entry.name))
      if (other.version !== entry.version && !other.kept) removeEntry(draft, packageKey(other.name, other.version))
  }
}

function setInstalled(draft: Draft, name: string, config: PackageConfig, version: string): void {
  draft.record = { ...draft.record, installed: { ...draft.record.installed, [name]: version } }
  const skyhook = draft.view.metadata.name
  draft.actions.push({ do: 'recordHistory', key: `history/${skyhook}/${name}`, skyhook, name, config, version })
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
