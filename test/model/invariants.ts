import type { Journal, PackageRecord } from '../../src/schemas/journal.ts'
import type { EnvVar } from '../../src/schemas/kubernetes.ts'
import type { PackageSpec, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { appliedHash } from '../../src/stages/model/applied-hash.ts'
import { pendingIfRequired } from '../../src/stages/interrupt/pending.ts'
import { matchesGlob } from '../../src/stages/interrupt/glob.ts'
import type { Plan, StartStep } from '../../src/stages/model/plan.ts'
import { groupPods } from '../../src/stages/drain/pods.ts'
import type { Snapshot } from '../../src/stages/model/snapshot.ts'
import type { FaultyNode } from './faulty-node.ts'
import type { Decide, NodeObserver } from '../support/node-simulator.ts'

/** What is on the host because steps ran there, whatever any journal says: the measure of all claims. */
type HostState = {
  version: string
  stage: string
  config: Readonly<Record<string, string>>
  env: readonly EnvVar[]
  configured: boolean
  /** Was complete at some time since its apply or upgrade. */
  wasComplete: boolean
  /** A person had the journal forget it: what is not in the spec then stays where it is. */
  forgotten?: boolean
  /** An interrupt has to come before this counts as complete: keys changed under a config that had begun. */
  pendingInterrupt: boolean
  /** Of the work that ran last. */
  generation: number | undefined
  /** Neither complete nor interrupted since its apply or upgrade began: owes the interrupt that the spec has. */
  installing: boolean
  /** Boot in which the package said that it needs an interrupt, which the spec leaves to it. */
  required?: string | undefined
}

export class InvariantViolation extends Error {}

const violate = (rule: string): never => {
  throw new InvariantViolation(rule)
}

const finalStages = new Set(['config', 'post-interrupt'])
const isHalfChanged = (entry: PackageRecord): boolean =>
  entry.work !== undefined &&
  entry.retained !== true &&
  entry.state !== 'skipped' &&
  !(
    entry.state === 'complete' &&
    (entry.stage === 'post-interrupt' || (entry.stage === 'config' && !entry.pendingInterrupt))
  )

/**
 * Whole on the host, and in want of nothing but the interrupt that the package asked for: the turn may be given to
 * others.
 */
const needsOnlyInterrupt = ({ stage, state, pendingInterrupt }: PackageRecord): boolean =>
  stage === 'config' && state === 'complete' && pendingInterrupt?.when === 'required'

const configText = (config: Readonly<Record<string, string>> = {}): string =>
  Object.keys(config)
    .sort()
    .map((key) => `${key}=${config[key]}`)
    .join()

/** What a package that is complete does not run again for, as long as it stays. */
const fingerprint = (spec: PackageSpec | undefined): string =>
  JSON.stringify([spec?.version, configText(spec?.configMap), spec?.env ?? [], spec?.uninstall ?? null])

const allowedPredecessors: Readonly<Record<string, readonly string[]>> = {
  config: ['apply', 'upgrade', 'config', 'interrupt', 'post-interrupt'],
  'post-interrupt': ['interrupt'],
}

/**
 * Watches a node and throws at the first effect that breaks a rule. The rules are written from the outside, by what a
 * person may rely on.
 */
export class Invariants implements NodeObserver {
  node: FaultyNode | undefined
  readonly host = new Map<string, HostState>()
  readonly #completed = new Map<string, string>()
  readonly #requestedRuns = new Set<string>()
  readonly #okSteps = new Set<string>()
  readonly #started = new Map<string, string>()
  #before: Journal | undefined
  readonly #decide: Decide

  constructor(decide: Decide) {
    this.#decide = decide
  }

  /** Whatever people do on purpose is a reason to run again. */
  forgetCompletion(skyhook: string): void {
    for (const key of this.#completed.keys()) if (key.startsWith(`${skyhook}/`)) this.#completed.delete(key)
    for (const [key, hostState] of this.host) {
      if (!key.startsWith(`${skyhook}/`)) continue
      hostState.wasComplete = false
      hostState.forgotten = true
    }
  }

  /** The host asks for one run of a package that may rest. */
  recordRunRequest(key: string): void {
    this.#requestedRuns.add(key)
  }

  decided(snapshot: Snapshot, plan: Plan): void {
    this.#before = snapshot.journal
    const keys = plan.actions.map(({ key }) => key)
    if (new Set(plan.actions.map((action) => JSON.stringify(action))).size !== new Set(keys).size)
      violate(`two different actions under one key: ${keys.join(' ')}`)
    this.#isLevelTriggered(snapshot, plan)
    this.#recordRequirements(snapshot, plan)
    this.#recordCompletion(snapshot, plan)
    for (const [skyhook, { packages, uid }] of Object.entries(plan.journal.skyhooks))
      for (const [key, { stage, attempt, work }] of Object.entries(packages))
        for (const step of attempt?.steps ?? [])
          if (step.result?.result === 'ok')
            this.#okSteps.add(
              [
                skyhook,
                uid,
                key,
                stage,
                work?.generation,
                attempt?.startedAtMs,
                attempt?.number,
                step.mode,
                step.index,
              ].join(' '),
            )
  }

  #isLevelTriggered(snapshot: Snapshot, plan: Plan): void {
    const again = this.#decide({ ...snapshot, journal: plan.journal }, plan.reasons)
    if (snapshot.skyhooks.known && snapshot.skyhooks.value.length > 1) {
      // an earlier Skyhook learns only in the next decision what a later one began in this; that is all it may take
      const decidedThird = this.#decide({ ...snapshot, journal: again.journal }, again.reasons)
      if (JSON.stringify(decidedThird.journal) !== JSON.stringify(again.journal))
        violate('decided a third time, the journal still differs')
      return
    }
    if (JSON.stringify(again.journal) !== JSON.stringify(plan.journal))
      violate(
        `decided again, the journal differs: ${JSON.stringify(plan.journal.skyhooks)} then ${JSON.stringify(again.journal.skyhooks)}`,
      )
    const repeatedKeys = ({ actions }: Plan): string[] =>
      actions
        .filter(({ do: what }) => !/^record|^forget/.test(what))
        .map(({ key }) => key)
        .sort()
    if (repeatedKeys(again).join() !== repeatedKeys(plan).join())
      violate(`decided again, the actions differ: ${repeatedKeys(plan).join()} then ${repeatedKeys(again).join()}`)
  }

  /** Complete packages rest until their part of the spec changes. */
  #recordCompletion({ skyhooks }: Snapshot, plan: Plan): void {
    if (!skyhooks.known) return
    for (const { metadata, spec } of skyhooks.value) {
      for (const [name, now] of Object.entries(spec.packages ?? {})) {
        const key = `${metadata.name}/${name}`
        const completedSpec = this.#completed.get(key)
        if (completedSpec !== undefined && completedSpec !== fingerprint(now)) this.#completed.delete(key)
        const entry = plan.journal.skyhooks[metadata.name]?.packages[`${name}|${now.version}`]
        const hostState = this.host.get(key)
        if (
          !entry ||
          isHalfChanged(entry) ||
          !finalStages.has(entry.stage) ||
          entry.attempt ||
          !hostState ||
          hostState.version !== now.version
        )
          continue
        if (this.isDone(key, now)) {
          hostState.wasComplete = true
          hostState.installing = false
          this.#completed.set(key, fingerprint(now))
        }
      }
      for (const key of this.#completed.keys())
        if (key.startsWith(`${metadata.name}/`) && !spec.packages?.[key.slice(metadata.name.length + 1)])
          this.#completed.delete(key)
    }
  }

  /** When config has passed, a package that was left to decide needs its interrupt, or does not. */
  #recordRequirements({ skyhooks, journal, bootId }: Snapshot, plan: Plan): void {
    for (const { metadata, spec } of skyhooks.known ? skyhooks.value : [])
      for (const [key, entry] of Object.entries(journal.skyhooks[metadata.name]?.packages ?? {})) {
        const after = plan.journal.skyhooks[metadata.name]?.packages[key]
        const wanted = spec.packages?.[entry.name]
        if (entry.stage !== 'config' || !entry.attempt || !after || !wanted || !pendingIfRequired(entry, wanted))
          continue
        const isAnswered = JSON.stringify(after.interruptRequirement) !== JSON.stringify(entry.interruptRequirement)
        if (after.stage === 'config' && after.state !== 'complete' && !isAnswered) continue
        const hostState = this.host.get(`${metadata.name}/${entry.name}`)
        const file = (this.node as FaultyNode).statusFiles.get(`${metadata.name}/${entry.name}`)
        if (!hostState || file?.state !== 'read' || !file.status.requests.interrupt) continue
        hostState.required = file.status.bootId
        this.#satisfyByBoot(`${metadata.name}/${entry.name}`, hostState, bootId)
      }
  }

  /** What the host holds is what this part of the spec asks for. */
  isDone(key: string, spec: PackageSpec): boolean {
    const hostState = this.host.get(key)
    if (spec.uninstall?.apply === true) return hostState === undefined || hostState.forgotten === true
    return (
      hostState !== undefined &&
      hostState.version === spec.version &&
      hostState.configured &&
      !hostState.pendingInterrupt &&
      !(hostState.installing && isOwed(spec)) &&
      hostState.required !== (this.node as FaultyNode).bootId &&
      finalStages.has(hostState.stage) &&
      configText(hostState.config) === configText(spec.configMap) &&
      JSON.stringify(hostState.env) === JSON.stringify(spec.env ?? [])
    )
  }

  stepStarts({ view: seenView, record, stage, attempt, spec }: StartStep, snapshot: Snapshot): void {
    const node = this.node as FaultyNode
    const { name } = seenView.metadata
    const view = node.views.get(name) ?? seenView // what people wrote, whatever the decision was made from
    const key = `${name}/${record.name}`
    const what = `${name} ${record.name}|${record.version} ${attempt.mode}`
    const runningSteps = node.running()
    const slot = snapshot.slots.known
      ? snapshot.slots.value.find(({ skyhookUid }) => skyhookUid === view.metadata.uid)
      : undefined
    if (!slot?.confirmed) violate(`${what} runs without a confirmed slot`)
    if (node.interrupting.size > 0) violate(`${what} runs while an interrupt is under way`)
    if (runningSteps.some((other) => other.view.metadata.name === name && other.record.name === record.name))
      violate(`${what} runs beside another step of its package`)
    if (
      view.spec.serial &&
      attempt.index === 0 &&
      !attempt.mode.endsWith('-check') &&
      runningSteps.some((other) => other.view.metadata.name === name)
    )
      violate(`${what} runs beside another package of a serial Skyhook`)
    if (view.metadata.annotations?.['skyhook.nvidia.com/pause'] === 'true') violate(`${what} runs while paused`)

    if (this.#started.get(attempt.id) === snapshot.bootId) violate(`${what} is started twice in one boot`)
    this.#started.set(attempt.id, snapshot.bootId)
    const stageAttempt = record.attempt
    const identity = [
      name,
      view.metadata.uid,
      `${record.name}|${record.version}`,
      stage,
      record.work?.generation,
      stageAttempt?.startedAtMs,
      stageAttempt?.number,
      attempt.mode,
      attempt.index,
    ].join(' ')
    if (this.#okSteps.has(identity)) violate(`${what} ended ok in this attempt of its stage and runs again`)

    const isCheck = attempt.mode.endsWith('-check')
    const hostState = this.host.get(key)
    const done = hostState?.stage
    if (isCheck && done !== `${stage}…` && done !== stage) violate(`${what} runs before ${stage} did (host: ${done})`)
    const allowedStages = allowedPredecessors[stage]
    const isRestarted = done === stage && hostState?.generation !== record.work?.generation // changed before anybody knew that it had ended
    if (!isCheck && allowedStages && done !== `${stage}…` && !isRestarted && !allowedStages.includes(done ?? 'nothing'))
      violate(`${what} runs after ${done ?? 'nothing'}`)

    const entryBefore = this.#before?.skyhooks[name]?.packages[`${record.name}|${record.version}`]
    const isFirstStep =
      stageAttempt?.number === 1 && stageAttempt.steps.length === 1 && (stageAttempt.repeats ?? 0) === 0
    if (
      isFirstStep &&
      (entryBefore === undefined || !isHalfChanged(entryBefore)) &&
      (stage === 'apply' || stage === 'upgrade')
    ) {
      if (isOwed(spec) && !isDrained(snapshot, name, view.spec)) violate(`${what} runs before the node is drained`)
      for (const needed of Object.keys(view.spec.packages?.[record.name]?.dependsOn ?? {})) {
        const wanted = view.spec.packages?.[needed]
        if (wanted && !this.isDone(`${name}/${needed}`, wanted))
          violate(`${what} runs before ${needed}, on which it depends, is complete`)
      }
    }
    const isRunRequested = stage === 'config' && this.#requestedRuns.delete(key)
    if (isRunRequested) this.#completed.delete(key)
    if (this.#completed.has(key)) violate(`${what} runs although the package was complete`)
    this.#begin(key, stage, record, spec, isCheck)
  }

  #begin(key: string, stage: string, record: PackageRecord, spec: PackageSpec, isCheck: boolean): void {
    if (isCheck) return
    const known = this.host.get(key)
    const isInstall = stage === 'apply' || stage === 'upgrade'
    const before = known ?? {
      version: record.version,
      stage,
      config: {},
      env: [],
      configured: false,
      wasComplete: false,
      pendingInterrupt: false,
      installing: false,
      generation: undefined,
    }
    const config = spec.configMap ?? {}
    const changed = Object.keys({ ...before.config, ...config }).filter((name) => before.config[name] !== config[name])
    const hasKeyInterrupt = Object.entries(spec.configInterrupts ?? {}).some(
      ([pattern, { when }]) => when !== 'required' && changed.some((name) => matchesGlob(pattern, name)),
    )
    this.host.set(key, {
      ...before,
      forgotten: false,
      generation: record.work?.generation,
      version: stage === 'uninstall' ? before.version : record.version,
      stage: `${stage}…`,
      ...(isInstall && {
        configured: false,
        wasComplete: false,
        pendingInterrupt: false,
        installing: true,
        required: undefined,
      }),
      ...(stage === 'config' && {
        config,
        env: spec.env ?? [],
        configured: true,
        pendingInterrupt: before.pendingInterrupt || (before.configured && hasKeyInterrupt),
      }),
    })
  }

  stepEnds({ view, record, attempt, stage }: StartStep, succeeded: boolean): void {
    const key = `${view.metadata.name}/${record.name}`
    const hostState = this.host.get(key)
    if (!succeeded || !hostState || !attempt.mode.endsWith('-check')) return
    if (stage === 'uninstall') this.host.delete(key)
    else hostState.stage = stage
  }

  /** Whatever a package needed an interrupt for, a boot has done. */
  booted(): void {
    for (const [key, hostState] of this.host) this.#satisfyByBoot(key, hostState, (this.node as FaultyNode).bootId)
  }

  #satisfyByBoot(key: string, hostState: HostState, bootId: string): void {
    if (hostState.stage !== 'config' || hostState.required === undefined || hostState.required === bootId) return
    const [skyhook = '', name = ''] = key.split('/')
    const isOwedAnyway =
      hostState.installing && isOwed((this.node as FaultyNode).views.get(skyhook)?.spec.packages?.[name])
    hostState.required = undefined
    if (hostState.pendingInterrupt || isOwedAnyway) return
    hostState.installing = false
    hostState.stage = 'interrupt'
  }

  interruptStarts(
    { owners }: { readonly owners: readonly string[] },
    { metadata }: { readonly metadata: { readonly name: string } },
  ): void {
    const node = this.node as FaultyNode
    const entries = owners.map((key) => node.journal.skyhooks[metadata.name]?.packages[key])
    const isRequired = (name = ''): boolean => this.host.get(`${metadata.name}/${name}`)?.required === node.bootId
    if (entries.every((entry) => entry?.pendingInterrupt?.when === 'required' && !isRequired(entry.name)))
      violate('an interrupt runs that no package requires')
    const running = node.running()[0]
    if (running)
      violate(
        `an interrupt runs while ${running.view.metadata.name} ${running.record.name} ${running.attempt.mode} runs`,
      )
    if (node.node.spec?.unschedulable !== true) violate('an interrupt runs without a visible cordon')
  }

  interruptEnds({ owners }: { readonly owners: readonly string[] }, skyhook: string): void {
    for (const owner of owners) {
      const [name, version] = owner.split('|')
      const hostState = this.host.get(`${skyhook}/${name}`)
      if (!hostState || hostState.version !== version || hostState.stage !== 'config') continue
      hostState.pendingInterrupt = false
      hostState.installing = false
      hostState.required = undefined
      hostState.stage = 'interrupt'
    }
  }

  slotReleased(slot: { readonly skyhook: string; readonly skyhookUid: string | undefined }): void {
    const node = this.node as FaultyNode
    const { skyhook } = slot
    const what = `the slot of ${slot.skyhookUid} goes`
    if (node.annotation(`cordon_${skyhook}`) === 'true') {
      const view = node.views.get(skyhook)
      if (!view || view.metadata.uid === slot.skyhookUid) violate(`${what} before the cordon does`)
    }
    const unit = node.running().find(({ view }) => view.metadata.uid === slot.skyhookUid)
    if (unit) violate(`${what} while ${unit.record.name} ${unit.attempt.mode} runs`)
    const view = node.views.get(skyhook)
    if (!view || view.metadata.uid !== slot.skyhookUid || node.node.metadata.labels?.['pool'] !== 'x') return
    const hasHalfChanged = Object.values(node.journal.skyhooks[skyhook]?.packages ?? {}).some(
      (entry) => isHalfChanged(entry) && !needsOnlyInterrupt(entry),
    )
    if (hasHalfChanged) violate(`${what} while the host is half changed`)
    const wasApplied =
      node.journal.skyhooks[skyhook]?.applied !== undefined && node.lastReasons.get(skyhook) === undefined
    if (wasApplied && node.annotation(`status_${skyhook}`) !== 'complete')
      violate(`${what} before completion is published`)
  }

  published({ annotations }: { readonly annotations: Readonly<Record<string, string | null>> }): void {
    const node = this.node as FaultyNode
    for (const [name, { spec }] of node.views) {
      const shown = (key: string): string | null | undefined =>
        annotations[`skyhook.nvidia.com/${key}`] ?? node.annotation(key)
      const status = shown(`status_${name}`)
      const journal = shown(`journal_${name}`)
      if (status === 'complete' && journal?.includes(`"applied":"${appliedHash(spec)}"`)) this.isComplete(name, spec)
    }
  }

  /** A node may say `complete` only if the host is so. */
  isComplete(skyhook: string, spec: SkyhookSpec): void {
    const node = this.node as FaultyNode
    const unit = node.running().find(({ view }) => view.metadata.name === skyhook)
    if (unit) violate(`complete is said while ${unit.record.name} ${unit.attempt.mode} runs`)
    for (const [name, wanted] of Object.entries(spec.packages ?? {})) {
      const key = `${skyhook}/${name}`
      if (!this.isDone(key, wanted))
        violate(
          `complete is said, but of ${name} the host has ${JSON.stringify(this.host.get(key))}, not ${JSON.stringify(wanted)}`,
        )
    }
  }
}

const isOwed = (spec: PackageSpec | undefined): boolean =>
  spec?.interrupt !== undefined && spec.interrupt.when !== 'required'

function isDrained({ node, pods, settings }: Snapshot, skyhook: string, spec: SkyhookSpec): boolean {
  if (
    node.spec?.unschedulable !== true ||
    node.metadata.annotations?.[`skyhook.nvidia.com/cordon_${skyhook}`] !== 'true'
  )
    return false
  if (!pods.known || pods.value.since !== 'cordoned') return false
  const groups = groupPods(pods.value.pods, spec.podNonInterruptLabels, settings.skipNamespaces)
  return groups.protected.length === 0 && (groups.toDrain.length === 0 || spec.drain?.singleNode === 'skip')
}
