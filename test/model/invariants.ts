import type { Journal, PackageRecord } from '../../src/schemas/journal.ts'
import type { EnvVar } from '../../src/schemas/kubernetes.ts'
import type { PackageSpec, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { appliedHash } from '../../src/stages/model/applied-hash.ts'
import { debtIfRequired } from '../../src/stages/interrupt/pending.ts'
import { matchesGlob } from '../../src/stages/interrupt/glob.ts'
import type { Plan, StartStep } from '../../src/stages/model/plan.ts'
import { groupPods } from '../../src/stages/drain/pods.ts'
import type { World } from '../../src/stages/model/snapshot.ts'
import type { Decide, TroubledNode, Watcher } from './faulty-node.ts'

/** What is on the host because steps ran there, whatever any journal says: the measure of all claims. */
type OnHost = {
  version: string
  stage: string
  config: Readonly<Record<string, string>>
  env: readonly EnvVar[]
  configured: boolean
  /** Was complete at some time since its apply or upgrade. */
  rested: boolean
  /** A person had the journal forget it: what is not in the spec then stays where it is. */
  forgotten?: boolean
  /** An interrupt has to come before this counts as complete: keys changed under a config that had begun. */
  owes: boolean
  /** Of the work that ran last. */
  generation: number | undefined
  /** Neither complete nor interrupted since its apply or upgrade began: owes the interrupt that the spec has. */
  installing: boolean
  /** Boot in which the package said that it needs an interrupt, which the spec leaves to it. */
  required?: string | undefined
}

export class Broken extends Error {}

const broken = (rule: string): never => {
  throw new Broken(rule)
}

const finalStages = new Set(['config', 'post-interrupt'])
const isHalf = (entry: PackageRecord): boolean =>
  entry.work !== undefined &&
  entry.kept !== true &&
  entry.state !== 'skipped' &&
  !(entry.state === 'complete' && (entry.stage === 'post-interrupt' || (entry.stage === 'config' && !entry.owes)))

/** Whole on the host, and in want of nothing but the interrupt that the package asked for: the turn may be given to others. */
const isWhole = ({ stage, state, owes }: PackageRecord): boolean => stage === 'config' && state === 'complete' && owes?.when === 'required'

const textOf = (config: Readonly<Record<string, string>> = {}): string =>
  Object.keys(config)
    .sort()
    .map((key) => `${key}=${config[key]}`)
    .join()

/** What a package that is complete does not run again for, as long as it stays. */
const fingerprint = (spec: PackageSpec | undefined): string =>
  JSON.stringify([spec?.version, textOf(spec?.configMap), spec?.env ?? [], spec?.uninstall ?? null])

const successors: Readonly<Record<string, readonly string[]>> = {
  config: ['apply', 'upgrade', 'config', 'interrupt', 'post-interrupt'],
  'post-interrupt': ['interrupt'],
}

/** Watches a node and throws at the first effect that breaks a rule. The rules are written from the outside, by what a person may rely on. */
export class Rules implements Watcher {
  node: TroubledNode | undefined
  readonly host = new Map<string, OnHost>()
  readonly #resting = new Map<string, string>()
  readonly #wished = new Set<string>()
  readonly #okSteps = new Set<string>()
  readonly #started = new Map<string, string>()
  #before: Journal | undefined
  readonly #decide: Decide

  constructor(decide: Decide) {
    this.#decide = decide
  }

  /** Whatever people do on purpose is a reason to run again. */
  forgetRest(skyhook: string): void {
    for (const key of this.#resting.keys()) if (key.startsWith(`${skyhook}/`)) this.#resting.delete(key)
    for (const [key, onHost] of this.host) {
      if (!key.startsWith(`${skyhook}/`)) continue
      onHost.rested = false
      onHost.forgotten = true
    }
  }

  /** The host asks for one run of a package that may rest. */
  noteWish(key: string): void {
    this.#wished.add(key)
  }

  decided(world: World, plan: Plan): void {
    this.#before = world.journal
    const keys = plan.actions.map(({ key }) => key)
    if (new Set(plan.actions.map((action) => JSON.stringify(action))).size !== new Set(keys).size)
      broken(`two different actions under one key: ${keys.join(' ')}`)
    this.#isLevelTriggered(world, plan)
    this.#noteAnswers(world, plan)
    this.#noteRest(world, plan)
    for (const [skyhook, { packages, uid }] of Object.entries(plan.journal.skyhooks))
      for (const [key, { stage, attempt, work }] of Object.entries(packages))
        for (const step of attempt?.steps ?? [])
          if (step.result?.result === 'ok')
            this.#okSteps.add(
              [skyhook, uid, key, stage, work?.generation, attempt?.startedAtMs, attempt?.number, step.mode, step.index].join(' '),
            )
  }

  #isLevelTriggered(world: World, plan: Plan): void {
    const again = this.#decide({ ...world, journal: plan.journal }, plan.reasons)
    if (world.skyhooks.known && world.skyhooks.value.length > 1) {
      // an earlier Skyhook learns only in the next decision what a later one began in this; that is all it may take
      const third = this.#decide({ ...world, journal: again.journal }, again.reasons)
      if (JSON.stringify(third.journal) !== JSON.stringify(again.journal)) broken('decided a third time, the journal still differs')
      return
    }
    if (JSON.stringify(again.journal) !== JSON.stringify(plan.journal))
      broken(`decided again, the journal differs: ${JSON.stringify(plan.journal.skyhooks)} then ${JSON.stringify(again.journal.skyhooks)}`)
    const lasting = ({ actions }: Plan): string[] =>
      actions
        .filter(({ do: what }) => !/^record|^forget/.test(what))
        .map(({ key }) => key)
        .sort()
    if (lasting(again).join() !== lasting(plan).join())
      broken(`decided again, the actions differ: ${lasting(plan).join()} then ${lasting(again).join()}`)
  }

  /** Complete packages rest until their part of the spec changes. */
  #noteRest({ skyhooks }: World, plan: Plan): void {
    if (!skyhooks.known) return
    for (const { metadata, spec } of skyhooks.value) {
      for (const [name, now] of Object.entries(spec.packages ?? {})) {
        const key = `${metadata.name}/${name}`
        const rest = this.#resting.get(key)
        if (rest !== undefined && rest !== fingerprint(now)) this.#resting.delete(key)
        const entry = plan.journal.skyhooks[metadata.name]?.packages[`${name}|${now.version}`]
        const onHost = this.host.get(key)
        if (!entry || isHalf(entry) || !finalStages.has(entry.stage) || entry.attempt || !onHost || onHost.version !== now.version) continue
        if (this.isDone(key, now)) {
          onHost.rested = true
          onHost.installing = false
          this.#resting.set(key, fingerprint(now))
        }
      }
      for (const key of this.#resting.keys())
        if (key.startsWith(`${metadata.name}/`) && !spec.packages?.[key.slice(metadata.name.length + 1)]) this.#resting.delete(key)
    }
  }

  /** When config has passed, a package that was left to decide needs its interrupt, or does not. */
  #noteAnswers({ skyhooks, journal, bootId }: World, plan: Plan): void {
    for (const { metadata, spec } of skyhooks.known ? skyhooks.value : [])
      for (const [key, entry] of Object.entries(journal.skyhooks[metadata.name]?.packages ?? {})) {
        const after = plan.journal.skyhooks[metadata.name]?.packages[key]
        const wanted = spec.packages?.[entry.name]
        if (entry.stage !== 'config' || !entry.attempt || !after || !wanted || !debtIfRequired(entry, wanted)) continue
        const isAnswered = JSON.stringify(after.interruptRequired) !== JSON.stringify(entry.interruptRequired)
        if (after.stage === 'config' && after.state !== 'complete' && !isAnswered) continue
        const onHost = this.host.get(`${metadata.name}/${entry.name}`)
        const file = (this.node as TroubledNode).statusFiles.get(`${metadata.name}/${entry.name}`)
        if (!onHost || file?.state !== 'read' || !file.status.requests.interrupt) continue
        onHost.required = file.status.bootId
        this.#meetByBoot(`${metadata.name}/${entry.name}`, onHost, bootId)
      }
  }

  /** What the host holds is what this part of the spec asks for. */
  isDone(key: string, spec: PackageSpec): boolean {
    const onHost = this.host.get(key)
    if (spec.uninstall?.apply === true) return onHost === undefined || onHost.forgotten === true
    return (
      onHost !== undefined &&
      onHost.version === spec.version &&
      onHost.configured &&
      !onHost.owes &&
      !(onHost.installing && isOwed(spec)) &&
      onHost.required !== (this.node as TroubledNode).bootId &&
      finalStages.has(onHost.stage) &&
      textOf(onHost.config) === textOf(spec.configMap) &&
      JSON.stringify(onHost.env) === JSON.stringify(spec.env ?? [])
    )
  }

  stepStarts({ view: used, record, stage, attempt, spec }: StartStep, world: World): void {
    const node = this.node as TroubledNode
    const { name } = used.metadata
    const view = node.views.get(name) ?? used // what people wrote, whatever the decision was made from
    const key = `${name}/${record.name}`
    const what = `${name} ${record.name}|${record.version} ${attempt.mode}`
    const others = node.running()
    const slot = world.slots.known ? world.slots.value.find(({ skyhookUid }) => skyhookUid === view.metadata.uid) : undefined
    if (!slot?.confirmed) broken(`${what} runs without a confirmed slot`)
    if (node.interrupting.size > 0) broken(`${what} runs while an interrupt is under way`)
    if (others.some((other) => other.view.metadata.name === name && other.record.name === record.name))
      broken(`${what} runs beside another step of its package`)
    if (
      view.spec.serial &&
      attempt.index === 0 &&
      !attempt.mode.endsWith('-check') &&
      others.some((other) => other.view.metadata.name === name)
    )
      broken(`${what} runs beside another package of a serial Skyhook`)
    if (view.metadata.annotations?.['skyhook.nvidia.com/pause'] === 'true') broken(`${what} runs while paused`)

    if (this.#started.get(attempt.id) === world.bootId) broken(`${what} is started twice in one boot`)
    this.#started.set(attempt.id, world.bootId)
    const ofAttempt = record.attempt
    const identity = [
      name,
      view.metadata.uid,
      `${record.name}|${record.version}`,
      stage,
      record.work?.generation,
      ofAttempt?.startedAtMs,
      ofAttempt?.number,
      attempt.mode,
      attempt.index,
    ].join(' ')
    if (this.#okSteps.has(identity)) broken(`${what} ended ok in this attempt of its stage and runs again`)

    const isCheck = attempt.mode.endsWith('-check')
    const onHost = this.host.get(key)
    const done = onHost?.stage
    if (isCheck && done !== `${stage}…` && done !== stage) broken(`${what} runs before ${stage} did (host: ${done})`)
    const may = successors[stage]
    const isAnew = done === stage && onHost?.generation !== record.work?.generation // changed before anybody knew that it had ended
    if (!isCheck && may && done !== `${stage}…` && !isAnew && !may.includes(done ?? 'nothing'))
      broken(`${what} runs after ${done ?? 'nothing'}`)

    const entryBefore = this.#before?.skyhooks[name]?.packages[`${record.name}|${record.version}`]
    const opens = ofAttempt?.number === 1 && ofAttempt.steps.length === 1 && (ofAttempt.repeats ?? 0) === 0
    if (opens && (entryBefore === undefined || !isHalf(entryBefore)) && (stage === 'apply' || stage === 'upgrade')) {
      if (isOwed(spec) && !isDrained(world, name, view.spec)) broken(`${what} runs before the node is drained`)
      for (const needed of Object.keys(view.spec.packages?.[record.name]?.dependsOn ?? {})) {
        const wanted = view.spec.packages?.[needed]
        if (wanted && !this.isDone(`${name}/${needed}`, wanted)) broken(`${what} runs before ${needed}, on which it depends, is complete`)
      }
    }
    const isWished = stage === 'config' && this.#wished.delete(key)
    if (isWished) this.#resting.delete(key)
    if (this.#resting.has(key)) broken(`${what} runs although the package was complete`)
    this.#begin(key, stage, record, spec, isCheck)
  }

  #begin(key: string, stage: string, record: PackageRecord, spec: PackageSpec, isCheck: boolean): void {
    if (isCheck) return
    const known = this.host.get(key)
    const fresh = stage === 'apply' || stage === 'upgrade'
    const before = known ?? {
      version: record.version,
      stage,
      config: {},
      env: [],
      configured: false,
      rested: false,
      owes: false,
      installing: false,
      generation: undefined,
    }
    const config = spec.configMap ?? {}
    const changed = Object.keys({ ...before.config, ...config }).filter((name) => before.config[name] !== config[name])
    const asks = Object.entries(spec.configInterrupts ?? {}).some(
      ([pattern, { when }]) => when !== 'required' && changed.some((name) => matchesGlob(pattern, name)),
    )
    this.host.set(key, {
      ...before,
      forgotten: false,
      generation: record.work?.generation,
      version: stage === 'uninstall' ? before.version : record.version,
      stage: `${stage}…`,
      ...(fresh && { configured: false, rested: false, owes: false, installing: true, required: undefined }),
      ...(stage === 'config' && { config, env: spec.env ?? [], configured: true, owes: before.owes || (before.configured && asks) }),
    })
  }

  stepEnds({ view, record, attempt, stage }: StartStep, succeeded: boolean): void {
    const key = `${view.metadata.name}/${record.name}`
    const onHost = this.host.get(key)
    if (!succeeded || !onHost || !attempt.mode.endsWith('-check')) return
    if (stage === 'uninstall') this.host.delete(key)
    else onHost.stage = stage
  }

  /** Whatever a package needed an interrupt for, a boot has done. */
  booted(): void {
    for (const [key, onHost] of this.host) this.#meetByBoot(key, onHost, (this.node as TroubledNode).bootId)
  }

  #meetByBoot(key: string, onHost: OnHost, bootId: string): void {
    if (onHost.stage !== 'config' || onHost.required === undefined || onHost.required === bootId) return
    const [skyhook = '', name = ''] = key.split('/')
    const isOwedAnyway = onHost.installing && isOwed((this.node as TroubledNode).views.get(skyhook)?.spec.packages?.[name])
    onHost.required = undefined
    if (onHost.owes || isOwedAnyway) return
    onHost.installing = false
    onHost.stage = 'interrupt'
  }

  interruptStarts(
    { owners }: { readonly owners: readonly string[] },
    { metadata }: { readonly metadata: { readonly name: string } },
  ): void {
    const node = this.node as TroubledNode
    const entries = owners.map((key) => node.journal.skyhooks[metadata.name]?.packages[key])
    const isRequired = (name = ''): boolean => this.host.get(`${metadata.name}/${name}`)?.required === node.bootId
    if (entries.every((entry) => entry?.owes?.when === 'required' && !isRequired(entry.name)))
      broken('an interrupt runs that no package requires')
    const running = node.running()[0]
    if (running) broken(`an interrupt runs while ${running.view.metadata.name} ${running.record.name} ${running.attempt.mode} runs`)
    if (node.node.spec?.unschedulable !== true) broken('an interrupt runs without a visible cordon')
  }

  interruptEnds({ owners }: { readonly owners: readonly string[] }, skyhook: string): void {
    for (const owner of owners) {
      const [name, version] = owner.split('|')
      const onHost = this.host.get(`${skyhook}/${name}`)
      if (!onHost || onHost.version !== version || onHost.stage !== 'config') continue
      onHost.owes = false
      onHost.installing = false
      onHost.required = undefined
      onHost.stage = 'interrupt'
    }
  }

  slotGoes(slot: { readonly skyhook: string; readonly skyhookUid: string }): void {
    const node = this.node as TroubledNode
    const { skyhook } = slot
    const what = `the slot of ${slot.skyhookUid} goes`
    if (node.annotation(`cordon_${skyhook}`) === 'true') {
      const view = node.views.get(skyhook)
      if (!view || view.metadata.uid === slot.skyhookUid) broken(`${what} before the cordon does`)
    }
    const unit = node.running().find(({ view }) => view.metadata.uid === slot.skyhookUid)
    if (unit) broken(`${what} while ${unit.record.name} ${unit.attempt.mode} runs`)
    const view = node.views.get(skyhook)
    if (!view || view.metadata.uid !== slot.skyhookUid || node.node.metadata.labels?.['pool'] !== 'x') return
    const half = Object.values(node.journal.skyhooks[skyhook]?.packages ?? {}).some((entry) => isHalf(entry) && !isWhole(entry))
    if (half) broken(`${what} while the host is half changed`)
    const isWorked = node.journal.skyhooks[skyhook]?.applied !== undefined && node.memory.reasons.get(skyhook) === undefined
    if (isWorked && node.annotation(`status_${skyhook}`) !== 'complete') broken(`${what} before completion is published`)
  }

  published({ annotations }: { readonly annotations: Readonly<Record<string, string | null>> }): void {
    const node = this.node as TroubledNode
    for (const [name, { spec }] of node.views) {
      const shown = (key: string): string | null | undefined => annotations[`skyhook.nvidia.com/${key}`] ?? node.annotation(key)
      const status = shown(`status_${name}`)
      const journal = shown(`journal_${name}`)
      if (status === 'complete' && journal?.includes(`"applied":"${appliedHash(spec)}"`)) this.isComplete(name, spec)
    }
  }

  /** A node may say `complete` only if the host is so. */
  isComplete(skyhook: string, spec: SkyhookSpec): void {
    const node = this.node as TroubledNode
    const unit = node.running().find(({ view }) => view.metadata.name === skyhook)
    if (unit) broken(`complete is said while ${unit.record.name} ${unit.attempt.mode} runs`)
    for (const [name, wanted] of Object.entries(spec.packages ?? {})) {
      const key = `${skyhook}/${name}`
      if (!this.isDone(key, wanted))
        broken(`complete is said, but of ${name} the host has ${JSON.stringify(this.host.get(key))}, not ${JSON.stringify(wanted)}`)
    }
  }
}

const isOwed = (spec: PackageSpec | undefined): boolean => spec?.interrupt !== undefined && spec.interrupt.when !== 'required'

function isDrained({ node, pods, settings }: World, skyhook: string, spec: SkyhookSpec): boolean {
  if (node.spec?.unschedulable !== true || node.metadata.annotations?.[`skyhook.nvidia.com/cordon_${skyhook}`] !== 'true') return false
  if (!pods.known || pods.value.since !== 'cordoned') return false
  const groups = groupPods(pods.value.pods, spec.podNonInterruptLabels, settings.skipNamespaces)
  return groups.protected.length === 0 && (groups.toDrain.length === 0 || spec.drain?.singleNode === 'skip')
}
